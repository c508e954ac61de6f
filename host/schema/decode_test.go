package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzDecodeJSON: a value that is accepted is that of encoding/json.
func FuzzDecodeJSON(f *testing.F) {
	for _, document := range []string{
		`{"a":[1,-0.5e+7,true,false,null,{"b":"c\n\u00e9"}],"":{}}`, ` "x" `, `[]`, `{"a":1,"\u0061":2}`, `1e999`, `[`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, shape, err := decodeJSON(data)
		if err != nil {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		var want any
		if err := decoder.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v, %v", data, got, want, err)
		}
		if shape.values == 0 {
			t.Errorf("%q has no values", data)
		}
	})
}
