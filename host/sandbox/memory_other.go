//go:build !linux

package sandbox

import "iter"

// region is memory on Go's heap, reserved as a whole.
type region struct{ reserved []byte }

// imageMemory is the memory of an image.
type imageMemory struct {
	extents
	data []byte
}

func reserve(limit uint64) (region, error) { return region{make([]byte, limit)}, nil }

func (r *region) extend(_, _ uint64) error { return nil }

func (r *region) retract(from, to uint64) error {
	clear(r.reserved[from:to])
	return nil
}

func (r *region) bytes(size uint64) []byte { return r.reserved[:size:size] }

func (r *region) release() { r.reserved = nil }

// newImageMemory makes a memory of size bytes that is zero but for the parts, each with its offset.
func newImageMemory(size int, parts iter.Seq2[int, []byte]) (*imageMemory, error) {
	image := &imageMemory{data: make([]byte, size)}
	for offset, part := range parts {
		image.note(offset, len(part))
		copy(image.data[offset:], part)
	}
	return image, nil
}

func (i *imageMemory) close() error { return nil }

func (r *region) overlay(image *imageMemory) error {
	copy(r.reserved, image.data)
	return nil
}

func (r *region) begin() {}
func (r *region) end()   {}

// restore makes the first size bytes of the region those of the image again, and zero after its end.
func (r *region) restore(image *imageMemory, size uint64) {
	clear(r.reserved[copy(r.reserved, image.data):size])
}
