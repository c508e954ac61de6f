package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/console"
)

// TestBlocks: an admin blocks a user at one issuer and at all, and undoes it, which is recorded. Nobody else does.
func TestBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *console.Options) {
		o.Settings = settings{issuers: []string{"https://a.example", "https://b.example"}}
	})
	mori := map[string]any{"user": "mori@example.com"}
	for _, role := range []console.Role{console.Viewer, console.Approver} {
		b := w.as(role)
		for _, got := range []*answer{b.get("blocks"), b.post("blocks", mori), b.post("blocks/remove", mori)} {
			if got.status != http.StatusForbidden {
				t.Errorf("%s: %d %s", role, got.status, got.body)
			}
		}
	}
	admin := w.as(console.Admin)
	issuers := func(got *answer) string {
		t.Helper()
		var list struct {
			Items   []struct{ User, Issuer, By string }
			Issuers []string
		}
		got.into(t, &list)
		var at []string
		for _, b := range list.Items {
			if b.User != "mori@example.com" || b.By != "admin" {
				t.Errorf("blocked %+v", b)
			}
			at = append(at, b.Issuer)
		}
		return strings.Join(at, " ")
	}
	one := map[string]any{"user": "mori@example.com", "issuer": "https://a.example"}
	for _, step := range []struct {
		route string
		body  map[string]any
		want  string
	}{
		{"blocks", one, "https://a.example"},
		{"blocks", mori, "https://a.example https://b.example"},
		{"blocks/remove", one, "https://b.example"},
	} {
		if got := issuers(admin.post(step.route, step.body)); got != step.want {
			t.Errorf("%s %v: %s, want %s", step.route, step.body, got, step.want)
		}
	}
	if got := issuers(admin.get("blocks")); got != "https://b.example" {
		t.Errorf("listed %s", got)
	}
	for name, test := range map[string]struct {
		route  string
		body   map[string]any
		status int
	}{
		"no name":                {"blocks", map[string]any{"user": ""}, http.StatusBadRequest},
		"hidden characters":      {"blocks", map[string]any{"user": "mori\u202e"}, http.StatusBadRequest},
		"another issuer":         {"blocks", map[string]any{"user": "x", "issuer": "https://c.example"}, http.StatusNotFound},
		"who is not blocked":     {"blocks/remove", one, http.StatusNotFound},
		"fields of other bodies": {"blocks", map[string]any{"user": "x", "by": "somebody"}, http.StatusBadRequest},
	} {
		if got := admin.post(test.route, test.body); got.status != test.status {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	records := w.records()
	for _, want := range []string{"user.block begun admin", "user.block ok admin", "user.unblock ok admin", "user.unblock failed admin"} {
		if !strings.Contains(records, want) {
			t.Errorf("the audit log has no %q:\n%s", want, records)
		}
	}
}

// TestBlocksWithoutIssuers: there is nothing to block at if no issuer is configured.
func TestBlocksWithoutIssuers(t *testing.T) {
	t.Parallel()
	got := newWorld(t, nil).as(console.Admin).post("blocks", map[string]any{"user": "mori@example.com"})
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, "no issuer is configured") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
