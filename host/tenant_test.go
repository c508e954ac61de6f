package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// TestTenants checks that a tenant's callers get the tenant's configuration, and everybody else what is set for all.
func TestTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) {
		o.Shipped = []host.Shipped{{File: "greeter.wasm", Wasm: guesttest.Bytes(plugin(t, "greeter"))}}
		o.Settings = map[string]host.Settings{"greeter": {Config: map[string]any{"word": "Hi"}}}
		o.Tenants = map[string]host.Tenant{
			"acme":  {Config: map[string]map[string]any{"greeter": {"word": "Ahoy"}}},
			"other": {Config: map[string]map[string]any{"unknown": {"word": "Bye"}}},
		}
	})
	w.load()
	for tenant, want := range map[string]string{"": "Hi", "acme": "Ahoy", "other": "Hi", "nobody": "Hi"} {
		result, err := w.Call(t.Context(), &pipeline.Call{
			Caller:  pipeline.Caller{Frontend: pipeline.FrontendTerminal, Tenant: tenant},
			Request: abi.Request{Method: abi.CallTool, Name: "greet", Arguments: []byte(`{"name":"Aki"}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Response.Content[0].Text; !strings.HasPrefix(got, want+",") {
			t.Errorf("tenant %q: %s, want %s", tenant, got, want)
		}
	}
}

// TestToolsOfATenant checks that a tool is listed where the tenant's configuration has a value that the tool's "when"
// names.
func TestToolsOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *host.Options) {
		o.Shipped = []host.Shipped{{File: "greeter.wasm",
			Wasm: guesttest.Bytes(plugin(t, "greeter", "    description: Greets.\n",
				"    description: Greets.\n    when: {word: [Ahoy]}\n"))}}
		o.Settings = map[string]host.Settings{"greeter": {Config: map[string]any{"word": "Hi"}}}
		o.Tenants = map[string]host.Tenant{"acme": {Config: map[string]map[string]any{"greeter": {"word": "Ahoy"}}}}
		o.Toolsets = &toolset.Config{Search: toolset.Search{Tokens: 1}}
	})
	w.load()
	tool, ok := w.Catalog().View().Tool("greet")
	if !ok {
		t.Fatal("there is no such tool")
	}
	for tenant, want := range map[string]bool{"": false, "acme": true, "other": false} {
		if got := w.Visible(pipeline.Caller{Frontend: pipeline.FrontendTerminal, Tenant: tenant}, tool); got != want {
			t.Errorf("tenant %q sees the tool: %v, want %v", tenant, got, want)
		}
		deferred := w.Deferred(pipeline.Caller{Frontend: pipeline.FrontendTerminal, Tenant: tenant})
		if got := slices.ContainsFunc(deferred, func(t *catalog.Tool) bool { return t.Name == "greet" }); got != want {
			t.Errorf("tenant %q has the tool among the deferred ones: %v, want %v", tenant, got, want)
		}
	}
}

func TestTenantConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	tied := plugin(t, "greeter", "#permissions", `  server: {type: url}
permissions: {http: [{name: api, url: "https://api.example.com/", configKey: server, reason: r}]}`)
	for name, test := range map[string]struct {
		config map[string]any
		want   string
	}{
		"wrong type": {map[string]any{"word": 5},
			"tenants.acme.plugin.greeter.config in hako.yaml: word: must be a text"},
		"unknown key": {map[string]any{"wrod": "x"}, `did you mean "word"?`},
		"address": {map[string]any{"server": "https://api.example.com/acme"},
			"server: is the address that the HTTP permission api is granted for, which is the same for all tenants: set it under plugin.greeter.config"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *host.Options) {
				o.Shipped = []host.Shipped{{File: "greeter.wasm", Wasm: guesttest.Bytes(tied)}}
				o.Tenants = map[string]host.Tenant{"acme": {Config: map[string]map[string]any{"greeter": test.config}}}
			})
			w.load()
			if status := w.Plugins()[0]; status.State != host.Broken || !strings.Contains(status.Reason, test.want) {
				t.Errorf("%s: %s, want %s", status.State, status.Reason, test.want)
			}
		})
	}
}

// TestTenantsOfExtismGuests: such a plugin was asked for its tools under one configuration, which therefore holds for
// all tenants.
func TestTenantsOfExtismGuests(t *testing.T) {
	t.Parallel()
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/extism"),
		map[string][]byte{abi.ManifestSection: []byte("name: guest\nversion: 1.0.0\nconfig: {tools: {type: string}}\n")})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *host.Options) {
		o.Shipped = []host.Shipped{{File: "guest.wasm", Wasm: guesttest.Bytes(wasm)}}
		o.Tenants = map[string]host.Tenant{"acme": {Config: map[string]map[string]any{"guest": {"tools": "x"}}}}
	})
	w.load()
	if s := w.Plugins()[0]; s.State != host.Broken ||
		!strings.Contains(s.Reason, "one configuration for all tenants: set it under plugin.guest.config") {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
}
