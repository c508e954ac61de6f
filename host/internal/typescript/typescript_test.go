package typescript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/internal/typescript"
)

func TestDeclare(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`: `Record<string, any>`,
		`{"type":"object","additionalProperties":false}`:                                                  `{}`,
		`{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"}},"required":["a"]}`:  `{ b?: number; a: string }`,
		`{"type":"object","properties":{"a":{"type":"string","description":"One */ two\nthree."}}}`:       `{ /** One * / two three. */ a?: string }`,
		`{"type":"object","properties":{"a-b":{"type":"array","items":{"enum":["x",1,null]}}}}`:           `{ "a-b"?: Array<"x" | 1 | null> }`,
		`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["string","null"]}}}`:            `{ a?: Array<any>; b?: string | null }`,
		`{"type":"object","properties":{"a":{"const":{"x": 1}},"b":{"anyOf":[{"type":"boolean"},true]}}}`: `{ a?: {"x":1}; b?: boolean | any }`,
		`{"type":"object","additionalProperties":{"type":"number"}}`:                                      `{ [name: string]: number }`,
		`{"properties":{"a":{"$ref":"#/$defs/p~1q"}},"$defs":{"p/q":{"type":"string"}}}`:                  `{ a?: string }`,
		`{"properties":{"a":{"$ref":"#/$defs/none"},"b":{"$ref":"https://example.com/"}}}`:                `{ a?: any; b?: any }`,
		`{"properties":{"a":{"$ref":"#"}}}`:                                                               `{ a?: { a?: { a?: any } } }`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object"}]}`:            `{ a?: string } & Record<string, any>`,
		`{"enum":[]}`:                        `never`,
		`{"type":7,"description":[]}`:        `any`,
		`[]`:                                 `any`,
		`{"type":"object","properties":[1]}`: `Record<string, any>`,
		`{"type":"object","properties":{"a":tru}}`: `any`,
	} {
		got := typescript.Declare(&typescript.Tool{Name: "t", Input: json.RawMessage(schema)})
		if want = "tools.t(args: " + want + "): Promise<any>"; got != want {
			t.Errorf("%s\n gives %s\n want  %s", schema, got, want)
		}
	}
	got := typescript.Declare(&typescript.Tool{Name: "get-weather", Title: "Weather", Description: "The forecast.\nToday's.",
		Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"object","properties":{"c":{"type":"number"}}}`),
		ReadOnly: true})
	want := "/** Weather. The forecast. Today's. It changes nothing */\n" +
		`tools["get-weather"](args: Record<string, any>): Promise<{ c?: number }>`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestLarge: a schema that refers to itself many times has a short declaration, and so has one with long texts.
func TestLarge(t *testing.T) {
	t.Parallel()
	var wide strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&wide, `%q:{"$ref":"#","description":%q},`, fmt.Sprint("property", i), strings.Repeat("長い", 500))
	}
	schemas := []string{
		`{"type":"object","properties":{` + strings.TrimSuffix(wide.String(), ",") + `}}`,
		`{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#"},`, 1000), ",") + `]}`,
		`{"enum":[` + strings.TrimSuffix(strings.Repeat(`"value",`, 10_000), ",") + `]}`,
	}
	for i, schema := range schemas {
		got := typescript.Declare(&typescript.Tool{Name: "t", Description: strings.Repeat("x", 10_000), Input: json.RawMessage(schema)})
		if len(got) > 5000 {
			t.Errorf("schema %d: %d bytes", i, len(got))
		}
	}
}

func FuzzDeclare(f *testing.F) {
	f.Add("t", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/b"}]}},"$defs":{"b":true}}`)
	f.Fuzz(func(t *testing.T, name, schema string) {
		if got := typescript.Declare(&typescript.Tool{Name: name, Input: json.RawMessage(schema)}); strings.Contains(got, "\n") {
			t.Errorf("more than a line: %q", got)
		}
	})
}
