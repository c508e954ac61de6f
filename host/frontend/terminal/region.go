package terminal

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// region draws rows at the lower end of a terminal, and prints text above them. Each change is one write that
// overwrites what it replaces, as a synchronized update (mode 2026), so nothing flickers.
type region struct {
	out io.Writer
	// widths are those of the rows on the screen, cursor is the row that the cursor is in, column its column.
	widths         []int
	cursor, column int
	last           string
}

// draw prints above, and then rows below it. The cursor goes to column x of the row with the index y. No row may be
// wider than width, and all must fit on the screen.
func (r *region) draw(above, rows []string, x, y, width int) {
	var b strings.Builder
	for i, text := range rows {
		b.WriteString(text + ansi.EraseLineRight)
		if i < len(rows)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString(ansi.EraseScreenBelow)
	if up := len(rows) - 1 - y; up > 0 {
		b.WriteString(ansi.CursorUp(up))
	}
	b.WriteString("\r")
	if x > 0 {
		b.WriteString(ansi.CursorForward(x))
	}
	if len(above) == 0 && b.String() == r.last && r.rowsAbove(width) == r.cursor {
		return
	}
	top := "\r"
	if up := r.rowsAbove(width); up > 0 {
		top += ansi.CursorUp(up)
	}
	if len(above) > 0 {
		top += ansi.EraseScreenBelow + strings.Join(above, "\r\n") + "\r\n"
	}
	control(r.out, ansi.SetModeSynchronizedOutput+ansi.HideCursor+top+b.String()+ansi.ShowCursor+
		ansi.ResetModeSynchronizedOutput)
	r.widths = r.widths[:0]
	for _, text := range rows {
		r.widths = append(r.widths, ansi.StringWidth(text))
	}
	r.cursor, r.column, r.last = y, x, b.String()
}

// rowsAbove counts the rows of the screen from the first row drawn to the cursor. A terminal that became narrower has
// broken long rows.
func (r *region) rowsAbove(width int) (n int) {
	for _, w := range r.widths[:min(r.cursor, len(r.widths))] {
		n += 1 + max(0, w-1)/max(width, 1)
	}
	return n + r.column/max(width, 1)
}
