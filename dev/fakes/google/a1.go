package google

import (
	"strconv"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// grid is a rectangle of cells, counted from 0, the ends not included.
type grid struct{ top, left, bottom, right int }

func (g grid) empty() bool { return g.top >= g.bottom || g.left >= g.right }

func (g grid) contains(row, column int) bool {
	return row >= g.top && row < g.bottom && column >= g.left && column < g.right
}

// place is a range in A1 notation, resolved.
type place struct {
	*sheet
	grid
	single bool // one cell was named, so that values may go beyond it
}

var (
	plainTitle = lazyregexp.New(`^[\p{L}\p{N}_]+$`)
	quoted     = lazyregexp.New(`^'((?:[^']|'')*)'(?:!(.*))?$`)
	cellRange  = lazyregexp.New(`^\$?([A-Za-z]{0,3})\$?([0-9]*)(?::\$?([A-Za-z]{0,3})\$?([0-9]*))?$`)
)

// locate resolves a range: 'Title'!A1:B2, Title!A1, Title, A1:B2, A:C, 2:5, A2:C. Titles with other characters than
// letters, digits and underscores must be quoted.
func (d *spreadsheet) locate(text string) (*place, *apiError) {
	failed := invalid("Unable to parse range: %s", text)
	sh, cells := d.sheets[0], text
	if m := quoted().FindStringSubmatch(text); m != nil {
		sh, cells = d.sheet(strings.ReplaceAll(m[1], "''", "'")), m[2]
	} else if title, rest, ok := strings.Cut(text, "!"); ok && plainTitle().MatchString(title) {
		sh, cells = d.sheet(title), rest
	} else if named := d.sheet(text); named != nil && plainTitle().MatchString(text) {
		sh, cells = named, ""
	}
	if sh == nil {
		return nil, failed
	}
	p := &place{sheet: sh, grid: sh.whole()}
	if cells == "" {
		return p, nil
	}
	m := cellRange().FindStringSubmatch(cells)
	if m == nil || !p.cut(m[1], m[2], m[3], m[4], strings.Contains(cells, ":")) {
		return nil, failed
	}
	if p.top >= sh.rows || p.left >= sh.columns {
		return nil, invalid("Range (%s) exceeds grid limits. Max rows: %d, max columns: %d", text, sh.rows, sh.columns)
	}
	return p, nil
}

// cut narrows p to what the corners name. Ends that are not named stay the sheet's.
func (p *place) cut(column, row, lastColumn, lastRow string, isRange bool) bool {
	if !isRange {
		lastColumn, lastRow, p.single = column, row, true
		if column == "" || row == "" {
			return false
		}
	}
	if column+row == "" || lastColumn+lastRow == "" {
		return false
	}
	from, to := grid{top: number(row), left: letters(column)}, grid{top: number(lastRow), left: letters(lastColumn)}
	if row != "" && from.top < 1 || lastRow != "" && to.top < 1 {
		return false
	}
	if column != "" {
		p.left = from.left - 1
	}
	if row != "" {
		p.top = from.top - 1
	}
	if lastColumn != "" {
		p.right = to.left
	}
	if lastRow != "" {
		p.bottom = to.top
	}
	return p.left < p.right && p.top < p.bottom || p.top >= p.rows || p.left >= p.columns
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// letters is a column's number, counted from 1.
func letters(column string) int {
	n := 0
	for _, letter := range strings.ToUpper(column) {
		n = n*26 + int(letter-'A'+1)
	}
	return n
}

// a1 writes a rectangle of a sheet as Google does: with quotes only where the title needs them.
func (sh *sheet) a1(g grid) string {
	title := sh.title
	if !plainTitle().MatchString(title) {
		title = "'" + strings.ReplaceAll(title, "'", "''") + "'"
	}
	first, last := cellName(g.top, g.left), cellName(g.bottom-1, g.right-1)
	if first == last {
		return title + "!" + first
	}
	return title + "!" + first + ":" + last
}

func cellName(row, column int) string {
	name := ""
	for n := column + 1; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name + strconv.Itoa(row+1)
}
