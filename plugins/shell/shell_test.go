package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

// played is a host that runs one command: it writes these pieces, and ends like this.
type played struct {
	stdout, stderr []string
	exit           abi.ExecExit
	fails          error

	request *abi.ExecRequest
}

func (p *played) run(request *abi.ExecRequest, output func(int, []byte)) (*abi.ExecExit, error) {
	p.request = request
	if p.fails != nil {
		return nil, p.fails
	}
	for _, text := range p.stdout {
		output(abi.ExecStdout, []byte(text))
	}
	for _, text := range p.stderr {
		output(abi.ExecStderr, []byte(text))
	}
	return &p.exit, nil
}

type structured struct {
	Stdout, Stderr, Signal string
	ExitCode               int
	TimedOut               bool
	Truncated, Replaced    []string
}

func call(t *testing.T, p *played, arguments map[string]any, locale string) (*abi.Response, structured) {
	t.Helper()
	response := pdktest.CallTool(t, "shell_exec", arguments, pdktest.Options{Locale: locale, Exec: p.run})
	var s structured
	if !response.IsError {
		if err := json.Unmarshal(response.StructuredContent, &s); err != nil {
			t.Fatal(err)
		}
	}
	return response, s
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		arguments map[string]any
		want      abi.ExecRequest
		refusal   string
	}{
		{"a line", map[string]any{"command": "git log | head"}, abi.ExecRequest{Line: "git log | head"}, ""},
		{"no arguments", map[string]any{"command": "git log", "args": []string{}}, abi.ExecRequest{Line: "git log"},
			""},
		{"arguments", map[string]any{"command": "git", "args": []string{"log", "; rm x"}, "cwd": "sub"},
			abi.ExecRequest{Argv: []string{"git", "log", "; rm x"}, Cwd: "sub"}, ""},
		{"spaces around a program", map[string]any{"command": " git ", "args": []string{"log"}},
			abi.ExecRequest{Argv: []string{"git", "log"}}, ""},
		{"a line and arguments", map[string]any{"command": "git log", "args": []string{"-1"}}, abi.ExecRequest{},
			"with args, command is the name of a program alone"},
		{"nothing", map[string]any{"command": " \n"}, abi.ExecRequest{}, "command is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := new(played)
			response, _ := call(t, p, test.arguments, "")
			if test.refusal != "" {
				if !response.IsError || !strings.Contains(response.Content[0].Text, test.refusal) || p.request != nil {
					t.Errorf("%+v", response)
				}
				return
			}
			if p.request == nil || p.request.Line != test.want.Line || p.request.Cwd != test.want.Cwd ||
				!slices.Equal(p.request.Argv, test.want.Argv) {
				t.Errorf("ran %+v", p.request)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		play   played
		locale string
		text   string
		want   structured
	}{
		{"output", played{stdout: []string{"a\n", "b\n"}}, "", "a\nb\n", structured{Stdout: "a\nb\n"}},
		{"errors", played{stdout: []string{"a"}, stderr: []string{"e\n"}, exit: abi.ExecExit{ExitCode: 2}}, "",
			"a\n[stderr]\ne\n[exit code 2]", structured{Stdout: "a", Stderr: "e\n", ExitCode: 2}},
		{"nothing", played{}, "", "[exit code 0, no output]", structured{}},
		{"a signal", played{exit: abi.ExecExit{ExitCode: -1, Signal: "killed"}}, "", "[ended by a signal: killed]",
			structured{ExitCode: -1, Signal: "killed"}},
		{"no more time", played{exit: abi.ExecExit{ExitCode: -1, Signal: "killed", Stopped: abi.StoppedTime}}, "",
			"[ended by hako: its time was up]", structured{ExitCode: -1, Signal: "killed", TimedOut: true}},
		{"too much", played{exit: abi.ExecExit{ExitCode: -1, Signal: "killed", Stopped: abi.StoppedOutput,
			Cut: []string{"stderr"}}}, "", "[ended by hako: its output is too large]",
			structured{ExitCode: -1, Signal: "killed", Truncated: []string{"stderr"}}},
		{"Japanese", played{exit: abi.ExecExit{ExitCode: 1}}, "ja-JP", "[終了コード 1]", structured{ExitCode: 1}},
		{"no UTF-8", played{stdout: []string{"a\xff"}, stderr: []string{"\x80"}}, "", "a\uFFFD\n[stderr]\n\uFFFD",
			structured{Stdout: "a\uFFFD", Stderr: "\uFFFD", Replaced: []string{"stdout", "stderr"}}},
		{"a character in two pieces", played{stdout: []string{"\xe6\x97", "\xa5"}}, "", "日", structured{Stdout: "日"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			response, got := call(t, &test.play, map[string]any{"command": "x"}, test.locale)
			if response.IsError || text(response) != test.text {
				t.Errorf("%q", text(response))
			}
			if got.Stdout != test.want.Stdout || got.Stderr != test.want.Stderr || got.Signal != test.want.Signal ||
				got.ExitCode != test.want.ExitCode ||
				got.TimedOut != test.want.TimedOut || !slices.Equal(got.Truncated, test.want.Truncated) ||
				!slices.Equal(got.Replaced, test.want.Replaced) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func text(r *abi.Response) string { return r.Content[0].Text + string(r.Content[0].Data) }

// TestLong: of long output the beginning and the end are kept, whole characters each, and how much is left out is told
// exactly.
func TestLong(t *testing.T) {
	t.Parallel()
	for shift := range 3 {
		lines := strings.Repeat("x", shift) + strings.Repeat("日本語\n", 100_000)
		p := &played{}
		for rest := lines; rest != ""; {
			n := min(len(rest), 32<<10-1)
			p.stdout, rest = append(p.stdout, rest[:n]), rest[n:]
		}
		_, got := call(t, p, map[string]any{"command": "x"}, "")
		head, tail, found := strings.Cut(got.Stdout, "\n[... ")
		count, tail, ok := strings.Cut(tail, " bytes left out ...]\n")
		left := 0
		if err := json.Unmarshal([]byte(count), &left); err != nil {
			t.Fatal(err)
		}
		if !found || !ok || !strings.HasPrefix(lines, head) || !strings.HasSuffix(lines, tail) ||
			len(head)+len(tail)+left != len(lines) ||
			len(got.Replaced) > 0 || !slices.Equal(got.Truncated, []string{"stdout"}) || len(head) < keepHead-4 ||
			len(tail) < keepTail-4 {
			t.Errorf("shift %d: %d + %d + %d of %d, replaced %v, truncated %v", shift, len(head), left, len(tail),
				len(lines), got.Replaced, got.Truncated)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	p := &played{fails: &abi.Error{Code: abi.CodeNotGranted, Message: "rm -rf x: denied by the rule"}}
	if response, _ := call(t, p, map[string]any{"command": "rm -rf x"}, ""); !response.IsError ||
		!strings.Contains(text(response), "denied by the rule") {
		t.Errorf("%+v", response)
	}
	response := pdktest.CallTool(t, "shell_exec", map[string]any{"command": "ls"}, pdktest.Options{})
	if !response.IsError || !strings.Contains(text(response), "outside of a host no commands run") {
		t.Errorf("%+v", response)
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pieces []string
		want   string
	}{
		{[]string{"a\nb\n"}, "b"},
		{[]string{"a\nb"}, "b"},
		{[]string{"50", "% done"}, "50% done"},
		{[]string{"10%\r20%\r"}, "20%"},
		{[]string{"a\n", "\n \n"}, "a"},
		{[]string{"a\x1b[31mb\x07\n"}, "a[31mb"},
		{[]string{strings.Repeat("日", 1000)}, strings.Repeat("日", 66) + "…"},
		{[]string{"\xff\n"}, "\uFFFD"},
	} {
		var l lastLine
		for _, piece := range test.pieces {
			l.add([]byte(piece))
		}
		if got := l.String(); got != test.want {
			t.Errorf("%q: %q, want %q", test.pieces, got, test.want)
		}
	}
}

// TestManifest holds what other files say of the tool.
func TestManifest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../manifests/shell.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stdout", "stderr", "exitCode", "signal", "timedOut", "truncated", "replaced"} {
		if !strings.Contains(string(text), "        "+name+":\n") {
			t.Errorf("the output schema lacks %s", name)
		}
	}
}
