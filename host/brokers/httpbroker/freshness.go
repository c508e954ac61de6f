package httpbroker

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// directives parses Cache-Control (RFC 9111, section 5.2). Names are lower-cased and values unquoted. The first of
// repeated directives counts. "Pragma: no-cache" without Cache-Control counts as no-cache.
func directives(h http.Header) map[string]string {
	found := map[string]string{}
	rest := strings.Join(h["Cache-Control"], ",")
	for rest != "" {
		var name, value string
		name, value, rest = nextDirective(rest)
		if _, ok := found[name]; name != "" && !ok {
			found[name] = value
		}
	}
	if len(h["Cache-Control"]) == 0 && strings.EqualFold(h.Get("Pragma"), "no-cache") {
		found["no-cache"] = ""
	}
	return found
}

// nextDirective splits the first directive off list. It respects commas in quotes.
func nextDirective(list string) (name, value, rest string) {
	end, quoted := len(list), false
	for i := range len(list) {
		if list[i] == '"' {
			quoted = !quoted
		}
		if list[i] == ',' && !quoted {
			end, rest = i, list[i+1:]
			break
		}
	}
	name, value, _ = strings.Cut(list[:end], "=")
	return strings.ToLower(strings.TrimSpace(name)), strings.Trim(strings.TrimSpace(value), `"`), rest
}

// seconds parses a directive's number of seconds. A malformed one is zero, which leads to a request to the server.
func seconds(value string) time.Duration {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		return 0
	}
	return time.Duration(min(n, 1<<31)) * time.Second
}

// storable reports whether a response may be stored (RFC 9111, section 3) and has a lifetime or a validator. Lifetimes
// are never estimated.
func storable(want map[string]string, resp *Response) bool {
	if !slices.Contains([]int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}, resp.Status) {
		return false
	}
	said := directives(resp.Header)
	_, refused := said["no-store"]
	_, unwanted := want["no-store"]
	if refused || unwanted || strings.Contains(strings.Join(resp.Header["Vary"], ","), "*") {
		return false
	}
	return lifetime(resp.Header, time.Time{}) > 0 || resp.Status == 200 &&
		(resp.Header.Get("Etag") != "" || resp.Header.Get("Last-Modified") != "")
}

// lifetime returns the freshness lifetime of a response for a private cache (RFC 9111, section 4.2.1). received
// replaces a missing Date.
func lifetime(h http.Header, received time.Time) time.Duration {
	if age, ok := directives(h)["max-age"]; ok {
		return seconds(age)
	}
	expires, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	return expires.Sub(date(h, received))
}

func date(h http.Header, received time.Time) time.Time {
	if d, err := http.ParseTime(h.Get("Date")); err == nil {
		return d
	}
	return received
}

// age returns the age of e at now (RFC 9111, section 4.2.3).
func (e *entry) age(now time.Time) time.Duration {
	apparent := max(0, e.received.Sub(date(e.header, e.received)))
	corrected := seconds(e.header.Get("Age")) + e.received.Sub(e.requested)
	return max(apparent, corrected) + now.Sub(e.received)
}

// serves reports whether e may answer at now without revalidation (RFC 9111, section 4). Stale responses are never
// used, even if the request allows them.
func (e *entry) serves(want map[string]string, now time.Time) bool {
	_, confirm := directives(e.header)["no-cache"]
	_, insists := want["no-cache"]
	if confirm || insists {
		return false
	}
	age := e.age(now)
	if limit, ok := want["max-age"]; ok && age > seconds(limit) {
		return false
	}
	return age+seconds(want["min-fresh"]) < lifetime(e.header, e.received)
}

// conditional returns r as a conditional request that revalidates e (RFC 9111, section 4.3.1).
func (e *entry) conditional(r *request) *request {
	r = r.clone()
	if tag := e.header.Get("Etag"); tag != "" {
		r.header.Set("If-None-Match", tag)
	}
	if modified := e.header.Get("Last-Modified"); modified != "" {
		r.header.Set("If-Modified-Since", modified)
	}
	return r
}

// confirmed returns e updated with the headers of a 304 response (RFC 9111, section 3.2), except those that describe
// the body.
func (e *entry) confirmed(h http.Header, requested, received time.Time) *entry {
	c := *e
	c.header, c.requested, c.received = e.header.Clone(), requested, received
	c.header.Del("Age")
	for name, values := range withoutCookies(h) {
		if !strings.HasPrefix(name, "Content-") {
			c.header[name] = values
		}
	}
	return &c
}

// response returns e as a response with its age.
func (e *entry) response(now time.Time) *Response {
	header := e.header.Clone()
	header.Set("Age", strconv.FormatInt(int64(e.age(now)/time.Second), 10))
	return bytesResponse(e.status, header, e.body, SourceCache)
}
