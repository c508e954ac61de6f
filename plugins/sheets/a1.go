package main

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The sizes of the largest sheet that Google has: columns A to ZZZ, and as many rows as a spreadsheet may have cells.
const (
	maxColumn = 18278
	maxRow    = 10_000_000
	maxTitle  = 100 // characters
)

// area is a part of a sheet in A1 notation. A zero in a corner is an open end: "A:C" has no rows, "A2:C" no last row.
type area struct {
	sheet    string // empty: the first sheet
	from, to corner
	cells    bool // false: the whole sheet
	single   bool // one cell, as in "B2"
}

// corner is a cell, columns and rows counted from 1.
type corner struct{ column, row int }

// parseArea reads A1 notation as people and models write it: with or without a sheet, its name quoted or not, and with
// dollar signs. Without "!", what can be cells is cells of the first sheet, and anything else is the name of a sheet.
func parseArea(text string) (area, error) {
	sheet, cells, ok := cutSheet(strings.TrimSpace(text))
	if !ok {
		return area{}, fail(
			"range %q: the quoted sheet name does not end as it should: write 'NAME'!A1, with every ' in NAME doubled",
			"range %q: 引用符で囲んだシート名の終わりが正しくありません。'シート名'!A1 のように書き、名前の中の ' は二重にしてください", text)
	}
	a, ok := parseCells(cells)
	if !ok || sheet == "" && cells == "" {
		return area{}, fail("range %q: %q is not a range of cells such as A1, A1:C10, A:C, 2:5 or A2:C",
			"range %q: %q はセル範囲ではありません。A1、A1:C10、A:C、2:5、A2:C のように指定してください", text, cells)
	}
	a.sheet = sheet
	return a, checkTitle(text, sheet)
}

// cutSheet splits text into the sheet's name and the cells; ok is false if quotes do not match.
func cutSheet(text string) (sheet, cells string, ok bool) {
	if strings.HasPrefix(text, "'") {
		return cutQuoted(text)
	}
	if i := strings.LastIndexByte(text, '!'); i >= 0 {
		return text[:i], text[i+1:], true
	}
	if _, ok := parseCells(text); ok {
		return "", text, true
	}
	return text, "", true
}

// cutQuoted is cutSheet for text that starts with a quoted name, in which two quotes stand for one.
func cutQuoted(text string) (sheet, cells string, ok bool) {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '\'':
		case strings.HasPrefix(text[i:], "''"):
			i++
		default:
			sheet = strings.ReplaceAll(text[1:i], "''", "'")
			cells, ok = strings.CutPrefix(text[i+1:], "!")
			return sheet, cells, ok || cells == ""
		}
	}
	return "", "", false
}

func checkTitle(text, title string) error {
	switch {
	case utf8.RuneCountInString(title) > maxTitle:
		return fail("range %q: a sheet's name has at most %d characters", "range %q: シート名は %d 文字までです", text, maxTitle)
	case strings.ContainsFunc(title, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fail("range %q: a sheet's name has no line breaks or control characters", "range %q: シート名に改行や制御文字は使えません",
			text)
	}
	return nil
}

var cornerPattern = regexp.MustCompile(`^\$?([A-Za-z]{0,3})\$?([0-9]{0,8})$`)

// parseCells reads the part behind the sheet's name; without one it is the whole sheet.
func parseCells(text string) (area, bool) {
	if text == "" {
		return area{}, true
	}
	first, second, isRange := strings.Cut(text, ":")
	from, ok := parseCorner(first)
	if !isRange {
		return area{from: from, to: from, cells: true, single: true}, ok && from.column > 0 && from.row > 0
	}
	to, alsoOK := parseCorner(second)
	if from.column > to.column {
		from.column, to.column = to.column, from.column
	}
	if from.row > to.row && to.row > 0 {
		from.row, to.row = to.row, from.row
	}
	sameKind := (from.column == 0) == (to.column == 0) && (from.row == 0) == (to.row == 0)
	openEnd := from.column > 0 && from.row > 0 && to.row == 0
	return area{from: from, to: to, cells: true}, ok && alsoOK && (sameKind || openEnd)
}

// parseCorner reads "B2", "B" or "2".
func parseCorner(text string) (corner, bool) {
	parts := cornerPattern.FindStringSubmatch(text)
	if parts == nil || parts[1] == "" && parts[2] == "" {
		return corner{}, false
	}
	var c corner
	for _, letter := range strings.ToUpper(parts[1]) {
		c.column = c.column*26 + int(letter-'A'+1)
	}
	if parts[2] != "" {
		c.row, _ = strconv.Atoi(parts[2])
		if c.row == 0 {
			return corner{}, false
		}
	}
	return c, c.column <= maxColumn && c.row <= maxRow
}

// String is a in the one form that is sent: the sheet always quoted, so that no name can be mistaken for anything else.
func (a area) String() string {
	var b strings.Builder
	if a.sheet != "" {
		b.WriteString("'" + strings.ReplaceAll(a.sheet, "'", "''") + "'")
		if a.cells {
			b.WriteByte('!')
		}
	}
	if a.cells {
		b.WriteString(a.from.String())
		if !a.single {
			b.WriteString(":" + a.to.String())
		}
	}
	return b.String()
}

func (c corner) String() string {
	var letters string
	for n := c.column; n > 0; n = (n - 1) / 26 {
		letters = string(rune('A'+(n-1)%26)) + letters
	}
	if c.row == 0 {
		return letters
	}
	return letters + strconv.Itoa(c.row)
}
