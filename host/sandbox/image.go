package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/hako-run/hako/host/limit"
)

// image is the state of an instance right after its start. Further instances are created from it.
type image struct {
	memory  *imageMemory
	globals []uint64
	// capturedAt is the guest's monotonic clock at capture. Guests created from the image must not see an earlier time.
	capturedAt int64
}

// weight is the memory of the image, in bytes.
func (image *image) weight() int64 { return int64(image.memory.resident) }

// capture makes the image of an instance that has just started, and maps it into the instance's memory.
func capture(i *instance, now int64) (*image, error) {
	data := i.memory.bytes(i.memory.size)
	memory, err := newImageMemory(len(data), written(data))
	if err != nil {
		return nil, err
	}
	image := &image{memory: memory, capturedAt: now}
	for _, global := range i.globals {
		image.globals = append(image.globals, global.Get())
	}
	if err := i.memory.mapImage(memory); err != nil {
		return nil, errors.Join(err, memory.close())
	}
	return image, nil
}

// initialize gives a new instance that has not started the state of the image.
func (image *image) initialize(i *instance) error {
	size := uint64(len(image.memory.data))
	if size < i.memory.size {
		return fmt.Errorf("the image has %s of memory and the module %s",
			limit.Bytes(int64(size)), limit.Bytes(int64(i.memory.size)))
	}
	missing := uint32((size - i.memory.size) / page)
	if _, ok := i.module.Memory().Grow(missing); !ok {
		return fmt.Errorf("grow the memory by %d pages to that of the image", missing)
	}
	image.setGlobals(i)
	return i.memory.mapImage(image.memory)
}

// restore resets an instance to the image. It reports false if a trace of the call would remain: open files, changed
// descriptors, or grown memory that cannot be shrunk.
func (image *image) restore(i *instance) bool {
	if i.files.End() > 0 || i.descriptorsChanged ||
		!i.memory.shrink(i.module.Memory(), uint64(len(image.memory.data))) {
		return false
	}
	i.memory.restore(image.memory, i.memory.committed)
	image.setGlobals(i)
	return true
}

func (image *image) setGlobals(i *instance) {
	for n, global := range i.globals {
		global.Set(image.globals[n])
	}
}

// extent is a range of offsets in a linear memory.
type extent struct{ from, to int }

// extents are the parts of an image that are not zero. Reading the rest would make the kernel allocate it.
type extents struct {
	parts    []extent
	resident int
}

func (e *extents) add(offset, length int) {
	e.parts = append(e.parts, extent{offset, offset + length})
	e.resident += length
}

// imageBlock is the granularity at which zero memory is left out, in bytes.
const imageBlock = 4 << 10

var zeros [imageBlock]byte

// written yields the runs of blocks in data that are not all zero, each with its offset. Most of a guest's memory is
// zero.
func written(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		isZero := func(at int) bool {
			return bytes.Equal(data[at:min(at+imageBlock, len(data))], zeros[:min(imageBlock, len(data)-at)])
		}
		for from := 0; from < len(data); from += imageBlock {
			if isZero(from) {
				continue
			}
			to := from + imageBlock
			for to < len(data) && !isZero(to) {
				to += imageBlock
			}
			to = min(to, len(data))
			if !yield(from, data[from:to]) {
				return
			}
			from = to
		}
	}
}
