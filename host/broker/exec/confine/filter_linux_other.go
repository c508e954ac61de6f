//go:build linux && !amd64

package confine

// oldForbidden are older calls for what forbidden lists, which this processor does not have or hako does not know.
var oldForbidden []uint32

// oldMetadata are older calls for what metadata lists, which this processor does not have or hako does not know.
var oldMetadata []uint32
