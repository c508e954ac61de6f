//go:build linux && !amd64

package confine

// oldMetadata are older calls for what metadata lists, which this processor does not have or hako does not know.
var oldMetadata []uint32
