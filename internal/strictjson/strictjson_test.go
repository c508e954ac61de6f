package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

type record struct {
	Name    string `json:"name"`
	Count   int    `json:"count"`
	Small   uint8  `json:"small"`
	Data    []byte `json:"data"`
	Content []struct {
		Type string `json:"type"`
	} `json:"content"`
	Raw   json.RawMessage `json:"raw"`
	Inner *record         `json:"inner"`
	Any   any             `json:"any"`
	On    bool            `json:"on"`
}

// TestHostileJSON: an ambiguous document is an error, wherever the duplicate key is and however it is escaped.
func TestHostileJSON(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"at the top":                   `{"name":"a","name":"b"}`,
		"the same value":               `{"name":"a","name":"a"}`,
		"escaped":                      `{"name":"a","n\u0061me":"b"}`,
		"escaped in capitals":          `{"j":1,"\u006A":2}`,
		"a surrogate pair":             `{"😀":1,"\ud83d\ude00":2}`,
		"an escaped slash":             `{"a/b":1,"a\/b":2}`,
		"far apart":                    `{"name":"a","x":[` + strings.Repeat("0,", 5000) + `0],"name":"b"}`,
		"after many keys":              `{` + manyKeys(3000) + `,"k7":1}`,
		"below":                        `{"inner":{"name":"a","name":"b"}}`,
		"in a raw value":               `{"raw":{"a":1,"a":2}}`,
		"in any value":                 `{"any":[[{"a":1,"a":2}]]}`,
		"in what is not read":          `{"other":{"a":1,"a":2}}`,
		"the empty key":                `{"":1,"":2}`,
		"of invalid bytes":             "{\"a\xff\":1,\"a\xfe\":2}",
		"of a lone surrogate":          `{"\ud800":1,"\ud801":2}`,
		"null first":                   `{"inner":null,"inner":{}}`,
		"an object that could be join": `{"inner":{"name":"a"},"inner":{"count":1}}`,
		"two values":                   `{"name":"a"}{"name":"b"}`,
		"a value after the end":        `{"name":"a"} 1`,
		"cut off":                      `{"name":"a"`,
		"nothing":                      ``,
		"a byte order mark":            "\ufeff{}",
		"a comment":                    `{/**/}`,
		"a trailing comma":             `{"name":"a",}`,
		"10,001 levels":                strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r record
			var a any
			for reader, err := range map[string]error{
				"Check": Check([]byte(data)), "Unmarshal": Unmarshal([]byte(data), &r),
				"into any":       Unmarshal([]byte(data), &a),
				"UnmarshalKnown": UnmarshalKnown([]byte(data), &r),
			} {
				if err == nil {
					t.Errorf("%s takes it", reader)
				} else if len(err.Error()) > 400 || strings.Contains(err.Error(), "Go ") {
					t.Errorf("%s: %v", reader, err)
				}
			}
		})
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return strings.Join(keys, ",")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"a":{"b":1,"b":2}}`:      `the value at "/a" has the duplicate key "b"`,
		`{"b":1,"b":2}`:            `the value has the duplicate key "b"`,
		`{"content":"x"}`:          `the value at "/content" is a string and must be an array`,
		`{"content":[{"type":1}]}`: `the value at "/content/0/type" is a number and must be a string`,
		`{"count":"1"}`:            `the value at "/count" is a string and must be a whole number`,
		`{"count":1.5}`:            `the value at "/count" is a number and must be a whole number`,
		`{"small":256}`:            `the value at "/small" is a number out of range`,
		`{"inner":[]}`:             `the value at "/inner" is an array and must be an object`,
		`{"on":"yes"}`:             `the value at "/on" is a string and must be true or false`,
		`{"data":"*"}`:             `the value at "/data" is not Base64`,
		`[]`:                       `the value is an array and must be an object`,
		`{`:                        `it ends early`,
		`{"` + strings.Repeat("x", 1000) + `":{"a":1,"a":2}}`: `the value at "/` + strings.Repeat("x", 99) +
			`…" has the duplicate key "a"`,
		`{"a":tru}`: `byte 8: invalid character '}' in literal true (expecting 'e')`,
	} {
		if err := Unmarshal([]byte(data), new(record)); err == nil || err.Error() != want {
			t.Errorf("%.60s:\n got %v\nwant %s", data, err, want)
		}
	}
	if err := UnmarshalKnown([]byte(`{"inner":{"nme":1}}`), new(record)); err == nil ||
		err.Error() != `the value at "/inner" has the unknown key "nme"` {
		t.Error(err)
	}
}

// TestAsEncodingJSON: unambiguous documents decode as with encoding/json.
func TestAsEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"name":"a","count":2,"small":255,"data":"AQI=","content":[{"type":"x"},{}],"raw":{"a": 1},"inner":{"name":"b"},"any":[1,"x",null,{"y":1e3}],"on":true}`,
		`{"name":null,"inner":null,"content":null,"raw":null}`, `null`, ` {} `, `{"other":1}`,
		"{\"name\":\"\xff\"}", `{"name":"\ud800"}`,
	} {
		var got, want record
		if err := Unmarshal([]byte(data), &got); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if err := json.Unmarshal([]byte(data), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", data, got, want)
		}
	}
	var r record
	if err := Unmarshal([]byte(`{"Name":"a"}`), &r); err != nil || r.Name != "" {
		t.Error("another case is the same key", err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"a":"\u0061"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if Check(data) == nil && !json.Valid(data) {
			t.Errorf("%q is no JSON", data)
		}
	})
}

// TestUnmarshalExcept: one member is returned unchanged; all others are decoded strictly.
func TestUnmarshalExcept(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"id":"x","input":{"a":1,"a":2}}`:  `x {"a":1,"a":2}`,
		`{"\u0069nput":[1e400] , "id":"x"}`: `x [1e400]`,
		`{"id":"x"}`:                        `x `,
		`{}`:                                ` `,
		`{"id":"x","id":"y","input":1}`:     `error the value has the duplicate key "id"`,
		`{"id":"x","o":{"a":1,"a":2}}`:      `error the value at "/o" has the duplicate key "a"`,
		`{"input":1,"input":2}`:             `error the value has the duplicate key "input"`,
		`{"id":"x"} {}`:                     `error unexpected data after the value`,
		`[]`:                                `error the value is an array and must be an object`,
		`{"id":"x","input":`:                `error it ends early`,
	} {
		var v struct {
			ID string `json:"id"`
			O  any    `json:"o"`
		}
		apart, err := UnmarshalExcept([]byte(text), "input", &v)
		got := v.ID + " " + string(apart)
		if err != nil {
			got = "error " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
