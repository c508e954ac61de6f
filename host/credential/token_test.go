package credential

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// FuzzReply: an accepted reply of an authorization server has a token that is a valid header value and a plausible
// expiry.
func FuzzReply(f *testing.F) {
	f.Add(200, []byte(`{"access_token":"0123456789","token_type":"Bearer","expires_in":"3600","created_at":1800000000,"company_id":12}`))
	f.Add(200, []byte(`{"access_token":"0123456789","expires_in":1e300,"company_id":{"a":"b"},"error":null}`))
	f.Add(400, []byte(`{"error":"invalid_grant","error_description":"refresh-secret \u0000\u001b[31m"}`))
	f.Add(200, []byte(`{"error":7}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 599 {
			return
		}
		b, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		b.client.Transport = roundTrip(func(*http.Request) *http.Response {
			w := httptest.NewRecorder()
			w.WriteHeader(max(status, 200))
			_, _ = w.Write(body)
			return w.Result()
		})
		reply, err := b.ask(t.Context(), "https://a.example/token",
			map[string][]string{"refresh_token": {"refresh-secret"}})
		if err != nil {
			if text := err.Error(); strings.Contains(text, "refresh-secret") ||
				strings.ContainsAny(text, "\n\x00\x1b") || len(text) > 2000 {
				t.Errorf("the error holds what it should not: %q", text)
			}
			return
		}
		if err := checkToken(reply.AccessToken); err != nil || max(status, 200) != 200 {
			t.Errorf("status %d, %q is taken: %v", status, reply.AccessToken, err)
		}
		now := time.Now()
		if expires := reply.expires(now); !expires.IsZero() && (!expires.After(now) ||
			expires.Before(reply.issued(now))) {
			t.Errorf("it expires at %v", expires)
		}
		for name, fact := range reply.facts([]string{"company_id"}) {
			if name != "company_id" || fact == "" || len(fact) > 100 {
				t.Errorf("fact %s: %q", name, fact)
			}
		}
	})
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
