package console

import (
	"fmt"
	"strings"
	"testing"
)

// TestHostileFormulas: a text of a caller or a plugin that begins a formula, in whatever disguise, is a text in the
// exported spreadsheet.
func TestHostileFormulas(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", " ", "\t", "\r\n", "\u00a0", "\u3000", "\ufeff", "\u200b", " \u200b ", "\u2060\ufeff", "\x00",
		"\x1b", "\u202e", "\u00ad", "\ufe0f", "\U000e0020"} {
		for _, formula := range []string{"=HYPERLINK(\"https://evil.example\")", "+1+cmd|'/C calc'!A0", "-2+3", "@SUM(1)", "＝1", "|x", "%0A=1"} {
			t.Run(fmt.Sprintf("%q after %q", formula[:1], before), func(t *testing.T) {
				t.Parallel()
				if got := harmless(before + formula); !strings.HasPrefix(got, "'") {
					t.Errorf("%q is %q", before+formula, got)
				}
				if got := harmless("x;" + before + formula); !strings.Contains(got, "'"+formula) {
					t.Errorf("in the next cell: %q", got)
				}
			})
		}
	}
	for _, plain := range []string{"", "weather", "a=b", "1-2", "https://example.com/?a=b", "東京", "a@example.com"} {
		if got := harmless(plain); got != plain {
			t.Errorf("%q is %q", plain, got)
		}
	}
}
