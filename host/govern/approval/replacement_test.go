package approval_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
)

func unmasked(text string) string { return text }

// comparison returns the described argument "content", which replaces present.
func comparison(t *testing.T, present, content any, mask func(string) string) approval.Value {
	t.Helper()
	before, err := json.Marshal(present)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]any{"content": content})
	if err != nil {
		t.Fatal(err)
	}
	q := question(string(arguments))
	value, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	q.Compare("content", before, value, nil, mask)
	return q.Describe("en").Values[0]
}

func TestComparison(t *testing.T) {
	t.Parallel()
	numbered := strings.Join(strings.Split("abcdefghijklmnop", ""), "\n")
	long := strings.Repeat("x", 1<<19)
	for name, test := range map[string]struct {
		present, content any
		want, cut        string
	}{
		"one line": {"a\nb\nc\n", "a\nB\nc\n", "  a|- b|+ B|  c", "Lines added: 1, removed: 1."},
		"far apart": {numbered, strings.NewReplacer("a", "A", "o", "O").Replace(numbered),
			"- a|+ A|  b|  c|… line 13|  m|  n|- o|+ O|  p", "Lines added: 2, removed: 2."},
		"moved lines":        {"a\nb\nc\nd", "d\na\nb\nc", "+ d|  a|  b|  c|- d", "Lines added: 1, removed: 1."},
		"nothing changes":    {"a\nb", "a\nb", "", "This is the current content"},
		"line ends":          {"a\r\nb\r\n", "a\nb\n", "- a␦|- b␦|+ a|+ b", "Lines added: 2, removed: 2."},
		"the last line end":  {"a\nb", "a\nb\n", "", "no line shows differs too, such as the line break at the end"},
		"a line, the end":    {"a\nb\n", "A\nb", "- a|+ A|  b", "removed: 1. Something that no line shows"},
		"other hidden ones":  {"a\u202eb", "a\u202db", "- a␦b|+ a␦b", "Lines added: 1"},
		"a mark itself":      {"a␦b", "a\u200bb", "- a␦b|+ a␦b", "Lines added: 1"},
		"a number or text":   {[][]any{{1}}, [][]any{{"1"}}, "", "no line shows"},
		"cells or text":      {[][]any{{"a · b"}}, [][]any{{"a", "b"}}, "", "no line shows"},
		"a new file":         {"", "a", "+ a", "Lines added: 1, removed: 0."},
		"emptied":            {"a", "", "- a", "Lines added: 0, removed: 1."},
		"rows":               {[][]any{{"Aki", 900}, {"Bo", nil}}, [][]any{{"Aki", 901}, {"Bo"}}, "- Aki · 900|+ Aki · 901|  Bo", "Lines added: 1"},
		"rows that forge":    {[][]any{}, [][]any{{"a\n- b"}}, `+ a\n- b`, "Lines added: 1"},
		"control characters": {"a\x1b[2Jb\u202e", "a\r", "- a␦[2Jb␦|+ a␦", "Lines added: 1"},
		"a forged line":      {"", "x\n… line 7\n- y\nAsked by: admin", "+ x|+ … line 7|+ - y|+ Asked by: admin", "Lines added: 4"},
		"the end of a line of 512 KiB": {long + "あa", long + "あb",
			"- …" + strings.Repeat("x", 19) + "あa|+ …" + strings.Repeat("x", 19) + "あb", "Lines added: 1"},
		"half of a character": {long + "あ", long + "い", "- …" + strings.Repeat("x", 20) + "あ|+ …" + strings.Repeat("x", 20) + "い", "Lines added: 1"},
		"a line of 1 MB":      {"a", strings.Repeat("x", 1_000_000), "- a|+ " + strings.Repeat("x", 159) + "…", "Lines added: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := comparison(t, test.present, test.content, unmasked)
			if got := strings.Join(v.Diff, "|"); got != test.want {
				t.Errorf("got %.500q", got)
			}
			if !strings.Contains(v.Cut, test.cut) {
				t.Errorf("got %q", v.Cut)
			}
		})
	}
}

// TestComparisonIsBounded compares texts that are larger than people read.
func TestComparisonIsBounded(t *testing.T) {
	t.Parallel()
	shuffled := func(of string) string {
		var b strings.Builder
		for i := range 60_000 {
			b.WriteString(of + string(rune('a'+i*7919%26)) + string(rune('a'+i*104729%25)) + "\n")
		}
		return b.String()
	}
	for name, test := range map[string]struct{ present, content, want string }{
		"other lines":  {shuffled("b"), shuffled("c"), "Changed lines not shown"},
		"shared lines": {shuffled(""), shuffled("") + "x" + shuffled(""), "Lines added"},
		"10 MB":        {"a", strings.Repeat("x\n", 5<<20), "Not compared with the current content: it has"},
		"10 MB there":  {strings.Repeat("x\n", 5<<20), "a", "at most 1024 are compared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := comparison(t, test.present, test.content, unmasked)
			if n := len(strings.Join(v.Lines(), "\n")); n > 20_000 || !strings.Contains(v.Cut, test.want) {
				t.Errorf("%d bytes: %q", n, v.Cut)
			}
		})
	}
}

func TestComparisonInTheQuestion(t *testing.T) {
	t.Parallel()
	q := question(`{"path":"a.md","content":"one\n<!channel> two"}`)
	q.Compare("content", json.RawMessage(`"one\nsecret\n"`), json.RawMessage(`"one\n<!channel> two\n"`), nil, func(text string) string {
		return strings.ReplaceAll(text, "secret", "[masked]")
	})
	const want = "\n  path: a.md\n  content:\n  │   one\n  │ - [masked]\n  │ + <!channel> two\n" +
		"  │ Compared with the current content. Lines added: 1, removed: 1.\n"
	if text := q.Text("en"); !strings.Contains(text, want) {
		t.Errorf("got\n%s", text)
	}
	if text := q.Text("ja"); !strings.Contains(text, "現在の内容との比較: 追加 1 行、削除 1 行。") {
		t.Errorf("got\n%s", text)
	}
	q.Compare("content", json.RawMessage(`"my secret"`), json.RawMessage(`"your secret"`), nil, func(string) string { return "[masked]" })
	if text := q.Text("en"); strings.Contains(text, "secret") || !strings.Contains(text, "Something that no line shows differs") {
		t.Errorf("another secret:\n%s", text)
	}
	q.Compare("content", nil, nil, manifest.Text{"en": "not\ntext", "ja": "テキストではありません"}, unmasked)
	if text := q.Text("en"); !strings.Contains(text, "│ <!channel> two\n  │ Not compared with the current content: not\\ntext.\n") {
		t.Errorf("got\n%s", text)
	}
	if text := q.Text("ja"); !strings.Contains(text, "比較していません: テキストではありません。") {
		t.Errorf("got\n%s", text)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(`"a\nb"`, `{"content":"a\nc"}`)
	f.Add(`[[1],[2]]`, `{"content":[[1],[3]]}`)
	f.Fuzz(func(t *testing.T, present, arguments string) {
		q := question(arguments)
		var given map[string]json.RawMessage
		_ = json.Unmarshal([]byte(arguments), &given)
		q.Compare("content", json.RawMessage(present), given["content"], nil, unmasked)
		if text := q.Text("en"); len(text) > 100_000 || strings.Count("\n"+text, "\nAsked by:") != 1 {
			t.Errorf("%.2000s", text)
		}
	})
}
