package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/gobuild"
	"github.com/hako-run/hako/pdk/abi"
)

// asProgram makes the test binary be hako itself, for tests that need a process.
const asProgram = "GO_TEST_AS_HAKO"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	// What the developer has set must not decide the tests; compiled code is kept between runs of them.
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "HAKO_") || name == "MOCK_MODE" {
			os.Unsetenv(name)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	os.Setenv("HAKO_CACHE", filepath.Join(cache, "hako-test"))
	os.Exit(m.Run())
}

// outcome is what a command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d\n--- standard output\n%s--- standard error\n%s", o.code, o.stdout, o.stderr)
}

// invoke runs a command line in dir.
func invoke(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	return invokeWith(t, dir, "", args...)
}

func invokeWith(t *testing.T, dir, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr}
	code := a.run(t.Context(), append([]string{"--directory", dir}, args...))
	return outcome{code, stdout.String(), stderr.String()}
}

// want fails the test unless the outcome has the code and the texts, each in one of the streams.
func (o outcome) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("want exit code %d, got %s", code, o)
	}
	for _, text := range texts {
		if !strings.Contains(o.stdout+o.stderr, text) {
			t.Errorf("want %q in it, got %s", text, o)
		}
	}
}

// hello is a plugin made by "hako plugin new hello": its manifest, and the module without it.
var hello = sync.OnceValues(func() (plugin struct{ manifest, module []byte }, err error) {
	dir, err := os.MkdirTemp("", "hako-test-")
	if err != nil {
		return plugin, err
	}
	defer os.RemoveAll(dir)
	if err := newPlugin(filepath.Join(dir, "hello"), "hello"); err != nil {
		return plugin, err
	}
	if plugin.manifest, err = os.ReadFile(filepath.Join(dir, "hello", "manifest.yaml")); err != nil {
		return plugin, err
	}
	plugin.module, err = gobuild.Plugin(context.Background(), filepath.Join(dir, "hello"))
	return plugin, err
})

// helloPlugin returns the hello plugin with its manifest changed by pairs of old and new text.
func helloPlugin(t *testing.T, changes ...string) []byte {
	t.Helper()
	plugin, err := hello()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(changes...).Replace(string(plugin.manifest))
	wasm, err := manifest.Embed(plugin.module, map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// workplace is a directory with the hello plugin in its folder plugins, and a configuration that says so.
func workplace(t *testing.T, configuration string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "plugins", "hello.wasm"), helloPlugin(t))
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"+configuration))
	return dir
}

// approved is a workplace whose plugin has the operator's yes.
func approved(t *testing.T, configuration string) string {
	t.Helper()
	dir := workplace(t, configuration)
	invoke(t, dir, "plugin", "approve", "hello", "--yes").want(t, exitOK)
	return dir
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want []string
	}{
		"command":         {[]string{"serv"}, []string{`unknown command "serv": did you mean "serve"?`, "See: hako --help"}},
		"subcommand":      {[]string{"plugin", "aprove"}, []string{`unknown command "aprove": did you mean "approve"?`}},
		"flag":            {[]string{"serve", "--htpp", "x"}, []string{"unknown flag: --htpp: did you mean --http?", "See: hako serve --help"}},
		"no argument":     {[]string{"call"}, []string{"hako call takes TOOL [ARGUMENTS], got 0 arguments"}},
		"an argument":     {[]string{"version", "now"}, []string{`hako version takes no arguments, got ["now"]`}},
		"no such file":    {[]string{"tools", "--config", "nowhere.yaml"}, []string{"nowhere.yaml does not exist", "--config"}},
		"no such folder":  {[]string{"tools", "--plugins", "nowhere"}, []string{"nowhere does not exist", "make it"}},
		"a bad log level": {[]string{"tools", "--log-level", "loud"}, []string{`flag --log-level: "loud" is not allowed`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invoke(t, t.TempDir(), test.args...).want(t, exitUsage, test.want...)
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"plugin"}, {"config"}, {"token"}} {
		o := invoke(t, t.TempDir(), args...)
		o.want(t, exitOK, "Usage:")
		if o.stderr != "" {
			t.Errorf("help is on standard error: %s", o)
		}
	}
}

// TestEveryCommandIsExplained: each has a short text, and its help names the exit codes or what it prints.
func TestEveryCommandIsExplained(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	root := new(app).command()
	commands := root.Commands()
	for len(commands) > 0 {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		if cmd.Short == "" {
			t.Errorf("%s has no short text", cmd.CommandPath())
		}
		if name := cmd.Name(); !strings.Contains(string(docs), name) {
			t.Errorf("docs/cli.md does not know %s", cmd.CommandPath())
		}
	}
}
