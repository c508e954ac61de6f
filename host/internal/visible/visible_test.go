package visible_test

import (
	"testing"

	"github.com/hako-run/hako/host/internal/visible"
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
