package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
)

// image is the state of a plugin's instance after its start, from which others begin.
type image struct {
	memory  *imageMemory
	globals []uint64
	// taken is the guests' monotonic clock when the image was made. What starts from it must not see an earlier time.
	taken int64
}

// weight is what the image takes in memory, in bytes.
func (image *image) weight() int64 { return int64(image.memory.resident) }

// capture makes the image of an instance that has just started, and lays the instance over it.
func capture(i *instance, now int64) (*image, error) {
	data := i.memory.bytes(i.memory.size)
	memory, err := newImageMemory(len(data), written(data))
	if err != nil {
		return nil, err
	}
	image := &image{memory: memory, taken: now}
	for _, global := range i.globals {
		image.globals = append(image.globals, global.Get())
	}
	if err := i.memory.overlay(memory); err != nil {
		return nil, errors.Join(err, memory.close())
	}
	return image, nil
}

// impose makes an instance that has not started what the image shows.
func (image *image) impose(i *instance) error {
	size := uint64(len(image.memory.data))
	if size < i.memory.size {
		return fmt.Errorf("the image has %s of memory and the module %s", bytesText(int64(size)), bytesText(int64(i.memory.size)))
	}
	missing := uint32((size - i.memory.size) / page)
	if _, ok := i.module.Memory().Grow(missing); !ok {
		return fmt.Errorf("grow the memory by %d pages to that of the image", missing)
	}
	image.setGlobals(i)
	return i.memory.overlay(image.memory)
}

// restore puts an instance back. It reports false if something of the call would stay: open files, changed descriptors, or memory
// that cannot be taken back.
func (image *image) restore(i *instance) bool {
	if i.files.End() > 0 || i.spoiled || !i.memory.shrink(i.module.Memory(), uint64(len(image.memory.data))) {
		return false
	}
	i.memory.restore(image.memory, i.memory.open)
	image.setGlobals(i)
	return true
}

func (image *image) setGlobals(i *instance) {
	for n, global := range i.globals {
		global.Set(image.globals[n])
	}
}

// extent is a range of a memory that has been written.
type extent struct{ from, to int }

// extents knows which part of an image is not zero: looking at the rest would make memory of it.
type extents struct {
	parts    []extent
	resident int
}

func (e *extents) note(offset, length int) {
	e.parts = append(e.parts, extent{offset, offset + length})
	e.resident += length
}

// imageBlock is the unit in which memory is written or left out, in bytes.
const imageBlock = 4 << 10

var zeros [imageBlock]byte

// written yields the runs of blocks in data that are not all zero, each with its offset. Most of a guest's memory is zero.
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
