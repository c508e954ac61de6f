package terminal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

// parrot is a model that repeats the last message in bold. It never ends an answer to "wait".
type parrot struct{}

func (parrot) Name() string { return "parrot" }

func (parrot) Complete(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
	said := r.Messages[len(r.Messages)-1].Text
	said = said[strings.LastIndex(said, "\n")+1:]
	stream(llm.Delta{Text: "**" + said + "**!"})
	if said == "wait" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &llm.Response{Text: "**" + said + "**!", Stop: llm.StopEnd}, nil
}

// newParrot returns the engine of chats with a parrot.
func newParrot(t *testing.T) (*chat.Engine, *Model) {
	t.Helper()
	engine, err := chat.New(t.Context(), &chat.Options{Provider: parrot{}, Store: storetest.Open(t, storetest.Where(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	chain, err := llm.New(llm.Options{Specs: []llm.Spec{
		{Name: "local", Provider: llm.OpenAICompatible, Model: "m", BaseURL: "http://127.0.0.1:9/v1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return engine, NewModel(chain)
}

// TestEditedChat: whole chats at a pseudo-terminal: answers, Ctrl-C, commands, and a second chat that goes on with the
// conversation and knows what was typed in the first one.
func TestEditedChat(t *testing.T) {
	t.Setenv("TERM", "xterm")
	engine, model := newParrot(t)
	state := t.TempDir()
	begin := func(resume bool) (*emulator, *Chat, chan error) {
		v := newEmulator(t, 60, 30)
		c := &Chat{
			IO:     IO{In: v.tty, Out: NewScreen(v.tty), Err: NewScreen(v.tty), Interactive: true},
			Engine: engine, Model: model, Tools: func(pipeline.Caller) []*catalog.Tool { return nil },
			Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki/../b"}, Locale: "en", State: state,
			Resume: resume, Now: func() time.Time { return noon },
		}
		done := make(chan error, 1)
		go func() { done <- c.Run(t.Context()) }()
		v.ends(t, "\n>\n")
		return v, c, done
	}
	v, _, done := begin(true) // there is nothing to resume
	v.types(t, "こんにちは\r")
	v.ends(t, "\n> こんにちは\n\nこんにちは!\n\n>\n")
	v.types(t, "wait\r")
	v.shows(t, "> wait\n\nwait!\n")
	v.types(t, "later\r")
	v.shows(t, "next: later\n")
	v.types(t, "\x03")
	v.ends(t, "Stopped.\n\n> later\n\nlater!\n\n>\n")
	v.types(t, "/model third\r")
	v.shows(t, `there is no model "third"`)
	v.types(t, "/help\r")
	v.ends(t, "Ctrl-C stops an answer, twice it ends; Ctrl-D ends.\n\n>\n")
	v.types(t, "\x03")
	v.ends(t, "Press Ctrl-C again to end.\n\n>\n")
	v.types(t, "\x03")
	text := v.shows(t, "Go on with: hako chat --conversation t-")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if strings.Contains(text, "@") {
		t.Errorf("something else was shown: %s", text)
	}
	files, _ := filepath.Glob(filepath.Join(state, "*", "*"))
	if len(files) != 1 || filepath.Base(files[0]) != "aki%2F..%2Fb.jsonl" {
		t.Errorf("files: %v", files)
	}

	v, c, done := begin(true)
	v.ends(t, "hako with local, tools: 0. /help lists what else there is;\nCtrl-C stops an answer, twice it ends.\n"+
		"Going on with "+c.Conversation+": こんにちは\n\n> later\n\nlater!\n\n>\n")
	v.types(t, "\x1b[A\x1b[A\x1b[A\x1b[A")
	v.ends(t, "> wait\n")
	v.types(t, "\x15/new\r")
	v.shows(t, "A new conversation: ")
	v.types(t, "other\r")
	v.ends(t, "\nother!\n\n>\n")
	v.types(t, "/res\tt-")
	v.ends(t, "> /resume t-\n")
	v.types(t, "\x15/resume\r")
	v.ends(t, "\n> later\n\nlater!\n\n>\n")
	v.types(t, "/sessions\r")
	v.shows(t, "  other\n")
	v.types(t, "\x04")
	v.shows(t, "Go on with: ")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDumbTerminal: a terminal without control sequences gets plain lines.
func TestDumbTerminal(t *testing.T) {
	v := newEmulator(t, 60, 30)
	streams := IO{In: v.tty, Out: NewScreen(v.tty), Err: NewScreen(v.tty), Interactive: true}
	t.Setenv("TERM", "xterm")
	if !streams.edits() {
		t.Error("a terminal has no editor")
	}
	t.Setenv("TERM", "dumb")
	if streams.edits() {
		t.Error("a dumb terminal has an editor")
	}
	t.Setenv("TERM", "xterm")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, streams := range []IO{
		{v.tty, NewScreen(null), NewScreen(v.tty), true}, {v.tty, NewScreen(v.tty), NewScreen(null), true},
		{null, NewScreen(v.tty), NewScreen(v.tty), true}, {v.tty, NewScreen(v.tty), NewScreen(v.tty), false},
	} {
		if streams.edits() {
			t.Error("what is no terminal has an editor")
		}
	}
}

// TestPlainChat: a whole chat, with a tool and its progress, has no control sequences on a terminal that knows none.
func TestPlainChat(t *testing.T) {
	engine, model := newParrot(t)
	for _, terminal := range []string{"dumb", "xterm"} {
		t.Setenv("TERM", terminal)
		t.Setenv("NO_COLOR", "")
		var shown bytes.Buffer
		screen := &Screen{Writer: visible.NewWriter(&shown), Terminal: true}
		c := &Chat{
			IO:     IO{In: strings.NewReader("hello\n/help\n/sessions\n"), Out: screen, Err: screen, Interactive: true},
			Engine: engine, Model: model, Tools: func(pipeline.Caller) []*catalog.Tool { return nil },
			Caller: pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki"}, Locale: "en", State: t.TempDir(),
			Now: func() time.Time { return noon },
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		surface := newChatSurface(c)
		surface.ToolStarted("1", "report", "Report")
		progress := NewProgress(screen)
		progress.Show(abi.Progress{Progress: 1, Total: 4, Message: "page 1"})
		progress.Clear()
		surface.ToolEnded("1", pipeline.OK, "3 rows")
		surface.Notice("", "again")
		text := shown.String()
		for _, want := range []string{"**hello**!\n", "Ctrl-C", "✓ Report: 3 rows", "• again"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %q", terminal, want, text)
			}
		}
		if got := strings.ContainsAny(text, "\x1b\r"); got != (terminal == "xterm") {
			t.Errorf("%s: control sequences: %t in %q", terminal, got, text)
		}
	}
}
