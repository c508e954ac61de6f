package execbroker_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

func TestMain(m *testing.M) {
	confine.Main()
	if len(os.Args) > 2 && os.Args[1] == probeWord {
		syscall.Exit(probe(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// needsKernel skips a test if the kernel cannot confine commands.
func needsKernel(t testing.TB) {
	t.Helper()
	if s := confine.Check(); !s.Confines() {
		testprogram.Missing(t, "this machine cannot confine commands: "+s.Missing())
	}
}

// realTemp returns a temporary directory whose path has no symbolic links.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// shell runs the shipped plugin shell with a broker.
type shell struct {
	t      testing.TB
	plugin *sandbox.Plugin
	broker *execbroker.Broker
	// ask answers questions; nil means that nobody can be asked.
	ask func(q broker.Question) error
	// progress receives progress messages; it may be nil.
	progress func(message string)
	// time is the timeout of a call.
	time time.Duration
	// temp is the directory for the commands' temporary directories.
	temp string
}

// result is the result of the tool shell_exec.
type result struct {
	Stdout, Stderr, Signal string
	ExitCode               int
	TimedOut               bool
	Truncated, Replaced    []string
	Unjudged               []string
	// refusal is the tool's error if the command was not started.
	refusal string
	text    string
}

// patience is the timeout of commands in tests that are not about timeouts.
const patience = 5 * time.Minute

func newShell(t testing.TB, workspace string, g *grant.Exec, options execbroker.Options) *shell {
	t.Helper()
	needsKernel(t)
	mounted := grant.Mount{Name: "workspace", Path: workspace, Write: true}
	options.Plugin = "shell"
	if options.TempDir == "" {
		options.TempDir = realTemp(t)
	}
	commands, err := execbroker.New(g, []grant.Mount{mounted}, options)
	if err != nil {
		t.Fatal(err)
	}
	mount, err := file.New(mounted)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	plugin := engine.Load(sandbox.Spec{
		Name: "shell", Wasm: func() ([]byte, error) { return guesttest.Build(t, "plugins/shell"), nil },
		Mounts: []*file.Mount{mount}, Modules: []broker.Module{commands.Module()},
		Limits: manifest.Limits{Concurrency: 200},
	})
	t.Cleanup(func() {
		for _, close := range []func() error{plugin.Close, mount.Close, engine.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	return &shell{t: t, plugin: plugin, broker: commands, time: patience, temp: options.TempDir}
}

// run calls the tool and fails the test if the call fails.
func (s *shell) run(arguments map[string]any) *result {
	s.t.Helper()
	r, err := s.call(arguments)
	if err != nil {
		s.t.Fatalf("%v: %v", arguments, err)
	}
	return r
}

func (s *shell) line(line string) *result {
	s.t.Helper()
	return s.run(map[string]any{"command": line})
}

func (s *shell) call(arguments map[string]any) (*result, error) {
	return s.callWith(s.t.Context(), arguments)
}

func (s *shell) callWith(ctx context.Context, arguments map[string]any) (*result, error) {
	data, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	r := new(result)
	invocation := &catalog.Invocation{
		Request: &abi.Request{Method: abi.CallTool, Name: "shell_exec", Arguments: data},
		Limits:  manifest.Limits{Time: s.time},
	}
	if s.progress != nil {
		invocation.Progress = func(p abi.Progress) { s.progress(p.Message) }
	}
	if s.ask != nil {
		invocation.Ask = func(_ context.Context, q broker.Question) error { return s.ask(q) }
	}
	response, err := s.plugin.Call(ctx, invocation)
	if err != nil {
		return nil, err
	}
	if response.IsError {
		r.refusal = response.Content[0].Text
		return r, nil
	}
	r.text = response.Content[0].Text
	if err := response.FillStructured(); err != nil {
		return nil, err
	}
	return r, json.Unmarshal(response.StructuredContent, r)
}
