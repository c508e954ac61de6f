package slackbot

import (
	"strings"
	"testing"
)

// TestClipEscaped: texts are cut between escapes and mentions, and an ID within a longer one is not a mention.
func TestClipEscaped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"a&b", 10, "a&amp;b"},
		{"a&b", 5, "a…"},
		{"<!channel>", 100, "&lt;!channel&gt;"},
		{"U10, U100", 100, "<@U10>, <@U100>"},
		{"XU10 U10X", 100, "XU10 U10X"},
		{"ab U100", 7, "ab …"},
		{"a, U10" + strings.Repeat("0", 20), 6, "a, …"},
		{"あい", 4, "あ…"},
	} {
		if got := clipEscaped(c.text, c.limit, "U10", "U100"); got != c.want {
			t.Errorf("%q in %d bytes is %q, not %q", c.text, c.limit, got, c.want)
		}
	}
}
