package google

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// valueRange is Google's ValueRange.
type valueRange struct {
	Range     string  `json:"range,omitempty"`
	Dimension string  `json:"majorDimension,omitempty"`
	Values    [][]any `json:"values,omitempty"`
}

// updated is Google's UpdateValuesResponse. Counts that are zero are left out, as in all of Google's JSON.
type updated struct {
	Spreadsheet string `json:"spreadsheetId"`
	Range       string `json:"updatedRange"`
	Rows        int    `json:"updatedRows,omitempty"`
	Columns     int    `json:"updatedColumns,omitempty"`
	Cells       int    `json:"updatedCells,omitempty"`
}

func (d *spreadsheet) get(r *request, name string) (any, *apiError) {
	p, failed := d.locate(name)
	if failed != nil {
		return nil, failed
	}
	render := r.query.Get("valueRenderOption")
	switch render {
	case "":
		render = renderFormatted
	case renderFormatted, renderUnformatted, renderFormula:
	default:
		return nil, invalid("Invalid value at 'value_render_option' (type.googleapis.com/google.apps.sheets.v4.ValueRenderOption), %q", render)
	}
	p.bottom, p.right = min(p.bottom, p.rows), min(p.right, p.columns)
	values := p.read(p.grid, render)
	for _, row := range values {
		for i := range row {
			if row[i] == nil {
				row[i] = ""
			}
		}
	}
	return valueRange{p.a1(p.grid), "ROWS", values}, nil
}

func (d *spreadsheet) put(r *request, name string) (any, *apiError) {
	body, failed := decodeValues(r.body)
	if failed != nil {
		return nil, failed
	}
	if body.Range != "" && body.Range != name {
		return nil, invalid("Requested writing within range [%s], but tried writing to range [%s].", name, body.Range)
	}
	return d.write(r.id, name, r.query.Get("valueInputOption"), body)
}

func (d *spreadsheet) putAll(r *request) (any, *apiError) {
	var body struct {
		Option string       `json:"valueInputOption"`
		Data   []valueRange `json:"data"`
	}
	if err := json.Unmarshal(r.body, &body); err != nil {
		return nil, invalid("Invalid JSON payload received. %v", err)
	}
	var responses []any
	for i := range body.Data {
		if failed := body.Data[i].check(); failed != nil {
			return nil, failed
		}
		answer, failed := d.write(r.id, body.Data[i].Range, body.Option, &body.Data[i])
		if failed != nil {
			return nil, failed
		}
		responses = append(responses, answer)
	}
	return map[string]any{"spreadsheetId": r.id, "responses": responses}, nil
}

// write puts values exactly where the range says.
func (d *spreadsheet) write(id, name, option string, body *valueRange) (any, *apiError) {
	interpret, failed := inputOption(option)
	if failed != nil {
		return nil, failed
	}
	p, failed := d.locate(name)
	if failed != nil {
		return nil, failed
	}
	target := body.area(p.top, p.left)
	switch {
	case !p.single && target.bottom > p.bottom:
		return nil, invalid("Requested writing within range [%s], but tried writing to row [%d]", name, p.bottom+1)
	case !p.single && target.right > p.right:
		return nil, invalid("Requested writing within range [%s], but tried writing to column [%s]", name,
			cellName(0, p.right))
	case target.bottom > p.rows || target.right > p.columns:
		return nil, invalid("Range (%s) exceeds grid limits. Max rows: %d, max columns: %d", p.a1(target), p.rows,
			p.columns)
	}
	return p.fill(id, target, body, interpret), nil
}

// fill stores values from target's first cell on and reports it.
func (sh *sheet) fill(id string, target grid, body *valueRange, interpret bool) *updated {
	u := &updated{Spreadsheet: id, Range: sh.a1(target), Columns: target.right - target.left,
		Rows: target.bottom - target.top}
	for i, row := range body.Values {
		for j, value := range row {
			sh.set(target.top+i, target.left+j, value, interpret)
			if value != nil {
				u.Cells++
			}
		}
	}
	return u
}

// append adds rows below the last table that the range touches, or at its start if it touches none.
func (d *spreadsheet) append(r *request, name string) (any, *apiError) {
	body, failed := decodeValues(r.body)
	if failed != nil {
		return nil, failed
	}
	interpret, failed := inputOption(r.query.Get("valueInputOption"))
	if failed != nil {
		return nil, failed
	}
	p, failed := d.locate(name)
	if failed != nil {
		return nil, failed
	}
	answer := map[string]any{"spreadsheetId": r.id}
	target := body.area(p.top, p.left)
	if table, ok := p.lastTable(p.grid); ok {
		answer["tableRange"] = p.a1(table)
		target = body.area(table.bottom, table.left)
	}
	switch option := r.query.Get("insertDataOption"); option {
	case "", "OVERWRITE":
	case "INSERT_ROWS":
		p.insert(target.top, len(body.Values))
	default:
		return nil, invalid("Invalid value at 'insert_data_option' (type.googleapis.com/google.apps.sheets.v4.InsertDataOption), %q", option)
	}
	p.grow(target)
	answer["updates"] = p.fill(r.id, target, body, interpret)
	return answer, nil
}

// area returns the range that the values take from a cell on.
func (v *valueRange) area(row, column int) grid {
	widest := 1
	for _, cells := range v.Values {
		widest = max(widest, len(cells))
	}
	return grid{row, column, row + max(1, len(v.Values)), column + widest}
}

func inputOption(option string) (interpret bool, failed *apiError) {
	switch option {
	case "RAW", "USER_ENTERED":
		return option == "USER_ENTERED", nil
	case "":
		return false, invalid("'valueInputOption' is required but not specified")
	}
	return false, invalid("Invalid value at 'value_input_option' (type.googleapis.com/google.apps.sheets.v4.ValueInputOption), %q", option)
}

func decodeValues(data []byte) (*valueRange, *apiError) {
	body := new(valueRange)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(body); err != nil {
		return nil, invalid("Invalid JSON payload received. %v", err)
	}
	return body, body.check()
}

func (v *valueRange) check() *apiError {
	if v.Dimension != "" && v.Dimension != "ROWS" {
		return invalid("this fake knows majorDimension ROWS only")
	}
	for i, row := range v.Values {
		for j, value := range row {
			if failed := checkValue(value, fmt.Sprintf("values[%d][%d]", i, j)); failed != nil {
				return failed
			}
		}
	}
	return nil
}

// maxCell is the most characters of a cell.
const maxCell = 50_000

func checkValue(value any, where string) *apiError {
	switch value := value.(type) {
	case []any:
		return invalid("Invalid %s: list_value {\n}\n", where)
	case map[string]any:
		return invalid("Invalid %s: struct_value {\n}\n", where)
	case string:
		if len([]rune(value)) > maxCell {
			return invalid("Your input contains more than the maximum of %d characters in a single cell.", maxCell)
		}
	}
	return nil
}
