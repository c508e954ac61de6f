package terminal

import (
	"strings"
	"testing"
)

// TestWrap: lines end between words and between Japanese characters, but not before a full stop or after a bracket.
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 7, "one two\nthree"},
		{"あいう。", 6, "あい\nう。"},
		{"あ「いう」え", 4, "あ\n「い\nう」\nえ"},
		{"漢字とabc", 8, "漢字と\nabc"},
		{"abcdefgh", 3, "abc\ndef\ngh"},
		{"a\nb", 9, "a\nb"},
		{"word 、、、、、、、、", 4, "word\n、、\n、、\n、、\n、、"},
		{"か\u3099き\u3099", 2, "か\u3099\nき\u3099"},
		{"", 5, ""},
	} {
		var lines []string
		for _, r := range wrap([]span{{text: test.text}}, test.width) {
			lines = append(lines, r.String())
		}
		if got := strings.Join(lines, "\n"); got != test.want {
			t.Errorf("%q in %d columns: got %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	if got, want := fit("short\n東京の天気予報\n", 10), "short\n東京の天…\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Fit(new(strings.Builder), "any\n"); got != "any\n" {
		t.Errorf("without a terminal: %q", got)
	}
}
