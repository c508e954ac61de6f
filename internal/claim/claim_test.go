package claim

import (
	"encoding/json"
	"testing"
)

func TestHas(t *testing.T) {
	for encoded, want := range map[string]bool{
		`"b"`: true, `["x", "b"]`: true, `["x", 1, {"b": "b"}, null, "a"]`: true,
		`"ab"`: false, `""`: false, `["x", ["b"]]`: false, `[]`: false, `{"b": "b"}`: false, `1`: false, `null`: false,
	} {
		var claim any
		if err := json.Unmarshal([]byte(encoded), &claim); err != nil {
			t.Fatal(err)
		}
		if got := Has(claim, "a", "b"); got != want {
			t.Errorf("%s: %t", encoded, got)
		}
	}
	if Has("a") || Has(nil, "") {
		t.Error("a claim has none of no values, and no claim has the empty one")
	}
}
