package clip

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/memorytest"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text                 string
		limit                int
		bytes, marked, runes string
	}{
		{"", 3, "", "", ""},
		{"abc", 3, "abc", "abc", "abc"},
		{"abcd", 3, "abc", "abc…", "ab…"},
		{"箱の中", 3, "箱", "箱…", "箱の中"},
		{"箱の中", 5, "箱", "箱…", "箱の中"},
		{"箱の中身", 3, "箱", "箱…", "箱の…"},
		{"a bcd", 3, "a b", "a b…", "a…"},
		{"箱", 1, "", "…", "箱"},
	} {
		if got := Bytes(test.text, test.limit); got != test.bytes {
			t.Errorf("Bytes(%q, %d) is %q, want %q", test.text, test.limit, got, test.bytes)
		}
		if got := Marked(test.text, test.limit); got != test.marked {
			t.Errorf("Marked(%q, %d) is %q, want %q", test.text, test.limit, got, test.marked)
		}
		if got := Runes(test.text, test.limit); got != test.runes {
			t.Errorf("Runes(%q, %d) is %q, want %q", test.text, test.limit, got, test.runes)
		}
	}
}

// TestCopies: a result does not keep the text of which its argument was a part, whether or not it was cut.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(string, int) string{"Bytes": Bytes, "Marked": Marked, "Runes": Runes} {
		for _, limit := range []int{5, 50} {
			var tracker memorytest.Tracker
			text := tracker.Text(fmt.Sprintf("the text of %s(_, %d)", name, limit), strings.Repeat("0123456789", 1<<17))
			kept := cut(text[10:20], limit)
			tracker.Check(t)
			runtime.KeepAlive(kept)
		}
	}
}
