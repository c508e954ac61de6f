package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
)

// TestDotEnv: variables of .env beside the configuration count after those of the environment. It needs a process of
// its own, whose environment it is.
func TestDotEnv(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".env"), []byte("HAKO_LOCALE=ja\nHAKO_LOG_LEVEL=debug\n"))
	show := func() string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-C", dir, "config", "show")
		cmd.Env = append(os.Environ(), asProgram+"=1", "HAKO_LOG_LEVEL=warn")
		out, _ := cmd.CombinedOutput() // what it says is looked at
		return string(out)
	}
	if out := show(); !regexp.MustCompile(`locale +ja +env HAKO_LOCALE`).MatchString(out) ||
		!regexp.MustCompile(`log.level +warn +env`).MatchString(out) {
		t.Errorf("got %s", out)
	}
	put(t, filepath.Join(dir, ".env"), []byte("A=1\nsecret\n"))
	if out := show(); !strings.Contains(out, ".env:2: a line must be NAME=VALUE") || strings.Contains(out, "secret") {
		t.Errorf("got %s", out)
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	good := approved(t, "")
	invoke(t, good, "config", "check").want(t, exitOK, filepath.Join(good, "hako.yaml")+" is valid")
	invoke(t, t.TempDir(), "config", "check").want(t, exitOK, "the built-in default is valid")
	tests := map[string]struct{ configuration, want string }{
		"an unknown key":    {"mok: true\n", `hako.yaml:2:1: unknown key "mok": did you mean "mock"?`},
		"exposure":          {"http: {address: '0.0.0.0:8420'}\n", "can be reached from other machines"},
		"a token":           {"http: {auth: {tokens: [{name: x, hash: y}]}}\n", "its hash is not"},
		"a plugin's config": {"plugin: {probe: {config: {base_ulr: x}}}\n", `did you mean "base_url"?`},
		"half of TLS":       {"http: {tls: {cert: x}}\n", "http.tls: it needs both cert and key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := approved(t, "")
			put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"+test.configuration))
			invoke(t, dir, "config", "check").want(t, exitUsage, test.want)
		})
	}
}

// TestConfigCheckNames checks that names in the configuration that nothing has are told.
func TestConfigCheckNames(t *testing.T) {
	t.Parallel()
	dir := approved(
		t,
		"shipped: {mounts: {nothing: .}}\nplugin: {porbe: {limits: {time: 1s}}}\ntenants: {acme: {plugin: {prob: {config: {a: 1}}}}}\n",
	)
	for _, command := range [][]string{{"config", "check"}, {"doctor"}} {
		invoke(t, dir, command...).want(t, exitOK,
			"plugin.porbe has no effect: no plugin has this name: did you mean probe?",
			"shipped.mounts.nothing has no effect: no mount has this name", "tenants.acme.plugin.prob has no effect")
	}
}

func TestConfigShow(t *testing.T) {
	t.Parallel()
	dir := approved(t, "http:\n  address: 127.0.0.1:9999\n")
	invoke(t, dir, "config", "show", "--log-level", "warn").want(t, exitOK, "# "+filepath.Join(dir, "hako.yaml"),
		"hako.yaml:3", "flag --log-level", "env HAKO_CACHE", "default", "nothing outside of its sandbox")
	var shown struct {
		File   string
		Values []config.Entry
		Grants []inspect.Grants
	}
	if err := json.Unmarshal([]byte(invoke(t, dir, "config", "show", "--json").stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.File != filepath.Join(dir, "hako.yaml") || len(shown.Grants) != 1 || shown.Grants[0].Plugin != "probe" {
		t.Errorf("got %+v", shown)
	}
	values := map[string]config.Entry{}
	for _, e := range shown.Values {
		values[e.Key] = e
	}
	if e := values["http.address"]; e.Value != "127.0.0.1:9999" || e.Origin != "hako.yaml:3" {
		t.Errorf("http.address is %+v", e)
	}
}

// TestDefaultConfig: what is built in is what the documentation shows.
func TestDefaultConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	invoke(t, dir, "config", "show").want(t, exitOK, "# the built-in default", "shipped.enabled",
		"shipped.mounts.workspace", filepath.Join(dir, "workspace"), "built-in default:")
}

// TestShippedDisabled: shipped plugins are switched off one by one, and a wrong name is an error.
func TestShippedDisabled(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	options := must(server.HostOptions(&config.Config{ShippedOn: true, ShippedDisabled: []string{"shell", "sheets"}},
		shippedPlugins()))
	if len(options.Shipped) != len(shippedPlugins())-2 ||
		slices.ContainsFunc(options.Shipped, func(s host.Shipped) bool {
			return s.File == "shell.wasm" || s.File == "sheets.wasm"
		}) {
		t.Errorf("%d of %d are left", len(options.Shipped), len(shippedPlugins()))
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("shipped: {enabled: true, disabled: [shel]}\n"))
	invoke(t, dir, "tools").want(t, exitUsage, `hako ships no plugin "shel": name some of`)
}
