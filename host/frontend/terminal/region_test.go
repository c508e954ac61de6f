package terminal

import (
	"strings"
	"testing"
)

// writes records each write.
type writes []string

func (w *writes) Write(data []byte) (int, error) {
	*w = append(*w, string(data))
	return len(data), nil
}

// TestRegionDoesNotFlicker: a change is one synchronized write that erases no row before it is drawn again, and the same
// picture is not drawn twice.
func TestRegionDoesNotFlicker(t *testing.T) {
	t.Parallel()
	var out writes
	r := region{out: &out}
	r.draw(nil, []string{"live", "> "}, 2, 1, 80)
	r.draw(nil, []string{"live", "> "}, 2, 1, 80)
	r.draw(nil, []string{"live text", "> a"}, 3, 1, 80)
	r.draw([]string{"live text."}, []string{"> a"}, 3, 0, 80)
	if len(out) != 3 {
		t.Fatalf("%d writes: %q", len(out), out)
	}
	for _, picture := range out {
		if !strings.HasPrefix(picture, "\x1b[?2026h") || !strings.HasSuffix(picture, "\x1b[?2026l") {
			t.Errorf("%q is not synchronized", picture)
		}
	}
	if want := "\r\x1b[Alive text\x1b[K\r\n> a\x1b[K\x1b[J\r\x1b[3C"; !strings.Contains(out[1], want) {
		t.Errorf("%q does not overwrite: want %q", out[1], want)
	}
	if want := "\r\x1b[A\x1b[Jlive text.\r\n> a\x1b[K\x1b[J\r\x1b[3C"; !strings.Contains(out[2], want) {
		t.Errorf("%q does not print above: want %q", out[2], want)
	}
}
