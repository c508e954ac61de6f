//go:build !linux

package sandbox

// region is memory on Go's heap, reserved as a whole.
type region struct{ reserved []byte }

// imageMemory is the memory of an image.
type imageMemory struct{ data []byte }

func reserve(limit uint64) (region, error) { return region{make([]byte, limit)}, nil }

func (r *region) extend(_, _ uint64) error { return nil }

func (r *region) retract(from, to uint64) error {
	clear(r.reserved[from:to])
	return nil
}

func (r *region) bytes(size uint64) []byte { return r.reserved[:size:size] }

func (r *region) release() { r.reserved = nil }

func newImageMemory(data []byte) (*imageMemory, error) {
	return &imageMemory{append([]byte(nil), data...)}, nil
}

func (i *imageMemory) close() error { return nil }

func (r *region) overlay(image *imageMemory) error {
	copy(r.reserved, image.data)
	return nil
}

// restore makes the region's bytes those of the image again.
func (r *region) restore(image *imageMemory) { copy(r.reserved, image.data) }
