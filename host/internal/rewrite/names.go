package rewrite

import (
	"slices"
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
	text := appendName(nil, name)
	body := appendName(nil, nameSection)
	body = appendUint(append(body, moduleName), uint64(len(text)))
	return appendSection(slices.Clone(module), sectionCustom, append(body, text...))
}

// FunctionNames returns the names of the functions with these indexes in a module that Module has not rewritten, as far
// as its name section has them. They are untrusted: any bytes, of any length. It allocates nothing besides the result,
// whatever the size of the section.
func FunctionNames(module []byte, functions []uint32) map[uint32]string {
	names := map[uint32]string{}
	r := &reader{data: module}
	r.bytes(len(magic))
	for !r.done() {
		id := r.byte()
		body := &reader{data: r.bytes(r.length())}
		if id != sectionCustom || string(body.bytes(body.length())) != nameSection {
			continue
		}
		for !body.done() {
			id := body.byte()
			if list := (&reader{data: body.bytes(body.length())}); id == functionNames {
				for range list.uint() {
					index, name := list.uint(), list.bytes(list.length())
					if list.err != nil {
						break
					}
					if slices.Contains(functions, uint32(index)) && index <= maxFunctions+maxImports {
						names[uint32(index)] = string(name)
					}
				}
			}
		}
	}
	return names
}

// Original returns the index in the original module of a function that has this index in the rewritten one. Rewritten
// is the opposite. The function must not be imported.
func Original(function uint32) uint32  { return function - 1 }
func Rewritten(function uint32) uint32 { return function + 1 }
