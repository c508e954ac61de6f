package execbroker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// workspace creates a directory with a few files.
func workspace(t testing.TB) string {
	t.Helper()
	dir := realTemp(t)
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "b.txt"), []byte("sub\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "bytes"), []byte("a\xffb"), 0o644))
	must(t, os.Symlink(os.TempDir(), filepath.Join(dir, "out")))
	must(t, os.Symlink("sub", filepath.Join(dir, "in")))
	return dir
}

// common are programs that every Linux distribution has.
var common = []string{"cat", "ls", "head", "tail", "env", "sleep", "pwd", "chmod", "rm", "yes", "seq", "setsid",
	"touch", "mkdir", "true"}

func TestResults(t *testing.T) {
	t.Parallel()
	dir := workspace(t)
	s := newShell(t, dir, &grant.Exec{Programs: common, Env: []string{"GRANTED"}},
		execbroker.Options{Environ: []string{"GRANTED=yes", "SECRET=s3cret"}})
	type arguments map[string]any
	for _, test := range []struct {
		name       string
		in         arguments
		out, errs  string
		code       int
		additional string
	}{
		{"a line", arguments{"command": "head -n1 a.txt | cat"}, "one\n", "", 0, ""},
		{"a program", arguments{"command": "head", "args": []string{"-n1", "a.txt"}}, "one\n", "", 0, ""},
		{"arguments are literal", arguments{"command": "cat", "args": []string{"$(cat a.txt)", "; ls"}}, "",
			"cat: '$(cat a.txt)': No such file or directory\ncat: '; ls': No such file or directory\n", 1, ""},
		{"no arguments are none", arguments{"command": "cat a.txt", "args": []string{}}, "one\ntwo\n", "", 0, ""},
		{"a status", arguments{"command": "exit 7"}, "", "", 7, ""},
		{"both streams", arguments{"command": "echo out; echo err >&2"}, "out\n", "err\n", 0, ""},
		{"empty standard input", arguments{"command": "cat"}, "", "", 0, ""},
		{"relative cwd", arguments{"command": "cat b.txt", "cwd": "sub"}, "sub\n", "", 0, ""},
		{"guest's cwd", arguments{"command": "cat b.txt", "cwd": "/workspace/sub"}, "sub\n", "", 0, ""},
		{"guest's root", arguments{"command": "cat a.txt", "cwd": "/workspace"}, "one\ntwo\n", "", 0, ""},
		{"host's cwd", arguments{"command": "cat b.txt", "cwd": filepath.Join(dir, "sub")}, "sub\n", "", 0, ""},
		{"cwd through a link", arguments{"command": "cat b.txt", "cwd": "in"}, "sub\n", "", 0, ""},
		{"no UTF-8", arguments{"command": "cat bytes"}, "a\uFFFDb", "", 0, "replaced [stdout]"},
		{"the environment", arguments{"command": "env | grep -v -e HOME= -e TMPDIR= | sort",
			"args": nil}, "", "", 0, "refused"},
		{"granted variables", arguments{"command": "echo $GRANTED $SECRET $TERM"}, "yes dumb\n", "", 0, ""},
		{"its own directories", arguments{"command": "touch $HOME/a $TMPDIR/b && ls $HOME $TMPDIR | tail -n1"}, "b\n",
			"", 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.in["args"] == nil {
				delete(test.in, "args")
			}
			r := s.run(test.in)
			switch test.additional {
			case "refused":
				if !strings.Contains(r.refusal, "grep is not granted") {
					t.Errorf("%+v", r)
				}
				return
			case "replaced [stdout]":
				if !slices.Equal(r.Replaced, []string{"stdout"}) {
					t.Errorf("%+v", r)
				}
			}
			if r.refusal != "" || r.Stdout != test.out || r.Stderr != test.errs || r.ExitCode != test.code {
				t.Errorf("%+v", r)
			}
		})
	}
	left(t, s)
}

// left checks that commands left no files in their temporary directory.
func left(t *testing.T, s *shell) {
	t.Helper()
	entries, err := os.ReadDir(s.temp)
	must(t, err)
	if len(entries) > 0 {
		t.Errorf("%d directories of commands are left", len(entries))
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	rules := []judge.Rule{{Name: "no listings", Action: judge.Deny, Programs: []string{"ls"}, Args: []string{"-l*"},
		Reason: "they are long"}}
	s := newShell(t, workspace(t), &grant.Exec{Programs: common},
		execbroker.Options{Rules: func() []judge.Rule { return rules }})
	for _, test := range []struct {
		name, command, cwd string
		want               []string
	}{
		{"a default", "rm -rf sub", "", []string{`rm -rf sub: denied by the rule "rm -rf"`,
			"delete single files, or leave out -f"}},
		{"within another", "env rm -rf sub", "", []string{`rm -rf sub: denied by the rule "rm -rf"`}},
		{"the operator's", "ls -la", "", []string{`denied by the rule "no listings": they are long`}},
		{"not granted", "cat a.txt && curl x", "", []string{"curl is not granted", "Granted programs: cat, ls,",
			"hako plugin approve shell --program curl"}},
		{"by its path", "/usr/bin/id", "", []string{"/usr/bin/id is not granted"}},
		{"no line", "cat 'a", "", []string{"command line: at "}},
		{"what is looked up", "PATH=. ls", "", []string{"PATH cannot be set here"}},
		{"cwd outside", "ls", "/etc",
			[]string{`"/etc" is outside of the working directories of commands: they are /workspace`}},
		{"cwd above", "ls", "..", []string{`".." is outside`}},
		{"cwd far above", "ls", "sub/../../../../etc", []string{"is outside"}},
		{"cwd by a link", "ls", "out", []string{`"out" is outside`}},
		{"cwd is a file", "ls", "a.txt", []string{`"a.txt" is not a directory`}},
		{"no cwd", "ls", "nothing", []string{`the directory "nothing" does not exist`}},
		{"an option", "env --frob cat a.txt", "",
			[]string{`the rule "unknown commands" requires approval (env has options that hako cannot read`,
				"nobody can be asked for approval here"}},
		{"an ambiguous option", "ls --si=x", "",
			[]string{`ls --si=x: the rule "options of ls" requires approval (`}},
		{"nobody to ask", "chmod 600 a.txt", "", []string{`the rule "rights of files" requires approval`,
			"nobody can be asked for approval here", "commands in the policy file"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.run(map[string]any{"command": test.command, "cwd": test.cwd})
			for _, want := range test.want {
				if !strings.Contains(r.refusal, want) {
					t.Errorf("want %q in %+v", want, r)
				}
			}
		})
	}
	if r := s.run(map[string]any{"command": "ls -a", "args": []string{"x"}}); !strings.Contains(r.refusal,
		"with args, command is the name of a program alone") {
		t.Errorf("%+v", r)
	}
	// Rules apply from the next command on.
	rules = nil
	if r := s.line("ls -la"); r.refusal != "" {
		t.Errorf("%+v", r)
	}
	left(t, s)
}

func TestAsking(t *testing.T) {
	t.Parallel()
	s := newShell(t, workspace(t), &grant.Exec{Programs: common}, execbroker.Options{})
	var asked []broker.Question
	var answer error
	s.ask = func(q broker.Question) error {
		asked = append(asked, q)
		return answer
	}
	for _, test := range []struct {
		name, command string
		no            error
		asked         []string
		refusal       string
		code          int
	}{
		{"yes", "chmod 600 a.txt && chmod 600 a.txt && echo done", nil,
			[]string{"chmod 600 a.txt && chmod 600 a.txt && echo done"}, "", 0},
		{"no", "chmod 600 a.txt", errors.New("refused by aki"), []string{"chmod 600 a.txt"}, "refused by aki", 0},
		{"later, with the final arguments", "x=640; chmod $x a.txt", nil, []string{"chmod 640 a.txt"}, "", 0},
		{"later, no", "x=640; chmod $x a.txt", errors.New("refused by aki"), []string{"chmod 640 a.txt"}, "", 126},
		{"a yes is for those arguments", "chmod 600 a.txt; x=777; chmod $x a.txt", nil,
			[]string{"chmod 600 a.txt; x=777; chmod $x a.txt", "chmod 777 a.txt"}, "", 0},
		{"nothing to ask", "cat a.txt", errors.New("no"), nil, "", 0},
		{"denied, not asked", "rm -rf sub", nil, nil, "denied by the rule", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked, answer = nil, test.no
			r := s.line(test.command)
			var texts []string
			for _, q := range asked {
				texts = append(texts, q.Text)
				if q.Rule == "" || q.Reason == "" {
					t.Errorf("a question without a rule: %+v", q)
				}
			}
			if !slices.Equal(texts, test.asked) || (r.refusal == "") != (test.refusal == "") ||
				!strings.Contains(r.refusal, test.refusal) || r.ExitCode != test.code {
				t.Errorf("asked %q; %+v", texts, r)
			}
		})
	}
}

// TestUnjudged: a program unknown to hako runs if it was granted by name, and the result says that no rule checked it.
// If it was granted with all programs, a person is asked.
func TestUnjudged(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(realTemp(t), "frobnicate")
	must(t, os.WriteFile(tool, []byte("#!/bin/sh\necho done\n"), 0o755))
	s := newShell(t, workspace(t), &grant.Exec{Programs: []string{"cat", tool}}, execbroker.Options{})
	r := s.line("frobnicate; cat a.txt")
	if r.refusal != "" || r.Stdout != "done\none\ntwo\n" || !slices.Equal(r.Unjudged, []string{"frobnicate"}) ||
		!strings.Contains(r.text, "[hako does not know frobnicate: no rule looked at what it did, the sandbox alone "+
			"held it]") {
		t.Errorf("%+v", r)
	}
	if r := s.line("cat a.txt"); len(r.Unjudged) > 0 {
		t.Errorf("%+v", r)
	}
	testprogram.Find(t, "getconf")
	all := newShell(t, workspace(t), &grant.Exec{Programs: []string{"*"}}, execbroker.Options{})
	want := `the rule "unknown programs" requires approval (hako does not know what getconf starts`
	if r := all.line("getconf ARG_MAX"); !strings.Contains(r.refusal, want) {
		t.Errorf("%+v", r)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	needsKernel(t)
	if _, err := execbroker.New(&grant.Exec{Programs: []string{"no-such-program"}}, nil,
		execbroker.Options{Plugin: "shell"}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := execbroker.New(&grant.Exec{Programs: []string{"ls"}},
		[]grant.Mount{{Name: "w", Path: "/no/such/dir"}}, execbroker.Options{}); err == nil {
		t.Error("a mount that is not there")
	}
	tool := filepath.Join(realTemp(t), "tool")
	must(t, os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o755))
	own := grant.Mount{Name: "w", Path: filepath.Dir(tool), Write: true}
	if _, err := execbroker.New(&grant.Exec{Programs: []string{tool}}, []grant.Mount{own},
		execbroker.Options{}); err == nil || !strings.Contains(err.Error(), "where commands could replace it") {
		t.Errorf("a program that commands could replace: %v", err)
	}
	own.Write = false
	if _, err := execbroker.New(&grant.Exec{Programs: []string{tool}}, []grant.Mount{own},
		execbroker.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := execbroker.New(&grant.Exec{Programs: []string{"ls", "no-such-program"}}, nil,
		execbroker.Options{}); err != nil {
		t.Error(err)
	}
}

// TestHiddenParts: commands cannot use a mount with deny globs. No other directory takes the place of the workspace.
func TestHiddenParts(t *testing.T) {
	t.Parallel()
	home := realTemp(t)
	for _, dir := range []string{"work/sub", "work/src/deep", "extra"} {
		must(t, os.MkdirAll(filepath.Join(home, dir), 0o755))
	}
	workspace := grant.Mount{Name: "workspace", Path: filepath.Join(home, "work"), Deny: []string{"**/.git/**"}}
	extra := grant.Mount{Name: "extra", Path: filepath.Join(home, "extra"), Write: true}
	src := grant.Mount{Name: "src", Path: filepath.Join(home, "work", "src")}
	const without = "without cwd a command works in /workspace, which commands cannot use"
	const refused = " is in /workspace, which commands cannot use"
	first, second := []grant.Mount{workspace, extra}, []grant.Mount{extra, workspace}
	inside := []grant.Mount{workspace, src}
	for name, test := range map[string]struct {
		mounts    []grant.Mount
		cwd, want string // the directory below home, or the error
	}{
		"alone":               {[]grant.Mount{workspace}, "", without},
		"remedy":              {[]grant.Mount{workspace}, "", "mount a directory as workspace that has none of hako's"},
		"another mount":       {first, "", without},
		"the other is named":  {first, "", "set cwd to a directory that commands can use: /extra."},
		"dot":                 {first, ".", `the cwd "."` + refused},
		"relative":            {first, "sub", `the cwd "sub"` + refused},
		"relative, out of it": {first, "../extra", `the cwd "../extra"` + refused},
		"by name":             {first, "/workspace/sub", `the cwd "/workspace/sub"` + refused},
		"by the host's path":  {first, workspace.Path, "(/workspace cannot be used, because"},
		"the other by name":   {first, "/extra", "extra"},
		"the other by path":   {first, extra.Path, "extra"},
		"a later mount":       {second, "", "extra"},
		"the later by name":   {second, "/workspace", `the cwd "/workspace"` + refused},
		"a mount inside":      {inside, "src/deep", "work/src/deep"},
		"inside, by name":     {inside, "/workspace/src", "work/src"},
		"beside it":           {inside, "sub", `the cwd "sub"` + refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roots, err := execbroker.NewRoots(test.mounts)
			must(t, err)
			got, err := roots.Dir(test.cwd)
			if err != nil && !strings.Contains(err.Error(), test.want) ||
				err == nil && got != filepath.Join(home, test.want) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestGitStartsNothing: the file system monitor and the editors of a repository's configuration are not started, even if
// all programs are granted and allowed. Hooks need no test: the kernel executes no file in a writable mount.
func TestGitStartsNothing(t *testing.T) {
	t.Parallel()
	testprogram.Find(t, "git")
	dir := workspace(t)
	s := newShell(t, dir, &grant.Exec{Programs: []string{manifest.AnyProgram}},
		execbroker.Options{Rules: func() []judge.Rule { return []judge.Rule{execbroker.AllowAll} }})
	succeed := func(line string) {
		t.Helper()
		if r := s.line(line); r.ExitCode != 0 {
			t.Errorf("%s: %+v", line, r)
		}
	}
	succeed("git init -q -b master && git config user.email a@b.test && git config user.name A && git add a.txt && git commit -qm one")
	for _, key := range []string{"core.editor", "sequence.editor", "core.fsmonitor"} {
		succeed("git config " + key + " 'touch started-" + key + ";:'")
	}
	succeed("echo more >> a.txt && git commit -qam two && git commit -q --amend && git checkout -q -b other")
	succeed("git status && git rebase -q -i HEAD~1 && git branch -D master")
	if started, err := filepath.Glob(filepath.Join(dir, "started-*")); err != nil || len(started) > 0 {
		t.Errorf("git started %q, %v", started, err)
	}
}

func TestObserved(t *testing.T) {
	t.Parallel()
	seen := make(chan execbroker.Observation, 1)
	s := newShell(t, workspace(t), &grant.Exec{Programs: common},
		execbroker.Options{Observe: func(o execbroker.Observation) { seen <- o }})
	for _, test := range []struct{ command, program, outcome string }{
		{"true", "true", execbroker.OutcomeOK}, {"cat", "cat", execbroker.OutcomeStatus},
		{"secret-name", "other", execbroker.OutcomeRefused},
	} {
		s.run(map[string]any{"command": test.command, "args": []string{"nothing"}})
		if o := <-seen; o.Program != test.program || o.Outcome != test.outcome {
			t.Errorf("%s: %+v", test.command, o)
		}
	}
	s.line("cat a.txt")
	if o := <-seen; o.Program != "line" {
		t.Errorf("%+v", o)
	}
}

// TestCanceled: when the caller cancels, the command ends.
func TestCanceled(t *testing.T) {
	t.Parallel()
	s := newShell(t, workspace(t), &grant.Exec{Programs: common}, execbroker.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	s.progress = func(string) {
		select {
		case started <- struct{}{}:
		default:
		}
	}
	go func() {
		<-started
		cancel()
	}()
	if _, err := s.callWith(ctx, map[string]any{"command": "echo started; sleep 3032"}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("%v", err)
	}
	noProcess(t, "sleep", "3032")
	left(t, s)
}

// noProcess checks that no running process has these arguments.
func noProcess(t *testing.T, argv ...string) {
	t.Helper()
	want := strings.Join(argv, "\x00") + "\x00"
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && string(data) == want {
			t.Errorf("%s still runs: %q", file, argv)
		}
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	s := newShell(t, workspace(t), &grant.Exec{Programs: common}, execbroker.Options{})
	r := s.line("seq 1 100000")
	if r.ExitCode != 0 || !slices.Equal(r.Truncated, []string{"stdout"}) || !strings.HasPrefix(r.Stdout, "1\n2\n") ||
		!strings.HasSuffix(r.Stdout, "99999\n100000\n") ||
		!strings.Contains(r.Stdout, " bytes left out ...]") || len(r.Stdout) > 100<<10 {
		t.Errorf("%d bytes, %v, ...%s", len(r.Stdout), r.Truncated, r.Stdout[max(0, len(r.Stdout)-50):])
	}
	r = s.line("seq 1 1000000") // more than the guest gets
	if r.ExitCode != 0 || !slices.Equal(r.Truncated, []string{"stdout"}) {
		t.Errorf("%d, %v", r.ExitCode, r.Truncated)
	}
	for _, stream := range []string{"", " >&2"} {
		r = s.line("yes" + stream)
		if r.Signal != "killed" || len(r.Truncated) != 1 || !strings.Contains(r.text, "its output is too large") {
			t.Errorf("a flood%s: %d, %q, %v", stream, r.ExitCode, r.Signal, r.Truncated)
		}
	}
	left(t, s)
}

// TestHostileCommandLifetime: commands that try to outlive their deadline end at it, with all of their processes.
func TestHostileCommandLifetime(t *testing.T) {
	t.Parallel()
	s := newShell(t, workspace(t), &grant.Exec{Programs: common}, execbroker.Options{})
	s.line("true") // the plugin is loaded
	s.time = 1500 * time.Millisecond
	for _, line := range []string{
		"sleep 3033", "sleep 3033 & sleep 3033", "trap '' TERM INT HUP; sleep 3033", "setsid sleep 3033 & sleep 3033",
		"(setsid sleep 3033 &); while :; do :; done",
		":(){ :|:& };: ; sleep 3033", "f() { sleep 3033 & f; }; f", "while :; do (setsid sleep 3033 &); done",
		"while :; do mkdir -p $TMPDIR/x/$((i++)); done",
		"chmod -R 000 $HOME $TMPDIR; sleep 3033", "echo 1; sleep 3033",
	} {
		t.Run(line, func(t *testing.T) {
			s.ask = func(broker.Question) error { return nil }
			start := time.Now()
			r, err := s.call(map[string]any{"command": line})
			if err != nil { // a loop may have used up the guest's limits
				t.Logf("%s: %v", line, err)
			} else if !r.TimedOut && !strings.HasPrefix(line, ":") && r.Signal == "" &&
				!strings.Contains(r.Stderr, "hako: ") {
				t.Errorf("%s: %+v", line, r)
			}
			if took := time.Since(start); took > patience {
				t.Errorf("%s took %v", line, took)
			}
		})
	}
	noProcess(t, "sleep", "3033")
	left(t, s)
}

// TestSurvivors: the background processes of a command end with it.
func TestSurvivors(t *testing.T) {
	t.Parallel()
	s := newShell(t, workspace(t), &grant.Exec{Programs: common}, execbroker.Options{})
	if r := s.line("setsid sleep 3034 & sleep 3034 & echo started"); r.Stdout != "started\n" || r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	noProcess(t, "sleep", "3034")
}

// TestMany runs a hundred commands at once. They leave no process, no open file and no directory.
func TestMany(t *testing.T) {
	s := newShell(t, workspace(t), &grant.Exec{Programs: common}, execbroker.Options{})
	s.line("true")
	before := openFiles(t)
	errs := make(chan error)
	const many = 100
	for i := range many {
		go func() {
			r, err := s.call(map[string]any{"command": fmt.Sprintf("cat a.txt; echo %d; exit %d", i, i%3)})
			if err == nil && (r.refusal != "" || r.Stdout != fmt.Sprintf("one\ntwo\n%d\n", i) || r.ExitCode != i%3) {
				err = fmt.Errorf("%+v", r)
			}
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if after := openFiles(t); after > before+5 { // the Wasm engine opens some files
		t.Errorf("%d open files before, %d after", before, after)
	}
	left(t, s)
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// FuzzRequest: any bytes decode to a valid request or an error.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{`{"argv":["ls"],"cwd":"/w"}`, `{"line":"ls","timeoutMs":-1}`, `{"argv":[]}`,
		`{"argv":["a"],"line":"b"}`, `{"line":"\u0000"}`, `{"line":"a"}{}`, `null`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := execbroker.DecodeRequest(data)
		if err != nil {
			return
		}
		if (len(r.Argv) > 0) == (r.Line != "") || len(r.Argv) > 0 && r.Argv[0] == "" || r.TimeoutMS < 0 ||
			strings.ContainsRune(r.Line+strings.Join(r.Argv, ""), 0) {
			t.Errorf("%q is taken for %+v", data, r)
		}
	})
}

// FuzzDir: a directory that a guest names is in the mount, or refused.
func FuzzDir(f *testing.F) {
	dir := workspace(f)
	outside := realTemp(f)
	must(f, os.Symlink(outside, filepath.Join(dir, "sub", "away")))
	roots, err := execbroker.NewRoots([]grant.Mount{{Name: "workspace", Path: dir}})
	must(f, err)
	for _, seed := range []string{"", "sub", "/workspace/sub", "/workspace/../etc", "../..", "out", "in/../..",
		"sub/away", dir, dir + "/sub/../..", outside, "/", ".", "sub//", "/workspacex", "\x00"} {
		f.Add(seed)
	}
	hidden, err := execbroker.NewRoots([]grant.Mount{{Name: "workspace", Path: outside, Deny: []string{"x"}},
		{Name: "extra", Path: dir}})
	must(f, err)
	f.Fuzz(func(t *testing.T, cwd string) {
		if got, err := hidden.Dir(cwd); err == nil && !path.IsAbs(cwd) {
			t.Errorf("%q leads from a workspace that commands cannot use to %q", cwd, got)
		}
		got, err := roots.Dir(cwd)
		if err != nil {
			return
		}
		real, err := filepath.EvalSymlinks(got)
		if err != nil || real != dir && !strings.HasPrefix(real, dir+"/") {
			t.Errorf("%q leads to %q: %v", cwd, real, err)
		}
	})
}

// Go code runs commands under the same rules and limits as guests.
func TestRun(t *testing.T) {
	t.Parallel()
	needsKernel(t)
	b, err := execbroker.New(&grant.Exec{Programs: []string{"sh", "echo"}}, nil,
		execbroker.Options{Plugin: "shell", TempDir: realTemp(t)})
	if err != nil {
		t.Fatal(err)
	}
	call := &broker.Call{Plugin: "shell"}
	t.Cleanup(func() { _ = call.Close() })
	stdout, stderr, exit := b.Run(t.Context(), call, &abi.ExecRequest{Line: "echo a; echo b >&2; exit 3"})
	if exit.Error != nil || string(stdout) != "a\n" || string(stderr) != "b\n" || exit.ExitCode != 3 {
		t.Errorf("%q, %q, %+v", stdout, stderr, exit)
	}
	for code, request := range map[string]*abi.ExecRequest{
		abi.CodeInvalid:    {Argv: []string{"echo"}, Line: "echo"},
		abi.CodeNotGranted: {Argv: []string{"ls"}},
	} {
		if _, _, exit := b.Run(t.Context(), call, request); exit.Error == nil || exit.Error.Code != code {
			t.Errorf("%v: %+v", request, exit)
		}
	}
}

// TestHostileArguments: empty arguments count, as the others do.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	call := &broker.Call{Plugin: "shell"}
	t.Cleanup(func() { _ = call.Close() })
	argv := append([]string{"echo"}, make([]string, 300_000)...)
	_, _, exit := execbroker.Idle().Run(t.Context(), call, &abi.ExecRequest{Argv: argv})
	if exit.Error == nil || !strings.Contains(exit.Error.Message, "longer than 262144 bytes") {
		t.Errorf("%+v", exit.Error)
	}
}
