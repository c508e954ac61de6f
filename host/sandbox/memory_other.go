//go:build !linux

package sandbox

import "iter"

// region is memory on Go's heap, allocated as a whole.
type region struct{ reserved []byte }

// imageMemory is the memory of an image.
type imageMemory struct {
	extents
	data []byte
}

func reserve(size uint64) (region, error) { return region{make([]byte, size)}, nil }

func (r *region) commit(_, _ uint64) error { return nil }

func (r *region) decommit(from, to uint64) error {
	clear(r.reserved[from:to])
	return nil
}

func (r *region) bytes(size uint64) []byte { return r.reserved[:size:size] }

func (r *region) release() { r.reserved = nil }

// newImageMemory creates a memory of size bytes that contains the parts, each at its offset, and is otherwise zero.
func newImageMemory(size int, parts iter.Seq2[int, []byte]) (*imageMemory, error) {
	image := &imageMemory{data: make([]byte, size)}
	for offset, part := range parts {
		image.add(offset, len(part))
		copy(image.data[offset:], part)
	}
	return image, nil
}

func (i *imageMemory) close() error { return nil }

func (r *region) mapImage(image *imageMemory) error {
	copy(r.reserved, image.data)
	return nil
}

func (r *region) markFaulted() {}

// faultWatch does nothing: restore copies whole images.
type faultWatch struct{}

func (*faultWatch) begin()        {}
func (*faultWatch) faulted() bool { return false }

// restore copies the image into the first size bytes of the region and clears the rest of them.
func (r *region) restore(image *imageMemory, size uint64) {
	clear(r.reserved[copy(r.reserved, image.data):size])
}
