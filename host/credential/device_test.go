package credential

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeviceCode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answers []string // errors before the token
		tokens  bool
		took    time.Duration
		want    string
	}{
		"at once":         {nil, true, 5 * time.Second, ""},
		"pending":         {[]string{"authorization_pending", "authorization_pending"}, true, 15 * time.Second, ""},
		"too fast":        {[]string{"slow_down", "authorization_pending"}, true, 25 * time.Second, ""},
		"declined":        {[]string{"access_denied"}, false, 5 * time.Second, "access_denied"},
		"nobody comes":    {nil, false, 300 * time.Second, "the code has expired: start again"},
		"code is unknown": {[]string{"expired_token"}, false, 5 * time.Second, "expired_token"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := newAuthServer(t)
				answers := test.answers
				s.before = func(w http.ResponseWriter, form url.Values) bool {
					switch {
					case form.Get("grant_type") == "": // requests the code
						reply(w, 200, map[string]any{"device_code": "device-secret", "user_code": "WDJB-MJHT",
							"verification_uri": "https://a.example/device", "expires_in": 300})
					case form.Get("device_code") != "device-secret":
						t.Errorf("sent %v", form)
					case len(answers) > 0:
						reply(w, 400, map[string]any{"error": answers[0]})
						answers = answers[1:]
					case !test.tokens:
						reply(w, 400, map[string]any{"error": "authorization_pending"})
					default:
						return false
					}
					return true
				}
				b := newBroker(t, options(dir, Spec{
					Provider: OAuth2, ClientID: "client", ClientSecret: command("echo", "client-secret"),
					TokenURL: "http://127.0.0.1:1/token", DeviceURL: "http://127.0.0.1:1/token",
					Scopes: []string{"a", "b"},
				}))
				b.client.Transport = s
				if !b.OnlyDevice("", "freee") {
					t.Error("there is another way")
				}
				start := time.Now()
				var shown DeviceCode
				status, err := b.ConnectDevice(t.Context(), "", "freee", func(c DeviceCode) { shown = c })
				if took := time.Since(start); took != test.took || shown.UserCode != "WDJB-MJHT" ||
					shown.URL != "https://a.example/device" {
					t.Errorf("took %v, want %v; shown %+v", took, test.took, shown)
				}
				if test.want == "" && (err != nil || status.State != Ready) ||
					test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%+v, %v, want %q", status, err, test.want)
				}
				if s.posts[0].Get("scope") != "a b" {
					t.Errorf("sent %v", s.posts[0])
				}
				b.Close()
			})
		})
	}
}
