package mcpserver

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestReadAll: a body is read whole, whatever its header says of its size.
func TestReadAll(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 511, 512, 513, 100_000} {
		text := strings.Repeat("x", size)
		for _, claimed := range []int64{-1, 0, 1, int64(size), 1 << 20} {
			body, err := readAll(iotest.HalfReader(strings.NewReader(text)), claimed)
			if err != nil || string(body) != text {
				t.Errorf("%d of %d bytes: %d, %v", size, claimed, len(body), err)
			}
		}
	}
	if body, _ := readAll(strings.NewReader("short"), 4<<20); cap(body) > 4<<10 {
		t.Errorf("%d bytes are reserved for a header", cap(body))
	}
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := readAll(broken, 8); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
