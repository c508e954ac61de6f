package rewrite

import (
	"crypto/sha256"
	"slices"
)

// stubSection names the custom section of a stub that has the digest of its module.
const stubSection = "hako:module"

// stubBody is the size and the body of a function without locals: unreachable, end.
var stubBody = []byte{3, 0, opUnreachable, opEnd}

// Stub returns a module that differs from the given one only in that its functions trap, whatever their type, and that
// its Segments are empty or absent. It holds the SHA-256 of the module, so that stubs of modules with different code
// differ. It is for runtimes that have compiled the module before and need the rest of it. Custom sections are dropped.
func Stub(module []byte) ([]byte, error) {
	sections, err := splitSections(module)
	if err != nil {
		return nil, err
	}
	if code, ok := sections[sectionCode]; ok {
		r := &reader{data: code}
		count := r.uint()
		if r.err == nil && count > uint64(len(r.rest())) { // a body has at least its size
			r.fail(errTruncated)
		}
		if r.err != nil {
			return nil, r.err
		}
		sections[sectionCode] = append(appendUint(nil, count), slices.Repeat(stubBody, int(count))...)
	}
	if data, _ := splitData(sections); data != nil {
		sections[sectionData] = data
	}
	digest := sha256.Sum256(module)
	custom := append(appendName(nil, stubSection), digest[:]...)
	stub := appendSection(appendSections(slices.Clone(magic), sections), sectionCustom, custom)
	return stub, nil
}
