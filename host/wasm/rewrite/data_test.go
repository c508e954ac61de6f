package rewrite_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/hako-run/hako/host/wasm/rewrite"
)

// TestSegments: a stub with its segments starts with the same memory as the module. Segments that code may refer to keep
// their numbers, and those that the runtime must place stay in the stub.
func TestSegments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data     string
		segments int
		stub     string // the data section of the stub if the number of segments is declared
	}{
		"active":               {"\x01\x00\x41\x03\x0b\x02ab", 1, "\x01\x00\x41\x03\x0b\x00"},
		"empty":                {"\x01\x00\x41\x03\x0b\x00", 1, "\x01\x00\x41\x03\x0b\x00"},
		"at the end":           {"\x01\x00\x41\xff\xff\x03\x0b\x01a", 1, "\x01\x00\x41\xff\xff\x03\x0b\x00"},
		"passive":              {"\x02\x01\x02ab\x00\x41\x04\x0b\x01c", 1, "\x02\x01\x02ab\x00\x41\x04\x0b\x00"},
		"overlapping":          {"\x02\x00\x41\x03\x0b\x02ab\x00\x41\x04\x0b\x01c", 2, "\x02\x00\x41\x03\x0b\x00\x00\x41\x04\x0b\x00"},
		"with a memory number": {"\x01\x02\x00\x41\x03\x0b\x01b", 0, "\x01\x02\x00\x41\x03\x0b\x01b"},
	} {
		for _, declared := range []bool{false, true} {
			sections := [][]byte{{5, 1, 0, 1}, {7, 1, 1, 'm', 2, 0}}
			section := []byte("\x0b\x01\x00")
			if declared || test.segments == 0 {
				section = append([]byte{11, byte(len(test.stub))}, test.stub...)
			}
			if declared {
				sections = append(sections, []byte{12, test.data[0]})
			}
			wasm := module(append(sections, []byte("\x0b"+test.data))...)
			segments, err := rewrite.Segments(wasm)
			if err != nil || len(segments) != test.segments {
				t.Errorf("%s: %d segments, %v", name, len(segments), err)
			}
			stub, err := rewrite.Stub(wasm)
			if err != nil || !bytes.Contains(stub, section) {
				t.Errorf("%s, declared %v: the stub is %q, %v; want %q in it", name, declared, stub, err, section)
			}
			want, _ := instantiate(t, wasm).Memory().Read(0, 1<<16)
			got, _ := instantiate(t, stub).Memory().Read(0, 1<<16)
			for _, segment := range segments {
				copy(got[segment.Offset:], segment.Bytes)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the memory starts with %q, want %q", name, got[:8], want[:8])
			}
		}
	}
}

// TestSegmentsThatStay: the runtime must see what is invalid, and what a start function reads.
func TestSegmentsThatStay(t *testing.T) {
	t.Parallel()
	memory := [][]byte{{5, 1, 0, 1}}
	started := append([][]byte{{1, 1, 0x60, 0, 0}, {3, 1, 0}}, memory[0], []byte{8, 0}, []byte{10, 1, 2, 0, 0x0b})
	for name, data := range map[string][]byte{
		"beyond the memory": {1, 0, 0x41, 0xff, 0xff, 3, 0x0b, 2, 'a', 'b'},
		"a negative offset": {1, 0, 0x41, 0x7f, 0x0b, 1, 'a'},
		"a global":          {1, 0, 0x23, 0, 0x0b, 1, 'a'},
		"a sum":             {1, 0, 0x41, 1, 0x41, 1, 0x6a, 0x0b, 1, 'a'},
		"an unknown kind":   {1, 3, 0x41, 3, 0x0b, 1, 'a'},
		"a start function":  {1, 0, 0x41, 3, 0x0b, 1, 'a'},
	} {
		sections := memory
		if name == "a start function" {
			sections = started
		}
		wasm := module(append(slices.Clone(sections), append([]byte{11}, data...))...)
		stub, err := rewrite.Stub(wasm)
		if err != nil || !bytes.Contains(stub, append([]byte{11, byte(len(data))}, data...)) {
			t.Errorf("%s: the stub is %q, %v", name, stub, err)
		}
		if segments, err := rewrite.Segments(wasm); err != nil || len(segments) > 0 {
			t.Errorf("%s: %v, %v", name, segments, err)
		}
	}
}

func TestNoSegments(t *testing.T) {
	t.Parallel()
	if segments, err := rewrite.Segments(module()); len(segments) > 0 || err != nil {
		t.Errorf("a module without a data section: %v, %v", segments, err)
	}
}

// TestMalformedSegments: a section that cannot be read is an error, which Check reports first.
func TestMalformedSegments(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"truncated":           {1, 0, 0x41, 3, 0x0b, 9, 'a'},
		"four billion":        {0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0x41, 3, 0x0b, 1, 'a'},
		"nothing at all":      {},
		"an offset of 64 bit": {1, 0, 0x41, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x0b, 1, 'a'},
	} {
		wasm := module([]byte{5, 1, 0, 1}, append([]byte{11}, data...))
		_, stubError := rewrite.Stub(wasm)
		_, segmentsError := rewrite.Segments(wasm)
		if err := rewrite.Check(wasm); err == nil || stubError == nil || segmentsError == nil {
			t.Errorf("%s: errors %v, %v and %v", name, err, stubError, segmentsError)
		}
	}
}
