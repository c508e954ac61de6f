package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/wasm/link"
)

// image is the state of an instance right after its start. Further instances are created from it.
type image struct {
	// memories and globals are those of all modules, in the order of instantiation.
	memories []*imageMemory
	globals  []uint64
	// linked is nil for a core plugin.
	linked *link.Snapshot
	// capturedAt is the guest's monotonic clock at capture. Guests created from the image must not see an earlier time.
	capturedAt int64
}

// weight is the memory of the image, in bytes.
func (image *image) weight() (total int64) {
	for _, memory := range image.memories {
		total += int64(memory.resident)
	}
	return total
}

// size is the size of the memories, in bytes.
func (image *image) size() (total int64) {
	for _, memory := range image.memories {
		total += int64(len(memory.data))
	}
	return total
}

func (image *image) close() error {
	var err error
	for _, memory := range image.memories {
		err = errors.Join(err, memory.close())
	}
	return err
}

// capture makes the image of an instance that has just started, and maps it into the instance's memories.
func capture(i *instance, now int64) (*image, error) {
	image := &image{capturedAt: now}
	if i.linked != nil {
		image.linked = i.linked.Snapshot()
	}
	for _, core := range i.cores {
		for _, global := range core.globals {
			image.globals = append(image.globals, global.Get())
		}
	}
	for _, m := range i.memories.list {
		data := m.bytes(m.size)
		memory, err := newImageMemory(len(data), nonZeroRuns(data))
		if err != nil {
			return nil, errors.Join(err, image.close())
		}
		image.memories = append(image.memories, memory)
		if err := m.mapImage(memory); err != nil {
			return nil, errors.Join(err, image.close())
		}
	}
	return image, nil
}

// initialize gives a new instance that has not started the state of the image.
func (image *image) initialize(i *instance) error {
	if len(image.memories) != len(i.memories.list) {
		return fmt.Errorf("the image has %d memories and the plugin %d", len(image.memories), len(i.memories.list))
	}
	for n, m := range i.memories.list {
		size := uint64(len(image.memories[n].data))
		if size < m.size {
			return fmt.Errorf("the image has %s of memory and the module %s",
				limit.Bytes(int64(size)), limit.Bytes(int64(m.size)))
		}
		missing := uint32((size - m.size) / page)
		if _, ok := m.memory.Grow(missing); !ok {
			return fmt.Errorf("grow the memory by %d pages to that of the image", missing)
		}
		if err := m.mapImage(image.memories[n]); err != nil {
			return err
		}
	}
	image.setState(i)
	return nil
}

// restore resets an instance to the image. It reports false if a trace of the call would remain: open files, changed
// descriptors, or grown memory that cannot be shrunk.
func (image *image) restore(i *instance) bool {
	if i.files.End() > 0 || i.descriptorsChanged {
		return false
	}
	for n, m := range i.memories.list {
		memory := image.memories[n]
		if !m.shrink(uint64(len(memory.data))) {
			return false
		}
		m.restore(memory, m.committed)
	}
	image.setState(i)
	return true
}

// setState sets everything but the memories.
func (image *image) setState(i *instance) {
	if i.linked != nil {
		i.linked.Restore(image.linked)
	}
	n := 0
	for _, core := range i.cores {
		for _, global := range core.globals {
			global.Set(image.globals[n])
			n++
		}
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

// nonZeroRuns yields the runs of blocks in data that are not all zero, each with its offset. Most of a guest's memory
// is zero.
func nonZeroRuns(data []byte) iter.Seq2[int, []byte] {
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
