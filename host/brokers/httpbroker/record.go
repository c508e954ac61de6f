package httpbroker

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// redacted replaces a secret in a recording.
const redacted = "REDACTED"

// sendRecorded sends r and records the exchange. The whole body is read first.
func (b *Broker) sendRecorded(ctx context.Context, r *request) (*Response, error) {
	resp, err := b.sendRenewing(ctx, r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	b.record(newExchange(r, resp.Status, resp.Header, body))
	return bytesResponse(resp.Status, resp.Header, body, SourceNetwork), nil
}

// newExchange returns the exchange for a recording. It omits request headers, cookies and all that is named like a
// credential.
func newExchange(r *request, status int, header http.Header, body []byte) Exchange {
	x := Exchange{Request: RecordedRequest{Method: r.method, URL: r.target.shown()},
		Response: RecordedResponse{Status: status}}
	if r.target.query != "" {
		x.Request.URL += "?" + redactQuery(r.target.query)
	}
	if sent := redactBody(r.header.Get("Content-Type"), r.body); utf8.Valid(sent) {
		x.Request.Body = string(sent)
	}
	x.Response.Headers = redactHeader(header)
	x.Response.setBody(redactBody(header.Get("Content-Type"), body))
	return x
}

// secrets are names of fields with secrets, in lower case without "-", "_" and ".". Page tokens are no secrets.
var secrets = []string{
	"token", "accesstoken", "refreshtoken", "idtoken", "authtoken", "bearertoken", "sessiontoken", "securitytoken",
	"privatetoken", "csrftoken",
	"apikey", "apitoken", "secret", "clientsecret", "apisecret", "secretkey", "privatekey", "accesskey", "accesskeyid",
	"password", "passwd", "pwd", "passphrase", "credential", "credentials", "authorization", "jwt",
	"assertion", "clientassertion",
	"session", "sessionid", "cookie", "xamzsignature", "xamzcredential", "xamzsecuritytoken",
	"xgoogsignature", "xgoogcredential",
}

// parameters are further names of secrets in queries and forms. In JSON they have other meanings.
var parameters = []string{"key", "code", "codeverifier", "sig", "signature", "auth", "hapikey", "appid"}

func isSecret(name string, also ...string) bool {
	name = strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(name))
	return slices.Contains(secrets, name) || slices.Contains(also, name)
}

// redactQuery replaces secrets and sorts the parameters by name, keeping the order of equal names.
func redactQuery(query string) string {
	type parameter struct{ name, value string }
	var all []parameter
	for field := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(strings.ReplaceAll(field, "+", " "), "=")
		p := parameter{unescape(name, ""), unescape(value, "")}
		if isSecret(p.name, parameters...) {
			p.value = redacted
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for i, p := range all {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(p.name) + "=" + url.QueryEscape(p.value))
	}
	return b.String()
}

// redactBody replaces secrets in forms and JSON. A body without secrets is unchanged, except for the order of a form's
// fields.
func redactBody(contentType string, body []byte) []byte {
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "application/x-www-form-urlencoded" {
		return []byte(redactQuery(string(body)))
	}
	v, err := decodeJSON(body)
	if err != nil || !redactJSON(v) {
		return body
	}
	clean, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return clean
}

// redactJSON replaces secrets inside v and reports whether there were any.
func redactJSON(v any) (found bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if isSecret(name) && value != nil {
				v[name], found = redacted, true
			} else {
				found = redactJSON(value) || found
			}
		}
	case []any:
		for _, value := range v {
			found = redactJSON(value) || found
		}
	}
	return found
}

// redactHeader removes cookies and all headers that are named like credentials, and redacts the URLs of redirects.
func redactHeader(h http.Header) RecordedHeader {
	out := RecordedHeader(maps.Clone(h))
	maps.DeleteFunc(out, func(name string, _ []string) bool {
		name = strings.ToLower(name)
		return slices.ContainsFunc([]string{"cookie", "auth", "token", "secret", "session", "api-key",
			"apikey"}, func(part string) bool {
			return strings.Contains(name, part)
		})
	})
	for _, name := range []string{"Location", "Content-Location"} {
		if values, ok := out[name]; ok {
			out[name] = []string{redactURL(values[0])}
		}
	}
	return out
}

func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return redacted
	}
	u.User, u.Fragment = nil, ""
	if u.RawQuery != "" {
		u.RawQuery = redactQuery(u.RawQuery)
	}
	return u.String()
}
