package rewrite

import (
	"slices"

	"github.com/hako-run/hako/host/wasm/wasmbin"
)

// nameSection is the custom section of the core specification, appendix A, with the names of a module and its
// functions.
const nameSection = "name"

// Subsections of the name section.
const (
	moduleName    = 0
	functionNames = 1
)

// Named returns a module, which has no name section, with a name for itself. The runtime shows it in stack traces.
func Named(module []byte, name string) []byte {
	text := wasmbin.AppendName(nil, name)
	body := wasmbin.AppendName(nil, nameSection)
	body = wasmbin.AppendUint(append(body, moduleName), len(text))
	return wasmbin.AppendSection(slices.Clone(module), wasmbin.CustomSection, append(body, text...))
}

// FunctionNames returns the names of the functions with these indexes in a module that Module has not rewritten, as far
// as its name section has them. They are untrusted: any bytes, of any length. It allocates nothing besides the result,
// whatever the size of the section.
func FunctionNames(module []byte, functions []uint32) map[uint32]string {
	names := map[uint32]string{}
	ignoreErrors(func() {
		newReader(module).Module(func(s wasmbin.Section) {
			if s.Name != nameSection {
				return
			}
			for body := s.Content; !body.Done(); {
				id, list := body.Byte(), body.Section()
				if id != functionNames {
					continue
				}
				for range list.Uint32() {
					index, name := list.Uint32(), list.Bytes()
					if slices.Contains(functions, index) && index <= maxFunctions+maxImports {
						names[index] = string(name)
					}
				}
			}
		})
	})
	return names
}

// ignoreErrors calls a function that reads as much as it can.
func ignoreErrors(read func()) {
	var err error
	defer wasmbin.Catch(&err)
	read()
}

// Original returns the index in the original module of a function that has this index in the rewritten one. Rewritten
// is the opposite. The function must not be imported.
func Original(function uint32) uint32  { return function - 1 }
func Rewritten(function uint32) uint32 { return function + 1 }
