package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// asProgram makes the test binary be hako-dev itself, for tests that need a process.
const asProgram = "GO_TEST_AS_HAKO_DEV"

// buildDir holds the hako that buildHako builds.
var buildDir string

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testprogram.Environment()
	var err error
	if buildDir, err = os.MkdirTemp("", "hako-dev-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// buildHako builds hako, once for all tests.
var buildHako = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(buildDir, "hako.exe") // Windows needs the extension
	output, err := exec.Command("go", "build", "-ldflags=-s", "-o", path, "../hako").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build hako: %w\n%s", err, output)
	}
	const ownFolders = "{{if not .Standard}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}"
	output, err = exec.Command("go", "list", "-deps", "-f", ownFolders, "../hako").Output()
	if err != nil {
		return "", fmt.Errorf("list the packages of hako: %w", err)
	}
	// The go command runs tests again after changes in folders that they have read.
	for dir := range strings.Lines(string(output)) {
		if _, err := os.ReadDir(strings.TrimSpace(dir)); err != nil {
			return "", err
		}
	}
	return path, nil
})

// needsHako returns the path of a hako with the shipped plugins, which are built before.
func needsHako(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds hako")
	}
	if shipped, err := filepath.Glob("../hako/shipped/*.wasm*"); err != nil || len(shipped) == 0 {
		testprogram.Missing(t, "the shipped plugins are not built: make plugins")
	}
	path, err := buildHako()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// outcome holds the exit code and the output of a command line.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d\n--- standard output\n%s--- standard error\n%s", o.code, o.stdout, o.stderr)
}

// invoke runs a command line with a standard input.
func invoke(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr display
	a := &app{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr}
	// What should have ended is ended by this, and then fails its test.
	code := a.run(testwait.Context(t), args)
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

// display is a terminal's screen, or a stream that is read while it is written.
type display struct {
	mu   sync.Mutex
	text strings.Builder
	seen int // how much of it has been waited for
}

func (d *display) Write(data []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(data)
}

func (d *display) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// see waits until text is shown after what was waited for before.
func (d *display) see(t *testing.T, text string) {
	t.Helper()
	if !testwait.Until(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		at := strings.Index(d.text.String()[d.seen:], text)
		if at >= 0 {
			d.seen += at + len(text)
		}
		return at >= 0
	}) {
		t.Fatalf("%q was not shown: %s", text, d)
	}
}

// process is hako-dev as a process of its own, with a directory for temporary files.
type process struct {
	*exec.Cmd
	screen *display
	temp   string
	ended  chan error
}

// command returns hako-dev as a process, which is not started yet.
func command(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...), screen: new(display), temp: t.TempDir(),
		ended: make(chan error, 1)}
	p.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+p.temp, "TERM=dumb")
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.Wait() }()
}

// wantEnd waits for the end of the process, and wants the exit code and no temporary files.
func (p *process) wantEnd(t *testing.T, code int) {
	t.Helper()
	select {
	case err := <-p.ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || p.ProcessState.ExitCode() != code {
			t.Errorf("want exit code %d, got %v: %s", code, err, p.screen)
		}
	case <-testwait.Context(t).Done():
		t.Fatalf("it does not end: %s", p.screen)
	}
	left, err := os.ReadDir(p.temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("%s is left", entry.Name())
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"command":      {[]string{"chta"}, `unknown command "chta"`},
		"flag":         {[]string{"chat", "--scirpt", "x"}, "See: hako-dev chat --help"},
		"an argument":  {[]string{"chat", "now"}, `hako-dev chat takes 0 arguments, got ["now"]`},
		"no argument":  {[]string{"agent"}, "hako-dev agent takes 1 arguments, got []"},
		"no task":      {[]string{"agent", "--", "--tenant"}, "hako-dev agent takes 1 arguments, got []"},
		"no such hako": {[]string{"chat", "--hako", filepath.Join(t.TempDir(), "hako")}, "--hako: "},
		"no script":    {[]string{"chat", "--script", "none.yaml"}, "none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invoke(t, "", test.args...).want(t, exitUsage, test.want)
		})
	}
}

// TestEveryCommandIsExplained: each has a short text, and docs/cli.md a section.
func TestEveryCommandIsExplained(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	invoke(t, "").want(t, exitOK, "Usage:")
	for _, cmd := range new(app).command().Commands() {
		if cmd.Short == "" {
			t.Errorf("%s has no short text", cmd.CommandPath())
		}
		if !strings.Contains(string(docs), "\n### "+cmd.CommandPath()+"\n") {
			t.Errorf("docs/cli.md does not know %s", cmd.CommandPath())
		}
	}
}
