package console_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/manifest"
)

// needs is the role that each endpoint needs; "" is for no role.
var needs = map[string]console.Role{
	"GET session": "", "POST login": "", "GET oidc/login": "", "GET oidc/callback": "",
	"POST logout":  console.Viewer,
	"GET overview": console.Viewer, "GET plugins": console.Viewer, "GET plugins/{name}": console.Viewer,
	"GET tools": console.Viewer, "GET tools/{name}": console.Viewer, "GET approvals": console.Viewer,
	"GET audit": console.Viewer, "GET audit/export": console.Viewer, "GET audit/verification": console.Viewer, "POST audit/verify": console.Viewer,
	"GET calls": console.Viewer, "GET series": console.Viewer, "GET series/top": console.Viewer,
	"GET calls/running": console.Viewer, "GET calls/finished": console.Viewer, "GET calls/{id}": console.Viewer,
	"POST calls/{id}/stop": console.Admin,
	"GET errors":           console.Viewer,
	"GET configuration":    console.Viewer, "GET upstreams": console.Viewer, "GET credentials": console.Viewer,
	"GET replicas":                 console.Viewer,
	"GET approvals/{id}/arguments": console.Viewer,
	"POST approvals/{id}":          console.Approver,
	"GET approvals/{id}/rules":     console.Approver,
	"POST approvals/{id}/rules":    console.Admin,
	"POST plugins/{name}/review":   console.Admin,
	"POST plugins/{name}/approve":  console.Admin,
	"POST plugins/{name}/revoke":   console.Admin,
	"POST plugins/{name}/newer":    console.Admin,
	"POST plugins/{name}/update":   console.Admin,
	"POST plugins/{name}/previous": console.Admin,
	"POST plugins/{name}/rollback": console.Admin,
	"POST plugins/{name}/remove":   console.Admin,
	"POST tools/{name}/call":       console.Admin,
	"POST configuration/reload":    console.Admin,
	"GET sessions":                 console.Admin,

	"GET clients": console.Viewer, "POST clients/{id}/end": console.Admin,
	"GET slack":         console.Viewer,
	"GET plugin-folder": console.Admin, "POST plugin-folder/read/file": console.Admin,
	"POST plugin-folder/read/url": console.Admin, "POST plugin-folder/add/file": console.Admin,
	"POST plugin-folder/add/url": console.Admin,
	"GET index":                  console.Admin, "POST index/read": console.Admin, "POST index/add": console.Admin,
	"GET index/servers": console.Admin,
	"GET tokens":        console.Admin, "POST tokens": console.Admin, "POST tokens/{id}/revoke": console.Admin,
	"GET blocks": console.Admin, "POST blocks": console.Admin, "POST blocks/remove": console.Admin,
	"GET logins": console.Admin, "POST logins/{id}/end": console.Admin,

	"GET toolsets": console.Viewer, "GET toolsets/{name}": console.Viewer, "POST toolsets/preview": console.Admin,
	"POST toolsets/rules/preview": console.Admin,
	"GET policy":                  console.Viewer, "GET policy/table": console.Viewer, "POST policy/explain": console.Viewer,
	"GET policy/text": console.Admin, "POST policy/try": console.Admin,
}

func TestRoles(t *testing.T) {
	t.Parallel()
	names := console.RouteNames()
	for _, name := range names {
		if _, ok := needs[name]; !ok {
			t.Errorf("%s: nobody has decided who may use it", name)
		}
	}
	if len(names) != len(needs) {
		t.Errorf("there are %d endpoints, and roles for %d", len(names), len(needs))
	}
	w := newWorld(t, nil)
	w.offer("tools", echo, manifest.Tool{Name: "echo"})
	for _, role := range append([]console.Role{""}, console.Roles...) {
		for _, name := range names {
			if name == "GET calls" || name == "POST logout" {
				continue // one does not end, the other does; they have tests of their own
			}
			b := w.browser()
			if role != "" {
				b = w.as(role)
			}
			method, path, _ := strings.Cut(name, " ")
			got := b.do(method, strings.NewReplacer("{name}", "echo", "{id}", "apr_1").Replace(path),
				map[string]string{}, func(r *http.Request) {
					if strings.HasSuffix(name, "/file") {
						r.Header.Set("Content-Type", "application/wasm")
					}
				})
			checkRole(t, name, role, got)
		}
	}
}

func checkRole(t *testing.T, name string, role console.Role, got *answer) {
	t.Helper()
	needed := needs[name]
	may := slices.Index(console.Roles, role) >= slices.Index(console.Roles, needed)
	refused := got.code() == "forbidden" || got.code() == "unauthenticated"
	switch {
	case may && refused:
		t.Errorf("%s as %q: refused: %s", name, role, got.body)
	case !may && role == "" && (got.status != http.StatusUnauthorized || got.code() != "unauthenticated"):
		t.Errorf("%s as nobody: %d %s", name, got.status, got.body)
	case !may && role != "":
		var body struct{ Error struct{ Role console.Role } }
		_ = json.Unmarshal([]byte(got.body), &body)
		if got.status != http.StatusForbidden || body.Error.Role != needed ||
			!strings.Contains(got.body, string(needed)) {
			t.Errorf("%s as %s: %d %s, want the role %s that it needs", name, role, got.status, got.body, needed)
		}
	}
}

func TestNobodyChangesAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	called := false
	w.offer("tools", backendFunc(func() { called = true }), manifest.Tool{Name: "echo"})
	for _, role := range []console.Role{console.Viewer, console.Approver} {
		w.as(role).post("tools/echo/call", map[string]any{"arguments": map[string]any{}})
	}
	w.browser().post("tools/echo/call", map[string]any{"arguments": map[string]any{}})
	if called {
		t.Error("a tool was called by who may not")
	}
}
