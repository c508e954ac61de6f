package terminal

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/visible"
)

// editorSurface shows a turn above an editor.
type editorSurface struct {
	*editor
	chat *Chat
}

// Text continues the answer.
func (t editorSurface) Text(text string) {
	t.do(func() {
		t.turn.answer += text
		t.turn.changed = true
	})
}

// begin shows that a turn runs.
func (t editorSurface) begin() {
	t.do(func() { t.turn = turnView{running: true, started: t.now()} })
}

// close prints the rest of the answer.
func (t editorSurface) close() {
	t.do(func() {
		t.turn.flush(t.editor, t.width())
		t.turn = turnView{}
	})
}

// ToolStarted shows a tool that runs.
func (t editorSurface) ToolStarted(id, _, title string) {
	t.do(func() {
		t.turn.flush(t.editor, t.width())
		t.turn.tools = append(t.turn.tools, runningTool{id, title, t.now()})
	})
}

// ToolEnded prints the outcome of a tool and the time that it took.
func (t editorSurface) ToolEnded(id string, outcome pipeline.Outcome, short string) {
	t.do(func() {
		var tool runningTool
		if i := slices.IndexFunc(t.turn.tools, func(r runningTool) bool { return r.id == id }); i >= 0 {
			tool = t.turn.tools[i]
			t.turn.tools = slices.Delete(t.turn.tools, i, i+1)
		}
		mark, colour := "✗ ", red
		if outcome == pipeline.OK {
			mark, colour = "✓ ", green
		}
		if short != "" {
			short = ": " + short
		}
		t.printLine(colour, mark, tool.title+short, "  "+duration(t.now().Sub(tool.started)))
	})
}

// Notice shows a notice.
func (t editorSurface) Notice(_ chat.Notice, text string) {
	t.do(func() { t.printLine(yellow, "• ", text, "") })
}

// Prompter asks the person at the terminal.
func (t editorSurface) Prompter(call chat.ToolCall) approval.Prompter {
	if t.chat.Verbose {
		t.do(func() { t.printLine(dim, "  ", call.Name+" "+string(call.Arguments), "") })
	}
	return approval.Prompter{Ask: t.ask, Fill: t.fill}
}

// ask asks one question after the other.
func (t editorSurface) ask(ctx context.Context, q *approval.Question) (bool, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	t.do(func() { t.printQuestion(q.Text(t.chat.Locale)) })
	var yes bool
	err := t.readLines(ctx, t.words.allow, q.Expires, func(line string) bool {
		line = strings.TrimSpace(line)
		always := saysAlways(line)
		if always {
			t.do(func() { t.printAlways(q) })
		}
		yes = always || saysYes(line)
		return yes || saysNo(line)
	})
	if err != nil {
		return false, ctx.Err() // the end of the input is a no
	}
	return yes, nil
}

// printLine prints a line that is not part of the answer, after what there is of it. detail is less important.
func (t *editor) printLine(colour, mark, text, detail string) {
	width := t.width()
	t.turn.flush(t, width)
	spans := []span{t.styled(colour, visible.Line(text)), t.styled(dim, visible.Line(detail))}
	for _, r := range hang(t.styled(colour, mark), span{text: "  "}, spans, width) {
		t.print(kindTool, r.String())
	}
}

// printQuestion prints the text of a question: the question itself stands out, and so do the names of values.
func (t *editor) printQuestion(text string) {
	width := t.width()
	t.turn.flush(t, width)
	for i, line := range strings.Split(text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		line = visible.Line(line[len(indent):])
		style := ""
		if i == 0 {
			style = bold + yellow
		}
		spans := []span{t.styled(style, line)}
		if name, value, ok := strings.Cut(line, ": "); ok && i > 0 && !strings.HasPrefix(line, "│") {
			spans = []span{t.styled(cyan, name+":"), {text: " " + value}}
		}
		mark := span{text: indent}
		if rest, ok := strings.CutPrefix(line, "│ "); ok {
			style := map[string]string{"- ": red, "+ ": green}[rest[:min(2, len(rest))]] // lines of a comparison
			mark, spans = t.styled(dim, indent+"│ "), []span{t.styled(style, rest)}
		}
		for _, r := range hang(mark, mark, spans, width) {
			t.print(kindQuestion, r.String())
		}
	}
}

// fill puts one question of a server's after the other.
func (t editorSurface) fill(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if err := ctx.Err(); err != nil {
		return elicitation.Answer{}, err
	}
	t.do(func() { t.turn.flush(t.editor, t.width()) })
	lines := &lineWriter{editor: t.editor}
	return fillForm(ctx, NewScreen(lines), q, t.chat.Locale, func(ctx context.Context) (string, error) {
		lines.flush() // what is asked for
		return t.readLine(ctx, t.words.answer, time.Time{})
	})
}
