package main

import (
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/hako-run/hako/dev/kit/testpty"
)

// person is somebody at a terminal of hako-dev.
type person struct {
	*process
	keyboard *os.File
}

// sit runs a command line at a terminal, as the foreground process of a session of its own.
func sit(t *testing.T, args ...string) *person {
	t.Helper()
	master, tty := testpty.Open(t)
	p := &person{command(t, args...), master}
	p.Stdin, p.Stdout, p.Stderr = tty, tty, tty
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.start(t)
	_ = tty.Close()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		_, _ = io.Copy(p.screen, master) // it fails when nobody has the terminal any more
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // if it is still there
		<-shown
		_ = master.Close()
	})
	return p
}

// types presses keys once text is shown.
func (p *person) types(t *testing.T, after, keys string) {
	t.Helper()
	p.screen.see(t, after)
	if _, err := p.keyboard.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

const ctrlC, ctrlD = "\x03", "\x04"

// TestChatAtATerminal: a person answers the questions of the policy.
func TestChatAtATerminal(t *testing.T) {
	t.Parallel()
	p := sit(t, "chat", "--hako", needsHako(t))
	p.types(t, "\n> ", "Put the overtime of May into the sheet and tell Aki\n")
	for range 2 {
		p.types(t, "Type yes to allow it: ", "yes\n")
	}
	p.screen.see(t, "Aki knows of it on Slack")
	p.types(t, "\n> ", ctrlD)
	p.wantEnd(t, exitOK)
}

// TestChatCtrlC: the terminal sends Ctrl-C to hako too, which gets it once: it asks for another one.
func TestChatCtrlC(t *testing.T) {
	t.Parallel()
	p := sit(t, "chat", "--hako", needsHako(t))
	p.types(t, "\n> ", ctrlC)
	p.types(t, "Press Ctrl-C again", ctrlC)
	p.wantEnd(t, exitOK)
}

// TestAgentAtATerminal: questions of the policy are answered there.
func TestAgentAtATerminal(t *testing.T) {
	t.Parallel()
	p := sit(t, "agent", "--hako", needsHako(t), "Put the overtime of May into the sheet and tell Aki")
	for _, tool := range []string{"(write_rows_to_google_sheet)?", "(send_slack_dm)?"} {
		p.types(t, tool, "yes\n")
	}
	p.screen.see(t, "Aki knows of it on Slack")
	p.wantEnd(t, exitOK)
}

// TestAgentCtrlC: Ctrl-C ends hako and hako-dev while a question waits.
func TestAgentCtrlC(t *testing.T) {
	t.Parallel()
	p := sit(t, "agent", "--hako", needsHako(t), "Put the overtime of May into the sheet")
	p.types(t, "(write_rows_to_google_sheet)?", ctrlC)
	p.wantEnd(t, exitOK)
}

// TestSlackCtrlC: Ctrl-C ends the page and the bot.
func TestSlackCtrlC(t *testing.T) {
	t.Parallel()
	p := sit(t, "slack", "--hako", needsHako(t), "--address", "127.0.0.1:0")
	p.types(t, "/?token=", ctrlC)
	p.wantEnd(t, exitOK)
}
