package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/hako-run/hako/pdk"
)

// readArguments are those of read_google_sheet.
type readArguments struct {
	Spreadsheet string `json:"spreadsheet_id"`
	Range       string `json:"range"`
	Values      string `json:"values"`
	MaxRows     int    `json:"max_rows"`
	ReplacedBy  rows   `json:"replaced_by"`
}

// defaultRows is the number of rows that are returned unless the caller says otherwise.
const defaultRows = 50

// table is the tool's structured content.
type table struct {
	Range     string              `json:"range"`
	TotalRows int                 `json:"total_rows"`
	Count     int                 `json:"count"`
	Next      string              `json:"next_range,omitempty"`
	Rows      [][]json.RawMessage `json:"rows"`
}

func read(ctx context.Context, in readArguments) (*pdk.Result, error) {
	source, err := parseArea(in.Range)
	if err != nil {
		return nil, err
	}
	if in.ReplacedBy != nil {
		if source, err = source.fit(len(in.ReplacedBy), in.ReplacedBy.width()); err != nil {
			return nil, err
		}
		in.Values = "formula"
	}
	sheet, err := open(ctx, in.Spreadsheet)
	if err != nil {
		return nil, err
	}
	option := url.Values{
		"majorDimension":       {"ROWS"},
		"valueRenderOption":    {renderOption(in.Values)},
		"dateTimeRenderOption": {"FORMATTED_STRING"},
	}
	var answer struct {
		Range  string              `json:"range"`
		Values [][]json.RawMessage `json:"values"`
	}
	if err := sheet.send(ctx, "GET", sheet.values(source), option, nil, &answer); err != nil {
		return nil, again(err)
	}
	if in.ReplacedBy != nil {
		answer.Values, in.MaxRows = in.ReplacedBy.replaced(answer.Values), len(in.ReplacedBy)
	}
	if in.MaxRows <= 0 {
		in.MaxRows = defaultRows
	}
	return pdk.Structured(page(answer.Range, answer.Values, in.MaxRows)), nil
}

// page cuts what was read after limit rows and says where the rest is.
func page(read string, values [][]json.RawMessage, limit int) table {
	t := table{Range: read, Rows: values, TotalRows: len(values)}
	if t.Rows == nil {
		t.Rows = [][]json.RawMessage{}
	}
	t.Count = min(len(values), limit)
	if len(values) <= limit {
		return t
	}
	t.Rows = values[:limit]
	if rest, err := parseArea(read); err == nil && rest.from.row > 0 {
		rest.from.row += limit
		t.Next = rest.String()
	}
	return t
}

// renderOption is Google's word for how values are to be given.
func renderOption(values string) string {
	switch values {
	case "unformatted":
		return "UNFORMATTED_VALUE"
	case "formula":
		return "FORMULA"
	}
	return "FORMATTED_VALUE"
}

// titles are the names of the spreadsheet's sheets, for an error; "" if they cannot be had.
func (s *spreadsheet) titles(ctx context.Context) string {
	var answer struct {
		Sheets []struct {
			Properties struct {
				Title string `json:"title"`
			} `json:"properties"`
		} `json:"sheets"`
	}
	response, err := s.fetch(ctx, "GET", s.url, url.Values{"fields": {"sheets.properties.title"}}, nil)
	if err != nil || response.Status != 200 || json.Unmarshal(response.Body, &answer) != nil {
		return ""
	}
	var names []string
	for _, sheet := range answer.Sheets {
		names = append(names, area{sheet: sheet.Properties.Title}.String())
	}
	return strings.Join(names, ", ")
}
