package inspect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

func TestFind(t *testing.T) {
	t.Parallel()
	plugins := []host.Status{
		{Path: "a/weather.wasm", Name: "weather", State: host.Conflict},
		{Path: "b/weather.wasm", Name: "weather", State: host.Active},
		{Path: "c/broken.wasm", State: host.Broken},
	}
	for _, test := range []struct{ name, file, path, problem string }{
		{name: "weather", path: "b/weather.wasm"}, // not the one with the conflict
		{name: "weather", file: "a/../a/weather.wasm", path: "a/weather.wasm"},
		{name: "broken", path: "c/broken.wasm"},
		{name: "wether", problem: `did you mean "weather"?`},
		{name: "files", problem: "known are weather, weather"},
	} {
		got, err := Find(plugins, test.name, test.file)
		switch {
		case test.problem != "":
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s: %v, want %s", test.name, err, test.problem)
			}
		case err != nil || got.Path != test.path:
			t.Errorf("%s in %q: %+v, %v", test.name, test.file, got, err)
		}
	}
}

func TestNextCommands(t *testing.T) {
	t.Parallel()
	files := host.Status{Name: "files", State: host.Active, Tools: []string{"file_read"}}
	weather := host.Status{Name: "weather", State: host.Active, Tools: []string{"get_weather"}}
	unapproved := host.Status{Name: "shell", State: host.Pending, NeedsConsent: true,
		Because: grant.Reason{Command: "hako plugin approve shell --program ls"}}
	writer := host.Status{Name: "files", State: host.Active, Tools: []string{"file_write"}}
	account := host.Status{Name: "hr", State: host.Pending, Reason: "it waits for a credential"}
	const connect = "hako mcp-config claude-code --url http://host.example/mcp"
	for name, test := range map[string]struct {
		plugins []host.Status
		want    []string // beginnings
	}{
		"nothing":  {nil, []string{"hako plugin new", connect}},
		"any tool": {[]host.Status{files}, []string{"hako tools", connect}},
		"weather":  {[]host.Status{files, weather}, []string{"hako call get_weather location=", connect}},
		"shipped": {[]host.Status{unapproved, writer, weather}, []string{"hako call file_write path=", "hako call get_weather",
			connect, "hako plugin approve shell --program ls"}},
		"unapproved": {[]host.Status{unapproved}, []string{connect, "hako plugin approve shell --program ls"}},
		"an account": {[]host.Status{account, files}, []string{"hako tools", connect, "hako-dev fakes"}},
	} {
		got := NextCommands(&config.Config{}, "http://host.example/mcp", test.plugins)
		if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestResolveCaller(t *testing.T) {
	t.Parallel()
	c := &config.Config{Tenants: map[string]host.Tenant{"acme": {}}}
	c.HTTP.Auth.Tokens = []bearer.Token{{Name: "ci", Tenant: "acme", Scopes: []string{"read"}}}
	caller := policy.Caller{Frontend: "mcp-http", Token: "ci", Scopes: []string{"write"}}
	want := policy.Caller{Frontend: "mcp-http", Token: "ci", User: "ci", Tenant: "acme",
		Scopes: []string{"write", "read"}}
	if err := ResolveCaller(c, &caller, nil); err != nil || !reflect.DeepEqual(caller, want) {
		t.Errorf("%+v, %v, want %+v", caller, err, want)
	}
	for problem, caller := range map[string]policy.Caller{
		`unknown frontend "slak": did you mean "slack"?`: {Frontend: "slak"},
		"no e-mail address":                             {Frontend: "mcp-http", Email: "aki@example.com"},
		`unknown token "cd": did you mean "ci"?`:        {Frontend: "mcp-http", Token: "cd"},
		"such as JWTs and those of 'hako token create'": {Frontend: "mcp-http", Token: "other"},
		"not by its text":                               {Frontend: "mcp-http", Token: "eyJhbGciOiJub25lIn0.e30.secret"},
		`unknown tenant "acne": did you mean "acme"?`:   {Frontend: "slack", Tenant: "acne"},
	} {
		if err := ResolveCaller(c, &caller, nil); err == nil || !strings.Contains(err.Error(), problem) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %s", err, problem)
		}
	}
}

func TestUpstreams(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		server mcpclient.Status
		state  string
		failed bool
	}{
		"up":              {mcpclient.Status{State: mcpclient.Up, Tools: 1, Omitted: []string{"x"}}, "up", false},
		"up and empty":    {mcpclient.Status{State: mcpclient.Up}, "up", false},
		"nothing offered": {mcpclient.Status{State: mcpclient.Up, Omitted: []string{"x"}}, stateUnoffered, true},
		"down":            {mcpclient.Status{State: mcpclient.Down, Error: "refused"}, "down", true},
	} {
		shown, failed := Upstreams([]mcpclient.Status{test.server}, nil)
		if shown[0].State != test.state || failed != test.failed {
			t.Errorf("%s: %s, failed %t", name, shown[0].State, failed)
		}
	}
}

func TestFeedbackWithoutTexts(t *testing.T) {
	t.Parallel()
	list := []chat.Feedback{{Person: "aki", Good: true, Question: "secret", Text: "secret"}}
	if got := Feedback(list, false)[0]; got.Rating != "good" || got.Question+got.Text != "" {
		t.Errorf("%+v", got)
	}
	if got := Feedback(list, true)[0]; got.Question != "secret" || got.Text != "secret" {
		t.Errorf("%+v", got)
	}
}

// TestJSON holds what scripts read: lists that are never null, members that begin with a small letter, and grants with
// their defaults.
func TestJSON(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "empty.wasm")
	if err := os.WriteFile(file, []byte("\x00asm\x01\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := host.Status{Path: file, Name: "empty", Serving: "sha256:1", Manifest: &manifest.Manifest{},
		Grants: grant.Grants{HTTP: []grant.HTTPRule{{Name: "api"}}, Mounts: []grant.Mount{{Name: "data"}}}}
	report, err := New(&plugin, &config.Config{MaxPluginSize: 1 << 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	upstreams, _ := Upstreams(nil, nil)
	for name, value := range map[string]any{"states": List(nil, Signers{}), "grants": GrantsOf(nil), "feedback": Feedback(nil, true),
		"upstream servers": upstreams, "tokens": tokenNames(&config.Config{})} {
		if data, err := json.Marshal(value); err != nil || string(data) != "[]" {
			t.Errorf("no %s: %s, %v", name, data, err)
		}
	}
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if name != strings.ToLower(name[:1])+name[1:] {
			t.Errorf("the member %q begins with a capital", name)
		}
		if name == "tools" && string(value) != "[]" {
			t.Errorf("no tools: %s", value)
		}
	}
	if got := report.Grants; !slices.Equal(got.HTTP[0].Methods, []string{"GET", "HEAD"}) ||
		got.Mounts[0].Access != manifest.ReadOnly {
		t.Errorf("%+v", got)
	}
}

// TestNoTools: functions of a component that cannot be tools are named with the reason.
func TestNoTools(t *testing.T) {
	t.Parallel()
	plugin := host.Status{Path: "../../wasm/component/testdata/counter.wasm", Name: "counter", Manifest: &manifest.Manifest{}}
	report, err := New(&plugin, &config.Config{MaxPluginSize: 1 << 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "hako:counter/counters#[constructor]counter: it belongs to a resource, which callers cannot hold"
	if len(report.NoTools) != 3 || report.NoTools[0] != want {
		t.Errorf("%q", report.NoTools)
	}
}
