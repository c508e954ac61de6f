package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/console"
)

type createdToken struct {
	Text  string
	Token console.TokenItem
}

// logIn is a browser of somebody who is logged in with a token.
func (w *world) logIn(token string) *browser {
	w.t.Helper()
	b := w.browser()
	if got := b.post("login", map[string]string{"token": token}); got.status != http.StatusOK {
		w.t.Fatalf("log in: %d %s", got.status, got.body)
	}
	return b
}

// TestTokens: an admin creates a token for another person, who logs in with it until the admin revokes it.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	admin := w.as(console.Admin)
	var created createdToken
	admin.post("tokens", map[string]any{"name": "mori-laptop", "user": "mori@example.com", "role": "approver",
		"expires": w.store.Time().Add(time.Hour).UTC()}).into(t, &created)
	if !strings.HasPrefix(created.Text, created.Token.ID) || created.Token.Creator != "admin" ||
		created.Token.State != "valid" || created.Token.Role != console.Approver {
		t.Errorf("created %+v", created.Token)
	}
	mori := w.logIn(created.Text)
	if got := mori.get("session"); !strings.Contains(got.body, `"name":"mori@example.com","role":"approver","via":"token"`) {
		t.Errorf("session: %s", got.body)
	}
	server := w.serve()
	watching := mori.watch(server)
	go func() { _ = w.Run(t.Context()) }()

	list := admin.get("tokens")
	var items struct{ Items []console.TokenItem }
	list.into(t, &items)
	if strings.Contains(list.body, created.Text) || strings.Contains(list.body, "sha256") {
		t.Errorf("the list has secrets: %s", list.body)
	}
	if n := len(items.Items); n != 3 || items.Items[0].Name != "mori-laptop" || items.Items[1].Setting != "console.tokens" ||
		items.Items[2].Setting != "http.auth.tokens" || items.Items[2].ID != "" {
		t.Errorf("%d items: %s", n, list.body)
	}
	var revoked console.TokenItem
	admin.post("tokens/"+created.Token.ID+"/revoke", map[string]any{}).into(t, &revoked)
	if revoked.State != "revoked" || revoked.Revoker != "admin" {
		t.Errorf("revoked %+v", revoked)
	}
	watching.until("end", `{"reason":"revoked"}`)
	if got := mori.get("overview"); got.status != http.StatusUnauthorized {
		t.Errorf("the session after that: %d", got.status)
	}
	if got := w.browser().post("login", map[string]string{"token": created.Text}); got.status != http.StatusUnauthorized {
		t.Errorf("a login after that: %d", got.status)
	}
	if got := admin.post("tokens/"+created.Token.ID+"/revoke", map[string]any{}); got.status != http.StatusNotFound {
		t.Errorf("revoked twice: %d %s", got.status, got.body)
	}
	records := w.records()
	for _, want := range []string{"token.create begun admin", "token.create ok admin", "token.revoke begun admin",
		"token.revoke ok admin", "token.revoke failed admin"} {
		if !strings.Contains(records, want) {
			t.Errorf("the audit log has no %q:\n%s", want, records)
		}
	}
}

// TestHostileTokenNames: nobody but an admin's own page creates, lists or revokes tokens, and no name deceives.
func TestHostileTokenNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	admin := w.as(console.Admin)
	var mcp createdToken
	admin.post("tokens", map[string]any{"name": "agent", "scopes": []string{"tools"}}).into(t, &mcp)
	if got := w.browser().post("login", map[string]string{"token": mcp.Text}); got.status != http.StatusUnauthorized {
		t.Errorf("an MCP client's token logs in to the console: %d", got.status)
	}
	for name, body := range map[string]any{
		"control characters": map[string]any{"name": "ci\x1b[2J"}, "a line break": map[string]any{"name": "ci\nadmin"},
		"another direction": map[string]any{"name": "ci\u202enimda"}, "no name": map[string]any{"name": ""},
		"no role": map[string]any{"name": "ci", "role": "root"}, "a hash": map[string]any{"name": "ci", "hash": "sha256:00"},
		"an end that has passed": map[string]any{"name": "ci", "expires": "2001-01-01T00:00:00Z"},
		"an end that is none":    map[string]any{"name": "ci", "expires": "soon"},
		"scopes of two words":    map[string]any{"name": "ci", "scopes": []string{"a b"}},
	} {
		if got := admin.post("tokens", body); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, taken := range []string{"agent", "viewer-token", "ci"} { // in the store, and in the configuration
		if got := admin.post("tokens", map[string]any{"name": taken}); got.status != http.StatusConflict {
			t.Errorf("%s: %d %s", taken, got.status, got.body)
		}
	}
	for _, which := range []string{"viewer-token", "%2e%2e", "hako_", "%00", "%ff", "a%00"} {
		if got := admin.post("tokens/"+which+"/revoke", map[string]any{}); got.status != http.StatusNotFound {
			t.Errorf("revoke %s: %d %s", which, got.status, got.body)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"no CSRF token": func(r *http.Request) { r.Header.Del("X-Hako-CSRF") },
		"another site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		if got := admin.do("POST", "tokens", map[string]any{"name": "forged"}, change); got.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, got.status)
		}
		if got := admin.do("POST", "tokens/"+mcp.Token.ID+"/revoke", map[string]any{}, change); got.status != http.StatusForbidden {
			t.Errorf("%s: revoke: %d", name, got.status)
		}
	}
	if got := admin.get("tokens"); strings.Contains(got.body, "forged") || !strings.Contains(got.body, `"state":"valid"`) {
		t.Errorf("after that: %s", got.body)
	}
	if records := w.records(); strings.Contains(records, mcp.Text) {
		t.Error("the audit log has a token")
	}
}
