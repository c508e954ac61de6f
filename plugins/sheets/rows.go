package main

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Limits of one call. Google recommends payloads of 2 MB; a cell holds 50,000 characters; numbers have 15 digits.
const (
	maxPayload   = 2_000_000 // bytes of the request's body
	maxCells     = 50_000
	maxCellText  = 50_000 // characters
	maxPrecision = 15     // significant digits
)

// rows are the values to write, cell by cell as the caller sent them: strings, numbers, booleans, and null for "leave
// it".
type rows [][]json.RawMessage

// width is the number of cells of the longest row.
func (r rows) width() int {
	widest := 0
	for _, row := range r {
		widest = max(widest, len(row))
	}
	return widest
}

// replaced returns those of the present cells that r replaces, in its shape as far as there are any: null where r
// leaves a cell as it is, and an empty text for an empty cell that r empties.
func (r rows) replaced(present [][]json.RawMessage) [][]json.RawMessage {
	list := make([][]json.RawMessage, min(len(r), len(present)))
	for i := range list {
		list[i] = []json.RawMessage{}
		for j, value := range r[i] {
			cell := json.RawMessage("null")
			switch {
			case string(value) == "null":
			case j < len(present[i]):
				cell = present[i][j]
			case string(value) == `""`:
				cell = value
			}
			list[i] = append(list[i], cell)
		}
	}
	return list
}

// check refuses what a sheet would cut, round or not take. The input schema has seen to the types.
func (r rows) check() error {
	cells := 0
	for i, row := range r {
		cells += len(row)
		for j, cell := range row {
			if err := checkCell(cell, i, j); err != nil {
				return err
			}
		}
	}
	switch {
	case cells == 0:
		return fail("rows holds no cells: give at least one row with a value", "rows にセルがありません。値のある行を 1 行以上指定してください")
	case cells > maxCells:
		return fail("rows holds %d cells, at most %d may be written at once: write them in several calls",
			"rows のセルが %d 個あります。一度に書けるのは %d 個までです。何回かに分けてください", cells, maxCells)
	}
	return nil
}

func checkCell(cell json.RawMessage, row, column int) error {
	switch {
	case len(cell) > 0 && cell[0] == '"':
		var text string
		if err := json.Unmarshal(cell, &text); err != nil {
			return err
		}
		if n := utf8.RuneCountInString(text); n > maxCellText {
			return fail(
				"rows[%d][%d] has %d characters, a cell holds at most %d: shorten it or spread it over several cells",
				"rows[%d][%d] は %d 文字です。1 つのセルは %d 文字までです。短くするか複数のセルに分けてください", row, column, n, maxCellText)
		}
	case precision(string(cell)) > maxPrecision:
		return fail("rows[%d][%d]: %s has more than %d digits, and a sheet would round it: send it as a string",
			"rows[%d][%d]: %s は %d 桁を超えるため、シートが丸めてしまいます。文字列で指定してください", row, column, cell, maxPrecision)
	}
	return nil
}

// precision counts the significant digits of a JSON number; it is 0 for anything else.
func precision(number string) int {
	if number == "" || strings.Trim(number[:1], "-0123456789") != "" {
		return 0
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	return len(strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0"))
}
