package wire

import (
	"bytes"
	"testing"
)

// TestPlainBytes puts every byte at every position of a text, also bytes that differ from a quote or backslash in one
// bit.
func TestPlainBytes(t *testing.T) {
	t.Parallel()
	for length := range 40 {
		for at := range length {
			for b := range 256 {
				for _, filling := range []byte{'a', ' ', '!', ']', 0x80, 0xff} {
					data := bytes.Repeat([]byte{filling}, length)
					data[at] = byte(b)
					want := length
					if b == '"' || b == '\\' || b < ' ' {
						want = at
					}
					if got := plainBytes(data); got != want {
						t.Fatalf("%q: %d bytes, want %d", data, got, want)
					}
				}
			}
		}
	}
	both := []byte(`12345678901234"\`)
	if got := plainBytes(both); got != 14 {
		t.Errorf("%q: %d bytes, want 14", both, got)
	}
}
