package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/hako-run/hako/host/component"
)

// Sections of the binary format that are read. https://webassembly.github.io/spec/core/binary/modules.html
const (
	customSection   = 0
	typeSection     = 1
	importSection   = 2
	functionSection = 3
	memorySection   = 5
	exportSection   = 7
)

// sectionOrder is the order that sections other than custom ones come in, each at most once.
var sectionOrder = []byte{1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11}

// maxEntries bounds the entries of a section, and so the memory that a hostile module takes.
const maxEntries = 500_000

var (
	magic         = []byte("\x00asm")
	moduleVersion = []byte{1, 0, 0, 0}
)

// wasmReader reads the binary format with every access checked.
type wasmReader struct {
	data   []byte
	offset int
}

var errCut = errors.New("it ends early")

func (r *wasmReader) byte() (byte, error) {
	if r.offset >= len(r.data) {
		return 0, errCut
	}
	b := r.data[r.offset]
	r.offset++
	return b, nil
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *wasmReader) u32() (uint32, error) {
	n, err := r.leb(32)
	return uint32(n), err
}

// leb reads an unsigned LEB128 number of at most so many bits.
func (r *wasmReader) leb(bits int) (uint64, error) {
	var n uint64
	for shift := 0; ; shift += 7 {
		b, err := r.byte()
		if err != nil {
			return 0, err
		}
		if left := bits - shift; left < 7 && b>>max(left, 0) != 0 {
			return 0, fmt.Errorf("a number has more than %d bits", bits)
		}
		n |= uint64(b&0x7F) << shift
		if b&0x80 == 0 {
			return n, nil
		}
	}
}

func (r *wasmReader) bytes(n uint32) ([]byte, error) {
	if uint64(n) > uint64(len(r.data)-r.offset) {
		return nil, errCut
	}
	b := r.data[r.offset : r.offset+int(n) : r.offset+int(n)]
	r.offset += int(n)
	return b, nil
}

// sized reads a length and that many bytes.
func (r *wasmReader) sized() ([]byte, error) {
	n, err := r.u32()
	if err != nil {
		return nil, err
	}
	return r.bytes(n)
}

func (r *wasmReader) name() (string, error) {
	b, err := r.sized()
	if err == nil && !utf8.Valid(b) {
		err = errors.New("a name is not valid UTF-8")
	}
	return string(b), err
}

// vector reads a count and that many elements.
func (r *wasmReader) vector(element func() error) error {
	n, err := r.u32()
	if n > maxEntries {
		return fmt.Errorf("it has %d entries; at most %d are allowed", n, maxEntries)
	}
	for ; n > 0 && err == nil; n-- {
		err = element()
	}
	return err
}

// section is one section of a module, with its place in the file.
type section struct {
	id         byte
	start, end int
	// name is the name of a custom section.
	name    string
	content []byte
}

// section reads the next section, ok is false at the end of the file.
func (r *wasmReader) section() (s section, ok bool, err error) {
	s.start = r.offset
	if s.start == len(r.data) {
		return s, false, nil
	}
	if s.id, err = r.byte(); err != nil {
		return s, false, err
	}
	if s.content, err = r.sized(); err != nil {
		return s, false, fmt.Errorf("section %d at byte %d: %w", s.id, s.start, err)
	}
	s.end = r.offset
	if s.id == customSection {
		custom := wasmReader{data: s.content}
		if s.name, err = custom.name(); err != nil {
			return s, false, fmt.Errorf("custom section at byte %d: %w", s.start, err)
		}
		s.content = s.content[custom.offset:]
	}
	return s, true, nil
}

// checkHeader returns a reader behind the magic number and version, or what the bytes are instead of a core module or a
// component.
func checkHeader(data []byte) (*wasmReader, error) {
	is := func(words string) error { return fmt.Errorf("%w: %s", ErrNotModule, words) }
	text := bytes.ToLower(bytes.TrimSpace(data[:min(len(data), 512)]))
	switch {
	case len(data) == 0:
		return nil, is("the file is empty")
	case bytes.HasPrefix(data, magic) && len(data) < 8:
		return nil, is("it ends within the header: copy the file again")
	case component.IsComponent(data):
		return &wasmReader{data: data, offset: 8}, nil
	case bytes.HasPrefix(data, magic) && !bytes.Equal(data[4:8], moduleVersion):
		return nil, is(fmt.Sprintf("its binary format version is %x, hako reads version 1", data[4:8]))
	case bytes.HasPrefix(data, magic):
		return &wasmReader{data: data, offset: 8}, nil
	case bytes.HasPrefix(text, []byte("(module")) || bytes.HasPrefix(text, []byte(";;")) ||
		bytes.HasPrefix(text, []byte("(component")):
		return nil, is("it is the text format: convert it with wat2wasm")
	case bytes.HasPrefix(text, []byte("<!doctype")) || bytes.HasPrefix(text, []byte("<html")):
		return nil, is("it is an HTML page: download the file itself")
	case bytes.HasPrefix(data, []byte{0x1F, 0x8B}):
		return nil, is("it is compressed with gzip: unpack it first")
	case bytes.HasPrefix(data, []byte("\x28\xB5\x2F\xFD")):
		return nil, is("it is compressed with zstd: unpack it first")
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return nil, is("it is a zip archive: unpack it first")
	case bytes.HasPrefix(data, []byte("\x7FELF")) || bytes.HasPrefix(data, []byte("MZ")) ||
		bytes.HasPrefix(data, []byte{0xCF, 0xFA, 0xED, 0xFE}):
		return nil, is("it is a native program: build it for Wasm (GOOS=wasip1 GOARCH=wasm)")
	}
	return nil, is(`it does not start with "\0asm"`)
}
