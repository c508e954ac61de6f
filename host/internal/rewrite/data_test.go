package rewrite_test

import (
	"bytes"
	"testing"

	"github.com/hako-run/hako/host/internal/rewrite"
)

// TestSegments: a stub with its segments starts with the same memory as the module, and segments that are needed
// earlier or cannot be placed stay in the stub.
func TestSegments(t *testing.T) {
	t.Parallel()
	start := [][]byte{{1, 1, 0x60, 0, 0}, {3, 1, 0}}
	for name, test := range map[string]struct {
		data     []byte
		start    bool
		segments int
	}{
		"active":                 {[]byte{1, 0, 0x41, 3, 0x0b, 2, 'a', 'b'}, false, 1},
		"overlapping":            {[]byte{2, 0, 0x41, 3, 0x0b, 2, 'a', 'b', 0, 0x41, 4, 0x0b, 1, 'c'}, false, 2},
		"passive":                {[]byte{2, 1, 2, 'a', 'b', 0, 0x41, 4, 0x0b, 1, 'c'}, false, 1},
		"empty":                  {[]byte{1, 0, 0x41, 3, 0x0b, 0}, false, 1},
		"at the end":             {[]byte{1, 0, 0x41, 0xff, 0xff, 3, 0x0b, 1, 'a'}, false, 1},
		"with a start function":  {[]byte{1, 0, 0x41, 3, 0x0b, 2, 'a', 'b'}, true, 0},
		"with a memory's number": {[]byte{2, 0, 0x41, 3, 0x0b, 1, 'a', 2, 0, 0x41, 3, 0x0b, 1, 'b'}, false, 0},
	} {
		sections := [][]byte{{5, 1, 0, 1}, {7, 1, 1, 'm', 2, 0}}
		if test.start {
			sections = append(append(start, sections...), []byte{8, 0}, []byte{10, 1, 2, 0, 0x0b})
		}
		wasm := module(append(sections, append([]byte{11}, test.data...))...)
		stub, err := rewrite.Stub(wasm)
		if err != nil {
			t.Fatal(err)
		}
		segments, err := rewrite.Segments(wasm)
		if err != nil || len(segments) != test.segments {
			t.Errorf("%s: %d segments, %v", name, len(segments), err)
		}
		if test.start {
			continue // a stub's start function traps
		}
		want, _ := instantiate(t, wasm).Memory().Read(0, 1<<16)
		got, _ := instantiate(t, stub).Memory().Read(0, 1<<16)
		for _, segment := range segments {
			if at := got[segment.Offset:][:len(segment.Bytes)]; test.segments == 1 && !bytes.Equal(at, make([]byte, len(at))) {
				t.Errorf("%s: the stub has %q", name, at)
			}
			copy(got[segment.Offset:], segment.Bytes)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the memory starts with %q, want %q", name, got[:8], want[:8])
		}
	}
}

// TestSegmentsOfInvalidModules: the runtime must see what is invalid.
func TestSegmentsOfInvalidModules(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"beyond the memory":   {1, 0, 0x41, 0xff, 0xff, 3, 0x0b, 2, 'a', 'b'},
		"a negative offset":   {1, 0, 0x41, 0x7f, 0x0b, 1, 'a'},
		"a global":            {1, 0, 0x23, 0, 0x0b, 1, 'a'},
		"a sum":               {1, 0, 0x41, 1, 0x41, 1, 0x6a, 0x0b, 1, 'a'},
		"truncated":           {1, 0, 0x41, 3, 0x0b, 9, 'a'},
		"four billion":        {0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0x41, 3, 0x0b, 1, 'a'},
		"an unknown kind":     {1, 3, 0x41, 3, 0x0b, 1, 'a'},
		"nothing at all":      {},
		"an offset of 64 bit": {1, 0, 0x41, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x0b, 1, 'a'},
	} {
		wasm := module([]byte{5, 1, 0, 1}, append([]byte{11}, data...))
		stub, err := rewrite.Stub(wasm)
		if err != nil || !bytes.HasPrefix(stub, wasm) {
			t.Errorf("%s: the stub is %q, %v", name, stub, err)
		}
		if segments, err := rewrite.Segments(wasm); err != nil || len(segments) > 0 {
			t.Errorf("%s: %v, %v", name, segments, err)
		}
	}
}
