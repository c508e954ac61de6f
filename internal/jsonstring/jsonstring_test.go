package jsonstring

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// TestPlain finds every byte that needs an escape sequence, at every place in a word.
func TestPlain(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for at := range 20 {
			text := bytes.Repeat([]byte("é"), 10)
			text[at] = byte(c)
			want := len(text)
			if c < ' ' || c == '"' || c == '\\' {
				want = at
			}
			if got := Plain(text); got != want {
				t.Errorf("%#x at %d: %d, want %d", c, at, got, want)
			}
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("a line\nand \"quotes\", \\ and \x00\x1f\x7f, 日本語 \u2028 <&>")
	f.Add(strings.Repeat("seven b", 9) + "\t\xff")
	f.Fuzz(func(t *testing.T, text string) {
		want, _ := jsontext.AppendQuote(nil, text)
		got := AppendQuote(nil, text)
		if string(got) != string(want) {
			t.Fatalf("%q: %s, want %s", text, got, want)
		}
		if n := QuotedLen(text); utf8.ValidString(text) && n != len(got) {
			t.Errorf("%q: %d bytes, want %d", text, n, len(got))
		}
		if end := End(append(got, '"', 'x'), 1); end != len(got)-1 {
			t.Errorf("%s ends at %d", got, end)
		}
		if back := AppendUnquote(nil, got[1:len(got)-1]); utf8.ValidString(text) && string(back) != text {
			t.Errorf("%s became %q", got, back)
		}
	})
}

// FuzzUnquote compares AppendUnquote with encoding/json.
func FuzzUnquote(f *testing.F) {
	for _, content := range []string{
		`plain`, `a\nb\"c\\d\/e\b\f\r\t`, `\u00e9\u0041`, `\ud83d\ude00`, `\ud83d`, `\ude00\ud83d`, `\ud83d\ud83d\ude00`,
		`\ud83d\n`, `\uD83D\uDE00x`, `\ud83dx`, `\\`, ``,
	} {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content string) {
		var want string
		quoted := `"` + content + `"`
		if !utf8.ValidString(content) || json.Unmarshal([]byte(quoted), &want) != nil {
			return
		}
		if got := AppendUnquote([]byte("x"), []byte(content)); string(got) != "x"+want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
		if got := UnquoteInPlace([]byte(content)); string(got) != want {
			t.Errorf("%s: %q in place, want %q", content, got, want)
		}
		if end := End([]byte(quoted), 1); end != len(quoted)-1 {
			t.Errorf("%s ends at %d", quoted, end)
		}
	})
}

func BenchmarkQuote(b *testing.B) {
	text := strings.Repeat("Tomorrow it will be sunny in Tokyo, with a high of 20 degrees, and Aki wrote to 12 people.\n", 9000)
	quoted := AppendQuote(nil, text)
	b.Run("quote", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			quoted = AppendQuote(quoted[:0], text)
		}
	})
	b.Run("unquote", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		buffer := make([]byte, 0, len(quoted))
		for b.Loop() {
			AppendUnquote(buffer, quoted[1:len(quoted)-1])
		}
	})
	b.Run("length", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			QuotedLen(text)
		}
	})
	b.Run("jsontext", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			quoted, _ = jsontext.AppendQuote(quoted[:0], text)
		}
	})
}
