package rewrite

import (
	"crypto/sha256"
	"slices"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// stubSection names the custom section of a stub that has the digest of its module.
const stubSection = "hako:module"

// stubBody is the size and the body of a function without locals: unreachable, end.
var stubBody = []byte{3, 0, opUnreachable, opEnd}

// Stub returns a module that differs from the given one only in that its functions trap, whatever their type, and that
// its Segments are empty or absent. It holds the SHA-256 of the module, so that stubs of modules with different code
// differ. It is for runtimes that have compiled the module before and need the rest of it. Custom sections are dropped.
func Stub(module []byte) (stub []byte, err error) {
	defer wasmbin.Catch(&err)
	sections := readSections(module)
	if _, ok := sections[wasmbin.CodeSection]; ok {
		_, count := entries(sections, wasmbin.CodeSection)
		sections[wasmbin.CodeSection] = append(wasmbin.AppendUint(nil, count), slices.Repeat(stubBody, count)...)
	}
	if data, _ := splitData(sections); data != nil {
		sections[wasmbin.DataSection] = data
	}
	digest := sha256.Sum256(module)
	custom := append(wasmbin.AppendName(nil, stubSection), digest[:]...)
	stub = appendSections([]byte(wasmbin.Header), sections)
	return wasmbin.AppendSection(stub, wasmbin.CustomSection, custom), nil
}
