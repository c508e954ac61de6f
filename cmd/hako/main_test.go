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
	"time"

	"github.com/hako-run/hako/dev/kit/mcpsuite"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/wasmfile"
	supervisor "github.com/hako-run/hako/internal/process"
	"github.com/hako-run/hako/pdk/abi"
)

// asProgram makes the test binary be hako itself, for tests that need a process.
const asProgram = "GO_TEST_AS_HAKO"

// withFixtures has the program offer the fixtures of the conformance suite, as the build with that tag does.
const withFixtures = "GO_TEST_WITH_FIXTURES"

func TestMain(m *testing.M) {
	confine.Main()
	supervisor.Main()
	if os.Getenv(withFixtures) != "" {
		extension = &mcpserver.Extension{Configure: mcpsuite.Configure, Register: mcpsuite.Register}
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	testprogram.Environment()
	pluginfile.HandlersTime = 10 * time.Minute
	os.Exit(m.Run())
}

// needsPlugins is for tests that use the shipped plugins, which are built before.
func needsPlugins(t testing.TB) {
	t.Helper()
	if len(shippedPlugins()) == 0 {
		testprogram.Missing(t, "the shipped plugins are not built: make plugins")
	}
}

// outcome holds the exit code and the output of a command line.
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
	// What should have ended is ended by this, and then fails its test.
	code := a.run(testwait.Context(t), append([]string{"--directory", dir}, args...))
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

// probe is the plugin in testdata: its module without its manifest.
var probe = sync.OnceValues(func() ([]byte, error) { return gobuild.Plugin(context.Background(), "testdata/probe") })

// probePlugin returns the probe plugin, its manifest changed by pairs of old and new text.
func probePlugin(t *testing.T, changes ...string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/probe/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	module, err := probe()
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(changes...).Replace(string(text))
	wasm, err := wasmfile.Embed(module, map[string][]byte{abi.ManifestSection: []byte(changed)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// asking makes the probe's manifest ask for permissions.
func asking(permissions string) []string {
	return []string{"config:\n", "permissions: " + permissions + "\nconfig:\n"}
}

// workplace is a directory with the probe in its folder plugins, and a configuration that says so and more.
func workplace(t *testing.T, configuration string, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "plugins", "probe.wasm"), probePlugin(t, changes...))
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\n"+configuration))
	return dir
}

// approved is a workplace whose plugin has the operator's yes.
func approved(t *testing.T, configuration string) string {
	t.Helper()
	dir := workplace(t, configuration)
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
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

// watched is a stream that tells when something has been written to it. Its zero value is ready.
type watched struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	waits  map[string]chan struct{}
}

// await returns a channel that is closed once text has been written.
func (w *watched) await(text string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits == nil {
		w.waits = map[string]chan struct{}{}
	}
	found := make(chan struct{})
	w.waits[text] = found
	w.look()
	return found
}

func (w *watched) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.look()
	return w.buffer.Write(data)
}

// look tells those who wait for what is there. w.mu is held.
func (w *watched) look() {
	for text, found := range w.waits {
		if strings.Contains(w.buffer.String(), text) {
			close(found)
			delete(w.waits, text)
		}
	}
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.String()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want []string
	}{
		"command": {[]string{"serv"}, []string{`unknown command "serv": did you mean "serve"?`,
			"See: hako --help"}},
		"subcommand": {[]string{"plugin", "aprove"},
			[]string{`unknown command "aprove": did you mean "approve"?`}},
		"flag": {[]string{"serve", "--htpp", "x"}, []string{"unknown flag: --htpp: did you mean --http?",
			"See: hako serve --help"}},
		"no argument": {[]string{"call"}, []string{"hako call takes TOOL [ARGUMENTS | NAME=VALUE ...], got 0 arguments"}},
		"an argument": {[]string{"version", "now"}, []string{`hako version takes no arguments, got ["now"]`}},
		"no such file": {[]string{"tools", "--config", "nowhere.yaml"},
			[]string{"nowhere.yaml does not exist", "--config"}},
		"no such folder": {[]string{"tools", "--plugins", "nowhere"}, []string{"nowhere does not exist", "create it"}},
		"a bad log level": {[]string{"tools", "--log-level", "loud"},
			[]string{`flag --log-level: "loud" is not allowed`}},
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
