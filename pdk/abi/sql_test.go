package abi

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

var sqlValues = []any{
	nil, int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), 0.0, math.Copysign(0, -1), 1.0, 1e21, 5e-324,
	math.MaxFloat64,
	math.Inf(1), math.Inf(-1), "", "日本語 \"\\\n\t\x00\u2028🗾", []byte{}, []byte{0, 255},
}

func TestSQLStatement(t *testing.T) {
	t.Parallel()
	for _, want := range []*SQLStatement{{SQL: "SELECT 1"}, {SQL: "SELECT \"a\"\n-- 日本", Args: sqlValues}, {SQL: ""}} {
		head, blobs, err := want.Encode()
		if err != nil || !json.Valid(head) {
			t.Fatalf("%s: %v", head, err)
		}
		got, err := DecodeSQLStatement(head, blobs)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngives %#v, %v\nwant  %#v", head, got, err, want)
		}
	}
}

func TestSQLResult(t *testing.T) {
	t.Parallel()
	names := make([]string, len(sqlValues))
	for _, want := range []*SQLResult{
		{Columns: names, Rows: [][]any{sqlValues, sqlValues}},
		{Columns: []string{}},
		{Changes: 3, LastInsertID: math.MaxInt64},
		{Error: &Error{Code: CodeConflict, Message: "no \"x\""}},
	} {
		head, blobs, err := want.Encode()
		if err != nil || !json.Valid(head) {
			t.Fatalf("%s: %v", head, err)
		}
		got, err := DecodeSQLResult(head, blobs)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngives %#v, %v\nwant  %#v", head, got, err, want)
		}
	}
}

func TestEncodeSQLRefuses(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]*SQLStatement{
		"NaN":            {Args: []any{1.5, math.NaN()}},
		"not UTF-8":      {Args: []any{"a", "\xff"}},
		"a bool":         {Args: []any{int64(1), true}},
		"an int":         {Args: []any{int64(1), 1}},
		"SQL, not UTF-8": {SQL: "\xff"},
	} {
		if _, _, err := statement.Encode(); err == nil || statement.Args != nil &&
			!strings.Contains(err.Error(), "parameter 2 ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := (&SQLResult{Columns: []string{"a"}, Rows: [][]any{{nil}, {"\xff"}}}).Encode(); err == nil ||
		!strings.Contains(err.Error(), "row 2, column 1 is text but not UTF-8") {
		t.Errorf("%v", err)
	}
}

func TestDecodeSQLStatementIsStrict(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		``:                                   "not JSON",
		`[]`:                                 "not JSON",
		`{"sql":"x"`:                         "not JSON",
		`{"sql":"x"} {}`:                     "unexpected data after",
		`{"sql":"x",}`:                       "not JSON",
		`{"sql":"x","sql":"y"}`:              `"sql" occurs twice`,
		`{"sql":"x","SQL":"y"}`:              `unknown key "SQL"`,
		`{"sql":1}`:                          "not JSON",
		`{"args":[01]}`:                      "not JSON",
		`{"args":[+1]}`:                      "not JSON",
		`{"args":[1.]}`:                      "not JSON",
		`{"args":[.5]}`:                      "not JSON",
		`{"args":[1e]}`:                      "not JSON",
		`{"args":[true]}`:                    "send 1 or 0",
		`{"args":[9223372036854775808]}`:     "does not fit 64 bits",
		`{"args":["\x"]}`:                    "not JSON",
		"{\"args\":[\"\n\"]}":                "not JSON",
		"{\"sql\":\"\xff\"}":                 "not JSON",
		`{"args":[{"blob":4}]}`:              "a blob of 4 bytes, where 3 are left",
		`{"args":[{"blob":-1}]}`:             "a blob of -1 bytes",
		`{"args":[{"blob":2}]}`:              "1 bytes of blobs belong to no parameter",
		`{"args":[{"blob":1.0},{"blob":2}]}`: "1 is not an integer",
		`{"args":[{"blob":3,"x":1}]}`:        `one key "blob"`,
		`{"args":[{"blob":3,"blob":0}]}`:     `one key "blob"`,
		`{"args":[{}]}`:                      "a blob of -1 bytes",
		`{"args":[[1]]}`:                     "not JSON",
	} {
		if s, err := DecodeSQLStatement([]byte(head), []byte("abc")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %s", head, s, err, want)
		}
	}
}

// TestDecodeSQLResultIgnoresUnknownKeys checks that results may have keys of later versions.
func TestDecodeSQLResultIgnoresUnknownKeys(t *testing.T) {
	t.Parallel()
	head := `{ "new" : {"a":[1,-2.5e3,true,false,null,"\u00e9"],"b":{}} , "columns" : [ "a" ] , "rows" : [ [ "\ud83d\uddfe\ud800\u0041" ] , [ 2 ] ] , "error":null}`
	head = strings.Replace(head, `, "error":null`, "", 1)
	got, err := DecodeSQLResult([]byte(head), nil)
	if want := (&SQLResult{Columns: []string{"a"}, Rows: [][]any{{"🗾\ufffdA"}, {int64(2)}}}); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = DecodeSQLResult([]byte(`{"error":{"code":"busy","more":1,"message":"m"}}`), nil)
	if err != nil || *got.Error != (Error{CodeBusy, "m"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// FuzzSQLStatement compares the decoder with encoding/json.
func FuzzSQLStatement(f *testing.F) {
	for _, seed := range []string{
		`{"sql":"SELECT ?","args":[1,-2.5e-3,"\ud83d\uddfe\\\/",null,{"blob":2}]}`, `{"args":["\ud800"]}`,
		` { "sql" : "x" } `, `{"args":[1e999]}`,
	} {
		f.Add([]byte(seed), []byte("ab"))
	}
	f.Fuzz(func(t *testing.T, head, blobs []byte) {
		got, err := DecodeSQLStatement(head, blobs)
		if err != nil {
			return
		}
		var want struct {
			SQL  string
			Args []json.RawMessage
		}
		d := json.NewDecoder(bytes.NewReader(head))
		if err := d.Decode(&want); err != nil || !utf8.Valid(head) {
			t.Fatalf("%q is taken, encoding/json says: %v", head, err)
		}
		if got.SQL != want.SQL || len(got.Args) != len(want.Args) {
			t.Fatalf("%q gives %q, %d values, want %q, %d", head, got.SQL, len(got.Args), want.SQL, len(want.Args))
		}
		for i, raw := range want.Args {
			if text, ok := got.Args[i].(string); ok {
				var s string
				if err := json.Unmarshal(raw, &s); err != nil || s != text {
					t.Errorf("%s gives %q", raw, text)
				}
			}
		}
		again, more, err := got.Encode()
		if err != nil {
			t.Fatalf("%q cannot be encoded again: %v", head, err)
		}
		same, err := DecodeSQLStatement(again, more)
		if err != nil || !reflect.DeepEqual(same, got) {
			t.Errorf("%q becomes %#v, %v, want %#v", again, same, err, got)
		}
	})
}
