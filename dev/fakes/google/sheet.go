package google

import (
	"strconv"
	"strings"
)

// The size of a new sheet.
const (
	newRows    = 1000
	newColumns = 26
)

// sheet is a grid of cells, of which only those that are not empty are kept.
type sheet struct {
	title         string
	rows, columns int
	cells         map[position]cell
}

type position struct{ row, column int }

// cell is a value: a string, a float64 or a bool; for a formula what it shows, which is never computed here.
type cell struct {
	value   any
	formula string
}

func newSheet(title string) *sheet {
	return &sheet{title: title, rows: newRows, columns: newColumns, cells: map[position]cell{}}
}

func (sh *sheet) whole() grid { return grid{0, 0, sh.rows, sh.columns} }

// grow makes the sheet large enough for g.
func (sh *sheet) grow(g grid) {
	sh.rows, sh.columns = max(sh.rows, g.bottom), max(sh.columns, g.right)
}

// insert puts n empty rows before row.
func (sh *sheet) insert(row, n int) {
	moved := make(map[position]cell, len(sh.cells))
	for at, c := range sh.cells {
		if at.row >= row {
			at.row += n
		}
		moved[at] = c
	}
	sh.cells = moved
	sh.rows += n
}

// set stores one value of a request. nil leaves the cell, "" empties it.
func (sh *sheet) set(row, column int, value any, interpret bool) {
	at := position{row, column}
	text, isText := value.(string)
	switch {
	case value == nil:
	case isText && text == "":
		delete(sh.cells, at)
	case isText && interpret:
		sh.cells[at] = entered(text)
	default:
		sh.cells[at] = cell{value: value}
	}
}

// entered returns the value of a cell into which a person types the text, as far as it matters here.
func entered(text string) cell {
	if n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64); err == nil {
		return cell{value: n}
	}
	if strings.HasPrefix(text, "=") || strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") {
		return cell{"#FORMULA", "=" + strings.TrimPrefix(text, "=")}
	}
	if strings.EqualFold(text, "true") || strings.EqualFold(text, "false") {
		return cell{value: strings.EqualFold(text, "true")}
	}
	return cell{value: strings.TrimPrefix(text, "'")}
}

// Values of valueRenderOption.
const (
	renderFormatted   = "FORMATTED_VALUE"
	renderUnformatted = "UNFORMATTED_VALUE"
	renderFormula     = "FORMULA"
)

// read returns the values in g without what is empty at the ends of rows and at the end.
func (sh *sheet) read(g grid, render string) [][]any {
	values := [][]any{}
	for at, c := range sh.cells {
		if !g.contains(at.row, at.column) {
			continue
		}
		for len(values) <= at.row-g.top {
			values = append(values, []any{})
		}
		row := &values[at.row-g.top]
		for len(*row) <= at.column-g.left {
			*row = append(*row, nil)
		}
		(*row)[at.column-g.left] = c.render(render)
	}
	return values
}

func (c cell) render(option string) any {
	switch {
	case option == renderFormula && c.formula != "":
		return c.formula
	case option != renderFormatted:
		return c.value
	}
	switch value := c.value.(type) {
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case bool:
		return strings.ToUpper(strconv.FormatBool(value))
	default:
		return value
	}
}

// tables returns the areas of adjoining cells, each as the rectangle around it.
func (sh *sheet) tables() []grid {
	var found []grid
	seen := map[position]bool{}
	for start := range sh.cells {
		if seen[start] {
			continue
		}
		g := grid{start.row, start.column, start.row + 1, start.column + 1}
		seen[start] = true
		for queue := []position{start}; len(queue) > 0; {
			at := queue[0]
			queue = queue[1:]
			g = grid{min(g.top, at.row), min(g.left, at.column), max(g.bottom, at.row+1), max(g.right, at.column+1)}
			for _, next := range at.neighbours() {
				if _, ok := sh.cells[next]; ok && !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
		found = append(found, g)
	}
	return found
}

func (p position) neighbours() []position {
	var around []position
	for row := p.row - 1; row <= p.row+1; row++ {
		for column := p.column - 1; column <= p.column+1; column++ {
			around = append(around, position{row, column})
		}
	}
	return around
}

// lastTable returns the lowest table that g touches.
func (sh *sheet) lastTable(g grid) (last grid, ok bool) {
	for _, t := range sh.tables() {
		common := grid{max(t.top, g.top), max(t.left, g.left), min(t.bottom, g.bottom), min(t.right, g.right)}
		if !common.empty() && (!ok || t.bottom > last.bottom || t.bottom == last.bottom && t.left > last.left) {
			last, ok = t, true
		}
	}
	return last, ok
}
