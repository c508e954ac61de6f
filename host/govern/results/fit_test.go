package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func people(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"id":"%d","name":"山田 太郎 %d"}`, i, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestFit checks that long results are cut between items, that nothing else is lost, and that following the notes
// yields all items.
func TestFit(t *testing.T) {
	t.Parallel()
	paged := json.RawMessage(`{"properties":{"offset":{},"limit":{}}}`)
	for _, test := range []struct {
		name, text        string
		schema, arguments json.RawMessage
		note, keeps       string
	}{
		{"with offset", `{"total_count":250,"next_offset":null,"notes":["n"],"employees":` + people(250) + `}`, paged,
			json.RawMessage(`{"offset":100}`),
			`"employees" has the first 21 of 250 items here. For the rest call again with "offset": 121)`,
			`"next_offset":121,"notes":["n"]`},
		{"after the list", `{"employees":` + people(250) + `,"total_count":250,"notes":["n"]}`, nil, nil,
			"Ask for less, or for a part)", `"total_count":250,"notes":["n"]}`},
		{"cursor", `{"next_cursor":"t9","tasks":` + people(250) + `}`,
			json.RawMessage(
				`{"properties":{"cursor":{},"limit":{}}}`), nil,
			`Call again with "limit": 22, and then as its next_cursor says`, `{"tasks":[`},
		{"limit", `{"tasks":` + people(250) + `}`, json.RawMessage(`{"properties":{"limit":{}}}`), nil,
			`"limit": 23 fits`, ""},
		{"a list alone", people(250), nil, nil, `"the list" has the first`, ""},
		{"deeper", `{"data":{"rows":` + people(99) + `,"more":true},"x":[1]}`, nil, nil, `"rows" has the first`,
			`"more":true},"x":[1]}`},
		{"with spaces", "{\n \"rows\" : " + people(99) + "\n}\n", nil, nil, `"rows" has the first`, ""},
	} {
		got := Fit(test.text, 1200, test.schema, test.arguments)
		note, rest, _ := strings.Cut(got, "\n")
		if len(got) > 1200 || !strings.Contains(note, test.note) || !json.Valid([]byte(rest)) ||
			!strings.Contains(rest, test.keeps) {
			t.Errorf("%s: %d bytes: %s", test.name, len(got), got)
		}
	}
	for name, test := range map[string]struct{ text, want string }{
		"short": {`{"a":[1]}`, `{"a":[1]}`},
		"lines": {strings.Repeat("0123456789\n", 200),
			strings.Repeat("0123456789\n", 109) +
				"(cut off: these are the first 1198 of 2200 bytes. Ask for less, or for a part)"},
		"one item": {`[{"text":"` + strings.Repeat("x", 5000) + `"}]`,
			`[{"text":"` + strings.Repeat("x", 1190) + "\n(cut off"},
		"one text": {`{"text":"` + strings.Repeat("x", 5000) + `"}`,
			`{"text":"` + strings.Repeat("x", 1191) + "\n(cut off"},
		"no JSON":         {`{"a":[` + strings.Repeat("1,", 5000), `{"a":[` + strings.Repeat("1,", 597) + "\n(cut off"},
		"between letters": {strings.Repeat("é", 1000), strings.Repeat("é", 600) + "\n(cut off"},
	} {
		if got := Fit(test.text, 1200, nil, nil); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %.1300s", name, got)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add(`{"a":`+people(50)+`}`, 600)
	f.Add(`[[[[1,2,3]]]]`, 400)
	f.Add("line\nline", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		got := Fit(text, limit, json.RawMessage(`{"properties":{"offset":{}}}`), nil)
		if len(got) > limit+120 {
			t.Errorf("%d bytes for a limit of %d", len(got), limit)
		}
		if note, rest, ok := strings.Cut(got, "\n"); ok && strings.HasPrefix(note, "(too long: ") &&
			!strings.HasPrefix(text, "(") && !json.Valid([]byte(rest)) {
			t.Errorf("%s", got)
		}
	})
}
