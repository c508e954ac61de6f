package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/store/drivers"
)

const askEcho = "version: 1\nrules: [{name: ask about echoes, action: ask, tools: [probe_echo], approvers: {users: [boss]}}]\n"

// askingFirst is a workplace whose policy asks about a tool.
func askingFirst(t *testing.T, configuration string) string {
	t.Helper()
	dir := approved(t, configuration)
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte(askEcho))
	return dir
}

// echo calls the tool that is asked about, and returns where the answer comes.
func (s *served) echo(t *testing.T) <-chan string {
	t.Helper()
	answer := make(chan string, 1)
	go func() {
		_, text := s.rpc(t, "", "tools/call", "probe_echo", `"name":"probe_echo","arguments":{"text":"over HTTP"},`)
		answer <- text
	}()
	return answer
}

var approvalID = regexp.MustCompile(`apr_[A-Z0-9]+`)

// startProcess starts this program in dir.
func startProcess(t *testing.T, dir string, args ...string) (*exec.Cmd, *watched) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output := new(watched)
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, output
}

// TestApprovals: a server asks operators while one of them watches in another process, and takes answers of a third.
func TestApprovals(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals to send on Windows")
	}
	dir := askingFirst(t, "")
	s := serve(t, dir)
	if answer := <-s.echo(t); !strings.Contains(answer, "hako approvals") ||
		!strings.Contains(answer, "can be reached") {
		t.Errorf("while nobody watches: %s", answer)
	}
	watch, output := startProcess(t, dir, "approvals", "watch")
	<-output.await("Watching.")
	asked := func(number string) (id string, answer <-chan string) {
		t.Helper()
		answer = s.echo(t)
		select {
		case <-output.await("[" + number + "] apr_"):
		case text := <-answer:
			t.Fatalf("not asked: %s", text)
		}
		<-output.await("Allow") // the first line of the question
		all := approvalID.FindAllString(output.String(), -1)
		return all[len(all)-1], answer
	}
	answers := func(code int, want string, args ...string) {
		t.Helper()
		cmd, output := startProcess(t, dir, append([]string{"approvals"}, args...)...)
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(output.String(), want) {
			t.Errorf("%q: exit code %d: %s", args, got, output)
		}
	}
	id, answer := asked("1")
	invoke(t, dir, "approvals").want(t, exitOK, id, "probe_echo", "ask about echoes", "(mcp-http)")
	var list []approval.Question
	if err := json.Unmarshal([]byte(invoke(t, dir, "approvals", "--json").stdout), &list); err != nil ||
		len(list) != 1 || list[0].ID != id {
		t.Errorf("%+v, %v", list, err)
	}
	answers(exitOK, "approved "+id, "approve", id)
	if text := <-answer; !strings.Contains(text, `"text":"over HTTP"`) {
		t.Errorf("approved: %s", text)
	}
	answers(exitUsage, "has been answered", "refuse", id)
	id, answer = asked("2")
	answers(exitOK, "refused "+id, "refuse", id)
	if text := <-answer; !strings.Contains(text, "it was refused by") {
		t.Errorf("refused: %s", text)
	}
	<-output.await("[2] is no longer pending")
	answers(exitUsage, "there is no such question", "approve", "apr_X")
	answers(exitOK, "Nothing waits.")
	if err := watch.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := watch.Wait(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	if text := <-s.echo(t); !strings.Contains(text, "can be reached") {
		t.Errorf("after the operator has left: %s", text)
	}
}

// TestApprovalsWatch: an operator answers at the terminal, by number.
func TestApprovalsWatch(t *testing.T) {
	t.Parallel()
	dir := askingFirst(t, "locale: ja\napprovals: {operators: true}\n")
	s := serve(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	typed, keyboard := io.Pipe()
	screen, done, person := new(watched), make(chan int, 1), true
	go func() {
		a := &app{stdin: typed, stdout: screen, stderr: screen, person: &person}
		done <- a.run(ctx, []string{"-C", dir, "approvals", "watch"})
	}()
	first := s.echo(t)
	<-screen.await("許可する場合は yes 1、拒否する場合は no 1")
	if text := screen.String(); !strings.Contains(text, "probe_echo の実行を許可しますか？") ||
		!strings.Contains(text, "over HTTP") {
		t.Errorf("asked\n%s", text)
	}
	second := s.echo(t)
	<-screen.await("許可する場合は yes 2、拒否する場合は no 2")
	for _, line := range []string{"yes", "yes 3", "perhaps 1", "", "yes one"} {
		io.WriteString(keyboard, line+"\n")
	}
	io.WriteString(keyboard, "いいえ 2\n")
	if text := <-second; !strings.Contains(text, "refused by") {
		t.Errorf("no 2: %s", text)
	}
	if n := strings.Count(screen.String(), "yes か no に続けて、"); n != 4 {
		t.Errorf("%d hints\n%s", n, screen)
	}
	io.WriteString(keyboard, "YES 1\n")
	if text := <-first; !strings.Contains(text, `"text":"over HTTP"`) {
		t.Errorf("yes 1: %s", text)
	}
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	// What operators did is on record.
	invoke(t, dir, "audit", "query", "--type", "operator", "--action", "approval.answer").want(t, exitOK, "approved",
		"refused")
}

// TestTerminalPrompt: a person at the terminal is asked before the tool runs.
func TestTerminalPrompt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		locale, typed string
		code          int
		want          []string
	}{
		"yes":             {"en", "yes\n", exitOK, []string{"Allow probe_echo?", "Type yes to allow it:", "hello"}},
		"no":              {"en", "no\n", exitNotAllowed, []string{"it was refused by"}},
		"nothing":         {"en", "\n", exitNotAllowed, []string{"it was refused by"}},
		"the input's end": {"en", "", exitNotAllowed, []string{"it was refused by"}},
		"something else":  {"en", "yesterday\n", exitNotAllowed, []string{"it was refused by"}},
		"はい": {"ja", "はい\n", exitOK, []string{"probe_echo の実行を許可しますか？", "許可する場合は yes と入力してください:",
			"hello"}},
		"yes, in Japanese": {"ja", "y\n", exitOK, []string{"hello"}},
		"いいえ, in Japanese": {"ja", "いいえ\n", exitNotAllowed, []string{"it was refused by"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := askingFirst(t, "locale: "+test.locale+"\n")
			screen, person := new(watched), true
			a := &app{stdin: strings.NewReader(test.typed), stdout: screen, stderr: screen, person: &person}
			code := a.run(t.Context(), []string{"-C", dir, "call", "probe_echo", `{"text":"hello"}`})
			outcome{code, screen.String(), ""}.want(t, test.code, test.want...)
		})
	}
	nobody := false
	screen := new(watched)
	a := &app{stdin: strings.NewReader("yes\n"), stdout: screen, stderr: screen, person: &nobody}
	code := a.run(t.Context(), []string{"-C", askingFirst(t, ""), "call", "probe_echo", `{"text":"hello"}`})
	outcome{code, screen.String(), ""}.want(t, exitNotAllowed, "can be reached", "hako approvals")
}

// TestTerminalPromptIsCancelled: ctrl-C ends the call and takes the question back.
func TestTerminalPromptIsCancelled(t *testing.T) {
	t.Parallel()
	dir := askingFirst(t, "")
	ctx, interrupt := context.WithCancel(t.Context())
	typed, keyboard := io.Pipe()
	defer keyboard.Close()
	screen, person, done := new(watched), true, make(chan int, 1)
	go func() {
		a := &app{stdin: typed, stdout: screen, stderr: screen, person: &person}
		done <- a.run(ctx, []string{"-C", dir, "call", "probe_echo", `{"text":"hello"}`})
	}()
	<-screen.await("Type yes to allow it:")
	interrupt()
	outcome{<-done, screen.String(), ""}.want(t, exitInterrupted, "interrupted")
	s, err := drivers.Open(t.Context(), filepath.Join(dir, "hako.store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	approvals, err := approval.New(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if waiting, err := approvals.Waiting(t.Context(), nil); err != nil || len(waiting) != 0 {
		t.Errorf("%v waits, %v", waiting, err)
	}
}

// TestTerminalPromptAgain: a question that ended elsewhere takes no answer of the next one.
func TestTerminalPromptAgain(t *testing.T) {
	t.Parallel()
	typed, keyboard := io.Pipe()
	screen := new(watched)
	ask := (&terminal.IO{In: typed, Err: screen, Interactive: true}).Prompter("en").Ask
	ended, end := context.WithCancel(t.Context())
	end()
	if yes, err := ask(ended, &approval.Question{Tool: "first"}); yes || !errors.Is(err, context.Canceled) {
		t.Errorf("%t, %v", yes, err)
	}
	for _, tool := range []string{"second", "third"} {
		asked := screen.await("Allow " + tool)
		go func() {
			<-asked
			io.WriteString(keyboard, "yes\n")
		}()
		if yes, err := ask(t.Context(), &approval.Question{Tool: tool}); !yes || err != nil {
			t.Errorf("%s: %t, %v", tool, yes, err)
		}
	}
}
