package terminal

import (
	"fmt"
	"strings"

	"golang.org/x/term"

	"github.com/hako-run/hako/internal/visible"
)

// draw shows the current state.
func (e *editor) draw() {
	_, height := e.size()
	width := e.width()
	input, x, y := e.inputRows(width)
	foot := e.footRows(width)
	middle := e.turn.rows(e, width)
	room := max(0, height-len(input)-len(foot)-len(middle)-2)
	live := e.turn.settle(e, width, room)
	var rows []string
	if len(live) > 0 {
		if e.printed != kindAnswer || e.turn.block > 0 && e.turn.shown == 0 {
			rows = append(rows, "")
		}
		rows = append(rows, live...)
	}
	if len(middle) > 0 {
		if len(live) > 0 || e.printed != kindTool {
			rows = append(rows, "")
		}
		rows = append(rows, middle...)
	}
	rows = append(rows, "")
	y += len(rows)
	rows = append(append(rows, input...), foot...)
	if cut := min(len(rows)-height, y); cut > 0 {
		rows, y = rows[cut:], y-cut
	}
	rows = rows[:min(len(rows), height)]
	e.region.draw(e.above, rows, x, y, width+1)
	e.above = nil
}

// inputRows are the message, or the answer to a question, with the place of the cursor.
func (e *editor) inputRows(width int) (rows []string, x, y int) {
	e.input.SetWidth(width)
	for line := range strings.SplitSeq(e.input.View(), "\n") {
		rows = append(rows, strings.TrimRight(line, " "))
	}
	prompt := row{e.styled(bold+green, ">"), {text: " "}}
	if e.question != nil {
		prompt[0] = e.styled(bold+yellow, "?")
	}
	rows[0] = prompt.String() + strings.TrimPrefix(strings.TrimPrefix(rows[0], ">"), " ")
	if at := e.input.Cursor(); at != nil {
		x, y = at.X, at.Y
	}
	if q := e.question; q != nil {
		text := q.prompt
		if !q.expires.IsZero() {
			text += " " + fmt.Sprintf(e.words.left, duration(q.expires.Sub(e.now())))
		}
		var head []string
		for _, r := range wrap([]span{e.styled(yellow, visible.Line(text))}, width) {
			head = append(head, r.String())
		}
		rows, y = append(head, rows...), y+len(head)
	}
	return rows, x, min(y, len(rows)-1)
}

// maxSuggestions is the number of completions shown.
const maxSuggestions = 8

// footRows are the completions.
func (e *editor) footRows(width int) (rows []string) {
	widest := 0
	for _, s := range e.suggestions {
		widest = max(widest, len(s.line))
	}
	for i, s := range e.suggestions {
		text := fmt.Sprintf("  %-*s  %s", widest, visible.Line(s.line), visible.Line(s.about))
		if i == maxSuggestions {
			text = fmt.Sprintf("  … %d", len(e.suggestions)-i)
		}
		rows = append(rows, row{e.styled(dim, clip(text, width))}.String())
		if i == maxSuggestions {
			break
		}
	}
	return rows
}

// print prints rows above the region.
func (e *editor) print(what kind, rows ...string) {
	if what != e.printed && e.printed != kindNone && len(rows) > 0 && rows[0] != "" {
		e.above = append(e.above, "")
	}
	e.above = append(e.above, rows...)
	e.printed = what
}

// printPlain prints lines. Those without control sequences are broken between words.
func (e *editor) printPlain(lines []string) {
	for _, line := range lines {
		if strings.Contains(line, "\x1b") {
			e.print(kindPlain, line)
			continue
		}
		for _, r := range wrap([]span{{text: spaced(line)}}, e.width()) {
			e.print(kindPlain, r.String())
		}
	}
}

func (e *editor) printMessage(text string) {
	prompt := e.styled(bold+green, "> ")
	for _, r := range hang(prompt, span{text: "  "}, []span{e.styled(bold, visible.Escape(spaced(text)))}, e.width()) {
		e.print(kindMessage, r.String())
	}
}

func (e *editor) styled(style, text string) span {
	if !e.colour {
		style = ""
	}
	return span{style, text}
}

// width returns the most columns of a row. The last column stays empty: terminals differ in what happens after it.
func (e *editor) width() int {
	width, _ := e.size()
	return width - 1
}

func (e *editor) size() (width, height int) {
	width, height, err := term.GetSize(int(e.file.Fd()))
	if err != nil || width < 2 || height < 2 {
		return 80, 24
	}
	return width, height
}
