package toolschema

import (
	"encoding/json"
	"testing"
)

func TestParts(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]int{
		`{}`: 1, `true`: 1, `"text"`: 0,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":true},"required":["a"]}`: 4,
		`{"anyOf":[{"const":1},false,{"items":{}}]}`:                                                5,
	} {
		var value any
		if err := json.Unmarshal([]byte(schema), &value); err != nil {
			t.Fatal(err)
		}
		if got := Parts(value); got != want {
			t.Errorf("%s: %d parts, want %d", schema, got, want)
		}
	}
}
