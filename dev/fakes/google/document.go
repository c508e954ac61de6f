package google

type sheetProperties struct {
	ID    int    `json:"sheetId"`
	Title string `json:"title"`
	Index int    `json:"index"`
	Grid  struct {
		Rows    int `json:"rowCount"`
		Columns int `json:"columnCount"`
	} `json:"gridProperties"`
}

// describe answers spreadsheets.get. Of field masks it knows the one for titles; any other gives everything.
func (d *spreadsheet) describe(r *request) any {
	sheets := []any{}
	for i, sh := range d.sheets {
		p := sheetProperties{ID: i, Title: sh.title, Index: i}
		p.Grid.Rows, p.Grid.Columns = sh.rows, sh.columns
		if r.query.Get("fields") == "sheets.properties.title" {
			sheets = append(sheets, map[string]any{"properties": map[string]string{"title": sh.title}})
			continue
		}
		sheets = append(sheets, map[string]any{"properties": p})
	}
	if r.query.Get("fields") != "" {
		return map[string]any{"sheets": sheets}
	}
	return map[string]any{"spreadsheetId": r.id, "properties": map[string]string{"title": d.title}, "sheets": sheets}
}
