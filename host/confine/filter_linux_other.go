//go:build linux && !amd64

package confine

// oldForbidden are older variants of forbidden; there are none on this processor.
var oldForbidden []uint32

// oldMetadata are older variants of metadata; there are none on this processor.
var oldMetadata []uint32
