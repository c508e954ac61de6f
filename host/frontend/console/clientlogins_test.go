package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/console"
)

// clientLogins are logins of MCP clients for tests.
type clientLogins []*connection.Login

func (l *clientLogins) List(context.Context) ([]*connection.Login, error) { return *l, nil }

func (l *clientLogins) End(_ context.Context, id string) (*connection.Login, error) {
	i := slices.IndexFunc(*l, func(login *connection.Login) bool { return login.ID == id })
	if i < 0 {
		return nil, connection.ErrNoLogin
	}
	ended := (*l)[i]
	*l = slices.Delete(*l, i, i+1)
	return ended, nil
}

// TestClientLogins: an admin sees the logins of MCP clients and ends one, which is recorded. Nobody else does.
func TestClientLogins(t *testing.T) {
	t.Parallel()
	logins := &clientLogins{
		{ID: "ONE", User: "mori@example.com", Tenant: "tokyo", Client: "Claude", Scopes: []string{"tools"},
			Created: time.Unix(1, 0).UTC(), Expires: time.Unix(2, 0).UTC()},
		{ID: "TWO", User: "ken@example.com"},
	}
	w := newWorld(t, func(_ *world, o *console.Options) { o.ClientLogins = logins })
	for _, role := range []console.Role{console.Viewer, console.Approver} {
		b := w.as(role)
		if list, end := b.get("logins"), b.post("logins/ONE/end", map[string]any{}); list.status != http.StatusForbidden ||
			end.status != http.StatusForbidden || len(*logins) != 2 {
			t.Errorf("%s: %d, %d", role, list.status, end.status)
		}
	}
	admin := w.as(console.Admin)
	for name, change := range map[string]func(*http.Request){
		"no CSRF token": func(r *http.Request) { r.Header.Del("X-Hako-CSRF") },
		"another site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		if got := admin.do("POST", "logins/ONE/end", map[string]any{}, change); got.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	want := `{"items":[{"id":"ONE","user":"mori@example.com","tenant":"tokyo","client":"Claude","scopes":["tools"],` +
		`"created":"1970-01-01T00:00:01Z","expires":"1970-01-01T00:00:02Z"},{"id":"TWO"`
	if got := admin.get("logins"); !strings.HasPrefix(got.body, want) {
		t.Errorf("listed %s", got.body)
	}
	var ended connection.Login
	admin.post("logins/ONE/end", map[string]any{}).into(t, &ended)
	if ended.User != "mori@example.com" || len(*logins) != 1 {
		t.Errorf("ended %+v, remaining %v", ended, *logins)
	}
	if got := admin.post("logins/ONE/end", map[string]any{}); got.status != http.StatusNotFound {
		t.Errorf("ended twice: %d %s", got.status, got.body)
	}
	records := w.records()
	for _, want := range []string{"login.end begun admin", "login.end ok admin", "login.end failed admin"} {
		if !strings.Contains(records, want) {
			t.Errorf("the audit log has no %q:\n%s", want, records)
		}
	}
}
