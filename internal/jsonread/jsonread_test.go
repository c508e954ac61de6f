package jsonread

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// tokens reads a document whole. Each token is its text, with a colon after a name.
func tokens(r *Reader) (list []string, err error) {
	for {
		token, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return list, nil
			}
			return list, err
		}
		text := string(token.Raw)
		if token.Kind == '"' {
			text = `"` + string(token.Text())
		}
		if token.Name {
			text += ":"
		}
		list = append(list, text)
	}
}

// tokensOf is tokens with another reader.
func tokensOf(data []byte) (list []string, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) && len(list) > 0 {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		text := token.String()
		if token.Kind() == '"' {
			text = `"` + text
		}
		within, n := d.StackIndex(d.StackDepth())
		if token.Kind() == '"' && within == '{' && n%2 == 1 {
			text += ":"
		}
		list = append(list, text)
		if d.StackDepth() == 0 {
			_, err := d.ReadToken()
			if !errors.Is(err, io.EOF) {
				return list, errors.New("something follows")
			}
			return list, nil
		}
	}
}

// FuzzReader compares a strict Reader with jsontext and encoding/json, and a lenient one with encoding/json.
func FuzzReader(f *testing.F) {
	for _, document := range []string{
		`{"a":[1,-0.5e+7,true,false,null,{"b":"c\n\u00e9\ud83d\ude00"}],"":{}}`, ` [ ] `, `"x"`, `1 2`, `[1,]`, `{"a":1,}`,
		`{"a" 1}`, `{"a":1 "b":2}`, `{"a":1,"\u0061":2}`, `["\ud800"]`, "[\"\xff\"]", "[\"\x01\"]", `["\x"]`, `[01]`, `[1.]`,
		`[-]`, `[1e]`, `tru`, `nul1`, ``, `]`, `{]`, `[}`, `{1:2}`, `[1 2]`, `"\u12`, "\ufeff1", `{"a"}`, `{"a":}`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := tokens(&Reader{Data: data})
		want, wrong := tokensOf(data)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v, want %v", data, err, wrong)
		}
		if err == nil && strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
		if err == nil && !json.Valid(data) {
			t.Errorf("%q is not JSON", data)
		}
		if _, err := tokens(&Reader{Data: data, Lenient: true}); (err == nil) != json.Valid(data) {
			t.Errorf("%q, lenient: %v", data, err)
		}
		whole := Reader{Data: data}
		if _, err := whole.Next(); err == nil {
			raw, err := whole.Whole()
			if _, end := whole.Next(); err == nil && errors.Is(end, io.EOF) &&
				string(raw) != string(bytes.Trim(data, " \t\r\n")) {
				t.Errorf("%q is %q as a whole", data, raw)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range 3 * few {
		many += `"` + strings.Repeat("k", i) + `":[],`
	}
	for document, want := range map[string]error{
		`{"a":1,"b":{"a":2},"a":3}`:                                 ErrDuplicate,
		`{` + many + `"kk":1}`:                                      ErrDuplicate,
		`{"x":{` + many + `"z":1},` + many + `"z":1}`:               nil,
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000):   nil,
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001):   ErrDepth,
		strings.Repeat(`[{"a":`, 6000) + strings.Repeat("}]", 6000): ErrDepth,
		`{"a":`: io.ErrUnexpectedEOF,
		"":      io.ErrUnexpectedEOF,
	} {
		if _, err := tokens(&Reader{Data: []byte(document)}); !errors.Is(err, want) {
			t.Errorf("%.40s: %v, want %v", document, err, want)
		}
	}
	for document, want := range map[string]string{
		`{"a" 1}`:    "byte 6: missing :",
		`[1 2]`:      "byte 4: missing ,",
		`{"a":1]`:    "byte 7: missing ,",
		`[tru]`:      "byte 2: missing value",
		`{1:2}`:      "byte 2: missing name",
		"[\"\n\"]":   "byte 2: control character in a string",
		`["\x"]`:     "byte 2: invalid escape sequence",
		"[\"\xff\"]": "byte 2: invalid UTF-8",
		`1 2`:        "byte 3: unexpected data after the value",
	} {
		var syntax *SyntaxError
		if _, err := tokens(&Reader{Data: []byte(document)}); !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	data, err := json.Marshal(map[string]any{"text": strings.Repeat("Tomorrow it will be sunny in Tokyo, and we wrote.\n", 20_000),
		"list": strings.Split(strings.Repeat("some words of a list ", 2000), " ")})
	if err != nil || !utf8.Valid(data) {
		b.Fatal(err)
	}
	b.Run("jsonread", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			r := Reader{Data: data}
			for _, err := r.Next(); err == nil; _, err = r.Next() {
			}
		}
	})
	b.Run("jsontext", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			d := jsontext.NewDecoder(bytes.NewBuffer(data))
			for _, err := d.ReadToken(); err == nil; _, err = d.ReadToken() {
			}
		}
	})
}
