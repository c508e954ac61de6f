package visible_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/visible"
)

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "",
		"天気 é ✓ 👩\nnext":                       "天気 é ✓ 👩\nnext",
		"a\tb\rc\x00d\x1b[2J":                  "a␦b␦c␦d␦[2J",
		"a\u202eb\u2066c":                      "a␦b␦c",
		"a\u200bb\ufeffc\u00add\u061ce\u2028f": "a␦b␦c␦d␦e␦f",
		"a\U000e0041b\u0085c":                  "a␦b␦c",
		"a\xffb":                               "a␦b",
	} {
		if got := visible.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestHostileHidden: every invisible character is hidden, and is marked and removed.
func TestHostileHidden(t *testing.T) {
	t.Parallel()
	for name, ranges := range map[string][][2]rune{
		"C0":                            {{0, 0x1f}, {0x7f, 0x7f}},
		"C1":                            {{0x80, 0x9f}},
		"soft hyphen":                   {{0xad, 0xad}},
		"grapheme joiner":               {{0x34f, 0x34f}},
		"Arabic letter mark":            {{0x61c, 0x61c}},
		"Hangul fillers":                {{0x115f, 0x1160}, {0x3164, 0x3164}, {0xffa0, 0xffa0}},
		"Khmer inherent vowels":         {{0x17b4, 0x17b5}},
		"Mongolian vowel separator":     {{0x180b, 0x180f}},
		"zero width":                    {{0x200b, 0x200f}},
		"separators":                    {{0x2028, 0x2029}},
		"embeddings and overrides":      {{0x202a, 0x202e}},
		"word joiner and operators":     {{0x2060, 0x2064}},
		"isolates":                      {{0x2066, 0x2069}},
		"deprecated format characters":  {{0x206a, 0x206f}},
		"blank of Braille":              {{0x2800, 0x2800}},
		"variation selectors":           {{0xfe00, 0xfe0f}},
		"byte order mark":               {{0xfeff, 0xfeff}},
		"interlinear annotation":        {{0xfff9, 0xfffb}},
		"musical format characters":     {{0x1d173, 0x1d17a}},
		"shorthand format characters":   {{0x1bca0, 0x1bca3}},
		"tags":                          {{0xe0000, 0xe007f}},
		"variation selectors' addition": {{0xe0100, 0xe01ef}},
		"non-characters":                {{0xfdd0, 0xfdef}, {0xfffe, 0xffff}, {0x10fffe, 0x10ffff}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, span := range ranges {
				for r := span[0]; r <= span[1]; r++ {
					text := "a" + string(r) + "b"
					if line := visible.Line(text); !visible.Hidden(r) || strings.ContainsRune(line, r) {
						t.Errorf("%U passes: %q", r, line)
					}
					if clean := visible.Clean(text); r != '\n' && r != '\t' && clean != "ab" {
						t.Errorf("%U is kept: %q", r, clean)
					}
				}
			}
		})
	}
}

// TestShown: ordinary text is unchanged.
func TestShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"天気　ガ가", "é é ẵ", "❤\ufe0f ⚠\ufe0f 1\ufe0f⃣ #\ufe0f⃣", "👩\u200d💻 🏳\ufe0f\u200d🌈 👨\u200d👩\u200d👧 👍🏽",
		"می\u200cخواهم", "क्\u200dष ශ්\u200dරී", "שָׁלוֹם", "a b\u00a0c", "lines\nand\ttabs\r\n", "؀١", "‼\ufe0f",
	} {
		if got := visible.Escape(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestHostileJoiners: characters that are legitimate between some characters are hidden between others.
func TestHostileJoiners(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"joiner between letters":           {"ad\u200dmin", `ad\u200dmin`},
		"joiner at the end":                {"👩\u200d", `👩\u200d`},
		"joiner between symbol and letter": {"👩\u200da", `👩\u200da`},
		"non-joiner between letters":       {"ad\u200cmin", `ad\u200cmin`},
		"joiners in a row":                 {"م\u200c\u200cم", `م\u200c\u200cم`},
		"selector after a letter":          {"a\ufe0fb", `a\ufe0fb`},
		"selectors in a row":               {"❤\ufe0f\ufe0f", "❤\ufe0f" + `\ufe0f`},
		"text style":                       {"❤\ufe0e", `❤\ufe0e`},
		"keycap without a key":             {"a\ufe0f\u20e3", `a\ufe0f` + "\u20e3"},
		"marks in a row": {"a" + strings.Repeat("\u0301", 10),
			"a" + strings.Repeat("\u0301", 8) + `\u0301\u0301`},
		"marks with a break between": {"a" + strings.Repeat("\u0301", 8) + "\u200b\u0301",
			"a" + strings.Repeat("\u0301", 8) + `\u200b\u0301`},
		"a flag of tags":    {"🏴\U000e0067\U000e007f", `🏴\udb40\udc67\udb40\udc7f`},
		"CSI of eight bits": {"\u009b2J", `\u009b2J`},
		"CSI of one byte":   {"\x9b2J", `\ufffd2J`},
		"an overlong ESC":   {"\xc0\x9b[2J", `\ufffd\ufffd[2J`},
		"a surrogate":       {"\xed\xa0\x80", `\ufffd\ufffd\ufffd`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := visible.Escape(test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzEscape: the result contains no hidden characters, is a fixed point of Escape, and JSON keeps its meaning.
func FuzzEscape(f *testing.F) {
	f.Add("a\u202e\x1b]8;;https://evil.example\x07", 3)
	f.Add("👩‍💻❤️", 5)
	f.Fuzz(func(t *testing.T, text string, at int) {
		line := visible.Line(text)
		if r, found := visible.First(line, ""); found || !utf8.ValidString(line) || visible.Line(line) != line {
			t.Fatalf("%q became %q with %U", text, line, r)
		}
		if clean := visible.Clean(text); visible.Clean(clean) != clean {
			t.Errorf("%q became %q, then %q", text, clean, visible.Clean(clean))
		}
		encoded, _ := json.Marshal(text)
		var before, after string
		if err := json.Unmarshal(encoded, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(visible.Escape(string(encoded))), &after); err != nil || after != before {
			t.Errorf("%s became %q, %v", encoded, after, err)
		}
		var out strings.Builder
		w := visible.NewWriter(&out)
		at = min(max(at, 0), len(text))
		fmt.Fprint(w, text[:at])
		fmt.Fprint(w, text[at:])
		if r, found := visible.First(strings.TrimRight(out.String(), "\u200d\u200c"), "\n\t\r"); found &&
			r != '\u200d' && r != '\u200c' {
			t.Errorf("%q in two parts became %q with %U", text, out.String(), r)
		}
	})
}
