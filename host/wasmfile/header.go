package wasmfile

import (
	"bytes"
	"fmt"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// maxEntries bounds the entries of a section, and so the memory that a hostile module takes.
const maxEntries = 500_000

// magic starts core modules and components, of all versions.
var magic = []byte(wasmbin.Header[:4])

// eachSection calls visit with every section of a core module or a component. The error is that of checkHeader, of a
// malformed section or of visit's reads.
func eachSection(wasm []byte, visit func(wasmbin.Section)) (err error) {
	if err := checkHeader(wasm); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		kind := "module"
		if component.IsComponent(wasm) {
			kind = "component"
		}
		err = fmt.Errorf("malformed %s: %w", kind, err)
	}()
	defer wasmbin.Catch(&err)
	r := wasmbin.New(wasm, len(wasm))
	r.Next(len(wasmbin.Header))
	r.Sections(visit)
	return nil
}

// checkHeader returns an error that says what the bytes are if they are neither a core module nor a component.
func checkHeader(data []byte) error {
	is := func(words string) error { return fmt.Errorf("%w: %s", ErrNotModule, words) }
	text := bytes.ToLower(bytes.TrimSpace(data[:min(len(data), 512)]))
	switch {
	case len(data) == 0:
		return is("the file is empty")
	case bytes.HasPrefix(data, magic) && len(data) < 8:
		return is("it ends within the header: copy the file again")
	case component.IsComponent(data):
		return nil
	case bytes.HasPrefix(data, magic) && string(data[4:8]) != wasmbin.Header[4:]:
		return is(fmt.Sprintf("its binary format version is %x, hako reads version 1", data[4:8]))
	case bytes.HasPrefix(data, magic):
		return nil
	case bytes.HasPrefix(text, []byte("(module")) || bytes.HasPrefix(text, []byte(";;")) ||
		bytes.HasPrefix(text, []byte("(component")):
		return is("it is the text format: convert it with wat2wasm")
	case bytes.HasPrefix(text, []byte("<!doctype")) || bytes.HasPrefix(text, []byte("<html")):
		return is("it is an HTML page: download the file itself")
	case bytes.HasPrefix(data, []byte{0x1F, 0x8B}):
		return is("it is compressed with gzip: unpack it first")
	case bytes.HasPrefix(data, []byte("\x28\xB5\x2F\xFD")):
		return is("it is compressed with zstd: unpack it first")
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return is("it is a zip archive: unpack it first")
	case bytes.HasPrefix(data, []byte("\x7FELF")) || bytes.HasPrefix(data, []byte("MZ")) ||
		bytes.HasPrefix(data, []byte{0xCF, 0xFA, 0xED, 0xFE}):
		return is("it is a native program: build it for Wasm (GOOS=wasip1 GOARCH=wasm)")
	}
	return is(`it does not start with "\0asm"`)
}
