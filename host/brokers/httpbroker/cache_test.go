package httpbroker

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// origin is a server in memory with a clock that the test moves. It answers with headers, confirms with 304 where the
// request's If-None-Match is its ETag, and counts.
type origin struct {
	now     time.Time
	headers []string
	status  int
	asked   []*http.Request
}

func newOrigin(t testing.TB, o *Options, headers ...string) (*origin, *Broker) {
	s := &origin{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), headers: headers, status: 200}
	if o == nil {
		o = new(Options)
	}
	o.Now = func() time.Time { return s.now }
	b := newBroker(t, o, everything("https://a.test"))
	network(s.serve).under(b)
	return s, b
}

func (s *origin) serve(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r)
	h := reply(s.status, fmt.Sprintf("answer %d", len(s.asked)), s.headers...)
	if h.Header.Get("Date") == "" {
		h.Header.Set("Date", s.now.Format(http.TimeFormat))
	}
	if tag := h.Header.Get("Etag"); tag != "" && tag == r.Header.Get("If-None-Match") {
		confirmed := reply(304, "")
		confirmed.Header = h.Header
		return confirmed, nil
	}
	return h, nil
}

// hits sends the same request after each wait and says, letter by letter, where the answers came from: (n)etwork or
// (c)ache.
func (s *origin) hits(t *testing.T, b *Broker, head *abi.HTTPRequest, waits ...time.Duration) string {
	t.Helper()
	var from strings.Builder
	for _, w := range waits {
		s.now = s.now.Add(w)
		a, err := do(t, b, head, "")
		if err != nil {
			t.Fatal(err)
		}
		from.WriteString(a.source[:1])
	}
	return from.String()
}

func TestCacheLifetime(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) string {
		return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(d).Format(http.TimeFormat)
	}
	for name, c := range map[string]struct {
		headers []string
		want    string // after 0s, 59s, 1s
	}{
		"max-age":                 {[]string{"Cache-Control: max-age=60"}, "ncn"},
		"JMA":                     {[]string{"Cache-Control: max-age=60", `ETag: "x"`}, "ncc"},
		"nothing said":            {nil, "nnn"},
		"quoted":                  {[]string{`Cache-Control: private="a, max-age=0", MAX-AGE="60"`}, "ncn"},
		"the first of two":        {[]string{"Cache-Control: max-age=60, max-age=3600"}, "ncn"},
		"malformed":               {[]string{"Cache-Control: max-age=1m"}, "nnn"},
		"negative":                {[]string{"Cache-Control: max-age=-1"}, "nnn"},
		"very long":               {[]string{"Cache-Control: max-age=9999999999999999"}, "ncc"},
		"beyond all":              {[]string{"Cache-Control: max-age=99999999999999999999999"}, "nnn"},
		"for shared caches":       {[]string{"Cache-Control: s-maxage=60"}, "nnn"},
		"no-store":                {[]string{"Cache-Control: max-age=60, no-store"}, "nnn"},
		"no-cache":                {[]string{"Cache-Control: max-age=60, no-cache"}, "nnn"},
		"private":                 {[]string{"Cache-Control: private, max-age=60"}, "ncn"},
		"Expires":                 {[]string{"Expires: " + at(time.Minute)}, "ncn"},
		"Expires, malformed":      {[]string{"Expires: 0"}, "nnn"},
		"max-age before Expires":  {[]string{"Expires: " + at(time.Hour), "Cache-Control: max-age=60"}, "ncn"},
		"Age":                     {[]string{"Cache-Control: max-age=60", "Age: 1"}, "nnc"},
		"an old Date":             {[]string{"Cache-Control: max-age=60", "Date: " + at(-time.Second)}, "nnn"},
		"a Date to come":          {[]string{"Cache-Control: max-age=60", "Date: " + at(time.Hour)}, "ncn"},
		"Vary":                    {[]string{"Cache-Control: max-age=60", "Vary: Accept-Language"}, "ncn"},
		"Vary by everything":      {[]string{"Cache-Control: max-age=60", "Vary: *"}, "nnn"},
		"Vary by everything, too": {[]string{"Cache-Control: max-age=60", "Vary: Accept, *"}, "nnn"},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newOrigin(t, nil, c.headers...)
			if got := s.hits(t, b, &abi.HTTPRequest{URL: "https://a.test/x"}, 0, 59*time.Second,
				time.Second); got != c.want {
				t.Errorf("answers from %s, want %s", got, c.want)
			}
		})
	}
}

func TestCacheStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: "nc", 404: "nc", 206: "nn", 500: "nn", 403: "nn"} {
		s, b := newOrigin(t, nil, "Cache-Control: max-age=60")
		s.status = status
		if got := s.hits(t, b, &abi.HTTPRequest{URL: "https://a.test/x"}, 0, 0); got != want {
			t.Errorf("status %d: answers from %s, want %s", status, got, want)
		}
	}
}

func TestCacheRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, header, value string
		want                  string // after 0s and 30s
	}{
		"plain":               {want: "cc"},
		"no-cache":            {header: "Cache-Control", value: "no-cache", want: "nn"},
		"Pragma":              {header: "Pragma", value: "no-cache", want: "nn"},
		"no-store":            {header: "Cache-Control", value: "no-store", want: "cc"},
		"max-age":             {header: "Cache-Control", value: "max-age=10", want: "cn"},
		"min-fresh":           {header: "Cache-Control", value: "min-fresh=40", want: "cn"},
		"only-if-cached":      {header: "Cache-Control", value: "only-if-cached", want: "cc"},
		"conditional":         {header: "If-None-Match", value: `"y"`, want: "nn"},
		"range":               {header: "Range", value: "bytes=0-1", want: "nn"},
		"other credentials":   {header: "Authorization", value: "Bearer other", want: "nc"},
		"other language":      {header: "Accept-Language", value: "ja", want: "nc"},
		"method, not GET":     {method: "HEAD", want: "nn"},
		"method that changes": {method: "DELETE", want: "nn"},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newOrigin(t, nil, "Cache-Control: max-age=60")
			s.hits(t, b, &abi.HTTPRequest{URL: "https://a.test/x"}, 0)
			head := &abi.HTTPRequest{Method: c.method, URL: "https://a.test/x"}
			if c.header != "" {
				head.Headers = map[string][]string{c.header: {c.value}}
			}
			if got := s.hits(t, b, head, 0, 30*time.Second); got != c.want {
				t.Errorf("answers from %s, want %s", got, c.want)
			}
		})
	}
}

func TestOnlyIfCached(t *testing.T) {
	t.Parallel()
	s, b := newOrigin(t, nil, "Cache-Control: max-age=60")
	a, err := do(t, b, &abi.HTTPRequest{URL: "https://a.test/x",
		Headers: map[string][]string{"Cache-Control": {"only-if-cached"}}}, "")
	if err != nil || a.Status != 504 || len(s.asked) != 0 {
		t.Errorf("status %d, %v, %d requests", a.Status, err, len(s.asked))
	}
}

func TestCacheConfirms(t *testing.T) {
	t.Parallel()
	s, b := newOrigin(t, nil, "Cache-Control: max-age=60", `ETag: "x"`, "Last-Modified: Fri, 02 Jan 2026 03:00:00 GMT",
		"X-Version: 1", "Content-Type: text/x", "Age: 50")
	mustGet(t, b, "https://a.test/x")
	s.now = s.now.Add(11 * time.Second)
	s.headers = s.headers[:5]
	s.headers[3], s.headers[4] = "X-Version: 2", "Content-Type: text/changed"
	a := mustGet(t, b, "https://a.test/x")
	if a.body != "answer 1" || a.Status != 200 || a.Header.Get("Age") != "0" {
		t.Errorf("got %d %q with %v", a.Status, a.body, a.Header)
	}
	if a.Header.Get("X-Version") != "2" || a.Header.Get("Content-Type") != "text/x" {
		t.Errorf("headers %v: those of the confirmation belong in, but for the body's", a.Header)
	}
	asked := s.asked[len(s.asked)-1].Header
	if asked.Get("If-None-Match") != `"x"` || asked.Get("If-Modified-Since") != "Fri, 02 Jan 2026 03:00:00 GMT" {
		t.Errorf("asked with %v", asked)
	}
	s.now = s.now.Add(30 * time.Second)
	if a = mustGet(t, b, "https://a.test/x"); len(s.asked) != 2 || a.Header.Get("Age") != "30" {
		t.Errorf("%d requests, Age %s: the confirmed answer is fresh again", len(s.asked), a.Header.Get("Age"))
	}
	s.now, s.headers[1] = s.now.Add(time.Hour), `ETag: "y"`
	if a = mustGet(t, b, "https://a.test/x"); a.body != "answer 3" {
		t.Errorf("got %q after a change", a.body)
	}
}

func TestCacheInvalidation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, url string
		status      int
		want        string
	}{
		"change":            {"POST", "https://a.test/x", 201, "n"},
		"change elsewhere":  {"POST", "https://a.test/y", 201, "c"},
		"change refused":    {"PUT", "https://a.test/x", 409, "c"},
		"no change":         {"OPTIONS", "https://a.test/x", 200, "c"},
		"change, all kinds": {"DELETE", "https://a.test/x", 303, "n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newOrigin(t, nil, "Cache-Control: max-age=60")
			head := &abi.HTTPRequest{URL: "https://a.test/x", Headers: map[string][]string{"Accept": {"text/x"}}}
			s.hits(t, b, head, 0)
			s.status = c.status
			if _, err := do(t, b, &abi.HTTPRequest{Method: c.method, URL: c.url}, ""); err != nil {
				t.Fatal(err)
			}
			s.status = 200
			if got := s.hits(t, b, head, 0); got != c.want {
				t.Errorf("answer from %s, want %s", got, c.want)
			}
		})
	}
}

func TestCacheKeepsWholeAnswersOnly(t *testing.T) {
	t.Parallel()
	s, b := newOrigin(t, nil, "Cache-Control: max-age=60")
	call := &broker.Call{}
	resp, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: "https://a.test/x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = resp.Body.Read(make([]byte, 1))
	_ = call.Close()
	if got := s.hits(t, b, &abi.HTTPRequest{URL: "https://a.test/x"}, 0, 0); got != "nc" {
		t.Errorf("answers from %s, want nc", got)
	}
}

func TestNoStoreRequestIsNotStored(t *testing.T) {
	t.Parallel()
	s, b := newOrigin(t, nil, "Cache-Control: max-age=60")
	s.hits(t, b, &abi.HTTPRequest{URL: "https://a.test/x",
		Headers: map[string][]string{"Cache-Control": {"no-store"}}}, 0)
	if got := s.hits(t, b, &abi.HTTPRequest{URL: "https://a.test/x"}, 0); got != "n" {
		t.Errorf("answer from %s, want n", got)
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	s, b := newOrigin(t, &Options{CacheBytes: 10_000}, "Cache-Control: max-age=60")
	for i := range 100 {
		mustGet(t, b, fmt.Sprintf("https://a.test/%d", i))
		mustGet(t, b, "https://a.test/0")
	}
	if b.cache.size > 10_000 || len(b.cache.byKey) != b.cache.used.Len() || b.cache.used.Len() < 3 {
		t.Errorf("%d bytes in %d entries, %d keys", b.cache.size, b.cache.used.Len(), len(b.cache.byKey))
	}
	if len(s.asked) != 100 {
		t.Errorf("%d requests, want 100: what is used stays", len(s.asked))
	}
	network(func(*http.Request) (*http.Response, error) {
		return reply(200, strings.Repeat("x", 3000), "Cache-Control: max-age=60"), nil
	}).under(b)
	before := b.cache.used.Len()
	mustGet(t, b, "https://a.test/large")
	if b.cache.used.Len() != before {
		t.Error("an answer larger than a quarter of the cache was kept")
	}
}

func TestCacheOff(t *testing.T) {
	t.Parallel()
	s, b := newOrigin(t, &Options{CacheBytes: -1}, "Cache-Control: max-age=60")
	if got := s.hits(t, b, &abi.HTTPRequest{URL: "https://a.test/x"}, 0, 0); got != "nn" {
		t.Errorf("answers from %s", got)
	}
}

func FuzzDirectives(f *testing.F) {
	for _, seed := range []string{"max-age=60", `private="a,b", no-cache`, `"`, "=,=", ",,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for name := range directives(http.Header{"Cache-Control": {value}}) {
			if name == "" || strings.ToLower(name) != name {
				t.Errorf("%q: directive %q", value, name)
			}
		}
	})
}
