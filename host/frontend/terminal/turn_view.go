package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/hako-run/hako/internal/visible"
)

// turnView is the turn that runs, as an editor shows it.
type turnView struct {
	running bool
	started time.Time
	tools   []runningTool
	// answer is the text since something else was printed. block is the number of its blocks that were printed, shown
	// the number of printed rows of the next one.
	answer       string
	block, shown int
	// changed reports whether there is new text, which the next picture shows.
	changed bool
}

// runningTool is a tool call that has not ended.
type runningTool struct {
	id, title string
	started   time.Time
}

// frame is the time between two pictures of a turn.
const frame = 50 * time.Millisecond

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// spin is the sign of something that runs.
func spin(elapsed time.Duration) string {
	return spinner[max(0, int(elapsed/(2*frame)))%len(spinner)]
}

// duration is a time for people.
func duration(d time.Duration) string {
	seconds := int(max(0, d).Round(time.Second) / time.Second)
	if seconds < 60 {
		return fmt.Sprintf("%ds", seconds)
	}
	return fmt.Sprintf("%dm%02ds", seconds/60, seconds%60)
}

// clip shortens a line to width columns.
func clip(line string, width int) string { return ansi.Truncate(line, width, "…") }

// settle prints what no longer changes of the answer, and returns the rows of the rest, at most room.
func (t *turnView) settle(e *editor, width, room int) (rest []string) {
	if strings.TrimSpace(t.answer) == "" {
		return nil
	}
	blocks := layOut(t.answer, t.block, width, e.colour)
	for i, b := range blocks {
		rest = rest[:0:0]
		for _, r := range b.rows[min(t.shown, len(b.rows)):] {
			rest = append(rest, r.String())
		}
		over := len(rest) - room
		if i < len(blocks)-1 {
			t.print(e, rest)
			t.block, t.shown = t.block+1, 0
		} else if over > 0 {
			if b.fixed {
				t.print(e, rest[:over])
				t.shown += over
			}
			rest = rest[over:]
		}
	}
	return rest
}

// print prints rows of the current block.
func (t *turnView) print(e *editor, rows []string) {
	if t.block > 0 && t.shown == 0 && e.printed == kindAnswer {
		e.above = append(e.above, "")
	}
	e.print(kindAnswer, rows...)
}

// flush prints the whole answer.
func (t *turnView) flush(e *editor, width int) {
	if rest := t.settle(e, width, maxMessage); len(rest) > 0 {
		t.print(e, rest)
	}
	t.answer, t.block, t.shown = "", 0, 0
}

// rows show what runs and what waits.
func (t *turnView) rows(e *editor, width int) (rows []string) {
	if !t.running {
		return nil
	}
	now := e.now()
	show := func(started time.Time, text string) {
		elapsed := now.Sub(started)
		time := duration(elapsed)
		text = clip(visible.Line(text), width-len(time)-4)
		rows = append(rows, row{e.styled(cyan, spin(elapsed)), {text: " " + text + " "}, e.styled(dim, time)}.String())
	}
	for _, tool := range t.tools {
		show(tool.started, tool.title)
	}
	switch {
	case len(t.tools) > 0:
	case t.answer != "":
		show(t.started, e.words.writing)
	default:
		show(t.started, e.words.thinking)
	}
	for _, text := range e.queued {
		first, _, _ := strings.Cut(text, "\n")
		rows = append(rows, row{e.styled(dim, clip(e.words.next+visible.Line(first), width))}.String())
	}
	return rows
}
