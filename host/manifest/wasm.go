package manifest

import (
	"bytes"
	"fmt"

	"github.com/hako-run/hako/host/component"
	"github.com/hako-run/hako/host/internal/wasmbin"
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

// section is one section of a module or component, with its place in the file.
type section struct {
	id         byte
	start, end int
	// name is the name of a custom section.
	name string
	// content is what follows the name in a custom section, and all content of others.
	content *wasmbin.Reader
}

// eachSection calls visit with every section. The error is that of a malformed section or of visit's reads.
func eachSection(r *wasmbin.Reader, visit func(section)) (err error) {
	defer wasmbin.Catch(&err)
	for !r.Done() {
		s := section{start: r.Pos}
		s.id, s.content = r.Byte(), r.Section()
		s.end = r.Pos
		if s.id == customSection {
			s.name = s.content.Name()
		}
		visit(s)
	}
	return nil
}

// checkHeader returns a reader behind the magic number and version, or what the bytes are instead of a core module or a
// component.
func checkHeader(data []byte) (*wasmbin.Reader, error) {
	is := func(words string) error { return fmt.Errorf("%w: %s", ErrNotModule, words) }
	r := wasmbin.New(data, len(data))
	r.Pos = len(magic) + len(moduleVersion)
	text := bytes.ToLower(bytes.TrimSpace(data[:min(len(data), 512)]))
	switch {
	case len(data) == 0:
		return nil, is("the file is empty")
	case bytes.HasPrefix(data, magic) && len(data) < 8:
		return nil, is("it ends within the header: copy the file again")
	case component.IsComponent(data):
		return r, nil
	case bytes.HasPrefix(data, magic) && !bytes.Equal(data[4:8], moduleVersion):
		return nil, is(fmt.Sprintf("its binary format version is %x, hako reads version 1", data[4:8]))
	case bytes.HasPrefix(data, magic):
		return r, nil
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
