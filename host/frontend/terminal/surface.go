package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
)

// chatSurface shows a turn at the terminal: the answer on standard output, all else on standard error.
type chatSurface struct {
	chat   *Chat
	colour bool

	// mu guards the fields below: questions are asked while the turn reports progress.
	mu     sync.Mutex
	titles map[string]string
	// open reports whether the last line of the answer has no line feed yet, apart that other output followed it.
	open, apart bool
	// asking is held by the question on the screen.
	asking sync.Mutex
}

// Colours and styles of a terminal.
const (
	bold      = "\x1b[1m"
	dim       = "\x1b[2m"
	italic    = "\x1b[3m"
	underline = "\x1b[4m"
	struck    = "\x1b[9m"
	red       = "\x1b[31m"
	green     = "\x1b[32m"
	yellow    = "\x1b[33m"
	cyan      = "\x1b[36m"
	plain     = "\x1b[0m"
)

// coloured reports whether the stream is for a person who wants colours (no-color.org).
func coloured(out io.Writer) bool { return knowsSequences(out) && os.Getenv("NO_COLOR") == "" }

// knowsSequences reports whether the stream is a terminal that interprets control sequences.
func knowsSequences(out io.Writer) bool {
	return sequences && IsTerminal(out) && os.Getenv("TERM") != "dumb"
}

func newChatSurface(s *Chat) *chatSurface {
	return &chatSurface{chat: s, colour: coloured(s.Err), titles: map[string]string{}}
}

// Text continues the answer.
func (t *chatSurface) Text(delta string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := delta
	if t.apart {
		text = strings.TrimLeft(delta, "\n") // the paragraph has ended already
	}
	if text == "" {
		return
	}
	Printf(t.chat.Out, "%s", Block(text))
	t.open, t.apart = !strings.HasSuffix(text, "\n"), false
}

// line prints a line that is not part of the answer.
func (t *chatSurface) line(colour, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
	if t.colour && colour != "" {
		NewScreen(t.chat.Err).Styled(colour, text, plain+"\n")
	} else {
		Printf(t.chat.Err, "%s\n", text)
	}
	t.apart = true
}

// end ends the line of the answer that is open. t.mu is held.
func (t *chatSurface) end() {
	if t.open {
		fmt.Fprintln(t.chat.Out)
		t.open = false
	}
}

// close ends the answer.
func (t *chatSurface) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
}

// ToolStarted shows a tool that runs.
func (t *chatSurface) ToolStarted(id, _, title string) {
	t.mu.Lock()
	t.titles[id] = title
	t.mu.Unlock()
	t.line(dim, "⏳ "+title)
}

// ToolEnded shows the outcome of a tool.
func (t *chatSurface) ToolEnded(id string, outcome pipeline.Outcome, short string) {
	t.mu.Lock()
	title := t.titles[id]
	t.mu.Unlock()
	mark, colour := "✗ ", red
	if outcome == pipeline.OK {
		mark, colour = "✓ ", green
	}
	if short != "" {
		short = ": " + short
	}
	t.line(colour, mark+title+short)
}

// Notice shows a notice.
func (t *chatSurface) Notice(_ chat.Notice, text string) { t.line(yellow, "• "+text) }

// Prompter asks the person at the terminal.
func (t *chatSurface) Prompter(call chat.ToolCall) approval.Prompter {
	if t.chat.Verbose {
		t.line(dim, "  "+call.Name+" "+string(call.Arguments))
	}
	return approval.Prompter{Ask: t.ask, Fill: t.fill}
}

// ask asks one question after the other.
func (t *chatSurface) ask(ctx context.Context, q *approval.Question) (bool, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	t.close()
	t.chat.input.drop() // what was typed before the question is no answer to it
	return askLine(ctx, t.chat.Err, q, t.chat.Locale, t.chat.input.next)
}

// fill puts one question of a server's after the other.
func (t *chatSurface) fill(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if err := ctx.Err(); err != nil {
		return elicitation.Answer{}, err
	}
	t.close()
	t.chat.input.drop() // what was typed before the question is no answer to it
	return fillForm(ctx, t.chat.Err, q, t.chat.Locale, t.chat.input.next)
}

// pipeSurface shows what tools do, if that is wanted, and asks nobody.
type pipeSurface struct{ chat *Chat }

// Text shows nothing: the answer is printed when it is whole.
func (p pipeSurface) Text(string) {}

// ToolStarted shows nothing.
func (p pipeSurface) ToolStarted(string, string, string) {}

// ToolEnded shows nothing.
func (p pipeSurface) ToolEnded(string, pipeline.Outcome, string) {}

// Notice shows a notice on standard error, except for retries.
func (p pipeSurface) Notice(kind chat.Notice, text string) {
	if kind == chat.NoticeRetrying {
		return
	}
	Printf(p.chat.Err, "hako: %s\n", text)
}

// Prompter shows a call if that is wanted.
func (p pipeSurface) Prompter(call chat.ToolCall) approval.Prompter {
	if p.chat.Verbose {
		Printf(p.chat.Err, "%s %s\n", call.Name, string(call.Arguments))
	}
	return approval.Prompter{}
}
