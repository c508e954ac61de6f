package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/locale"
)

// writeArguments are those of write_rows_to_google_sheet; the manifest's input schema says what they mean.
type writeArguments struct {
	Spreadsheet string `json:"spreadsheet_id"`
	Range       string `json:"range"`
	Rows        rows   `json:"rows"`
	Mode        string `json:"mode"`
	ValueInput  string `json:"value_input"`
}

// modeOverwrite is the mode that writes exactly where range says; the other one, the default, appends.
const modeOverwrite = "overwrite"

// written is the tool's structured content.
type written struct {
	Mode    string `json:"mode"`
	Range   string `json:"updated_range"`
	Rows    int    `json:"updated_rows"`
	Columns int    `json:"updated_columns"`
	Cells   int    `json:"updated_cells"`
}

// update is Google's account of what was written. Counts that are zero are left out.
type update struct {
	Range   string `json:"updatedRange"`
	Rows    int    `json:"updatedRows"`
	Columns int    `json:"updatedColumns"`
	Cells   int    `json:"updatedCells"`
}

func write(ctx context.Context, in writeArguments) (*pdk.Result, error) {
	target, err := parseArea(in.Range)
	if err != nil {
		return nil, err
	}
	if err := in.Rows.check(); err != nil {
		return nil, err
	}
	sheet, err := open(ctx, in.Spreadsheet)
	if err != nil {
		return nil, err
	}
	option := url.Values{"valueInputOption": {"RAW"}}
	if in.ValueInput == "user_entered" {
		option.Set("valueInputOption", "USER_ENTERED")
	}
	if in.Mode == modeOverwrite {
		return overwrite(ctx, sheet, target, in.Rows, option)
	}
	return appendRows(ctx, sheet, target, in.Rows, option)
}

// appendRows adds rows below the table that target is in. Sent once: if the answer is lost, the result says so.
func appendRows(ctx context.Context, sheet *spreadsheet, target area, values rows, option url.Values) (*pdk.Result,
	error) {
	body, err := encode(target, values)
	if err != nil {
		return nil, err
	}
	option.Set("insertDataOption", "INSERT_ROWS")
	var answer struct {
		Updates update `json:"updates"`
	}
	if err := sheet.send(ctx, "POST", sheet.values(target)+":append", option, body, &answer); err != nil {
		return nil, maybeWritten(err)
	}
	return report(ctx, "append", answer.Updates)
}

// overwrite writes values from target's first cell on. The same request twice leaves the same cells, so the host may
// retry it.
func overwrite(ctx context.Context, sheet *spreadsheet, target area, values rows, option url.Values) (*pdk.Result,
	error) {
	target, err := target.fit(len(values), values.width())
	if err != nil {
		return nil, err
	}
	body, err := encode(target, values)
	if err != nil {
		return nil, err
	}
	var answer update
	if err := sheet.send(ctx, "PUT", sheet.values(target), option, body, &answer); err != nil {
		return nil, again(err)
	}
	return report(ctx, modeOverwrite, answer)
}

// fit returns the cells that height times width values take from a's first cell on. It is an error if a is too small
// for them; a single cell and a whole sheet are only a place to start.
func (a area) fit(height, width int) (area, error) {
	from := corner{max(a.from.column, 1), max(a.from.row, 1)}
	to := corner{from.column + width - 1, from.row + height - 1}
	bounded := a.cells && !a.single
	if bounded && a.to.column > 0 && to.column > a.to.column || bounded && a.to.row > 0 && to.row > a.to.row {
		return area{}, fail(
			"rows is %d rows by %d columns, which does not fit into %s: name a larger range, or only its first cell",
			"rows は %d 行 × %d 列で、%s に収まりません。より広い範囲か、先頭のセルだけを指定してください", height, width, a)
	}
	if to.column > maxColumn || to.row > maxRow {
		return area{}, fail("rows would reach to %s, beyond the last cell of a sheet: start further up or left",
			"rows が %s まで達し、シートの端を超えます。もっと上か左から始めてください", to)
	}
	return area{sheet: a.sheet, from: from, to: to, cells: true}, nil
}

// encode returns the ValueRange to send. Its range must be the same as the URL's.
func encode(target area, values rows) ([]byte, error) {
	body, err := json.Marshal(struct {
		Range     string `json:"range"`
		Dimension string `json:"majorDimension"`
		Values    rows   `json:"values"`
	}{target.String(), "ROWS", values})
	if err != nil {
		return nil, err
	}
	if len(body) > maxPayload {
		return nil, fail("rows takes %d bytes, at most %d may be written at once: write them in several calls",
			"rows は %d バイトです。一度に書けるのは %d バイトまでです。何回かに分けてください", len(body), maxPayload)
	}
	return body, nil
}

// report returns the result: what was written where, as Google reports it.
func report(ctx context.Context, mode string, u update) (*pdk.Result, error) {
	if u.Range == "" {
		return nil, fail("Google accepted the rows but did not say where they are (no updatedRange): read the sheet before writing again",
			"Google は受け付けましたが、書き込んだ場所 (updatedRange) を返しませんでした。もう一度書く前にシートを読んで確かめてください")
	}
	format := locale.Text{"en": "Appended %d rows (%d cells) at %s.", "ja": "%d 行 (%d セル) を %s に追加しました。"}
	if mode == modeOverwrite {
		format = locale.Text{"en": "Wrote %d rows (%d cells) at %s.", "ja": "%d 行 (%d セル) を %s に書き込みました。"}
	}
	return pdk.Text(fmt.Sprintf(format.In(pdk.Locale(ctx)), u.Rows, u.Cells, u.Range)).WithStructured(written{mode,
		u.Range, u.Rows, u.Columns, u.Cells}), nil
}
