package sandbox

import (
	"fmt"
	"iter"
	"unsafe"

	"golang.org/x/sys/unix"
)

// region is a range of addresses, reserved as a whole, of which a growing part from the start is memory. It is outside of Go's heap,
// so guests' memories do not weigh on the garbage collector.
//
// A region may lie over an image: its pages are then the image's until the guest writes to them, when the kernel makes a private
// copy. Putting the region back means to find the private pages and to copy the image over them. They stay private, because
// a guest mostly writes to the same pages again, and a page given back costs a fault each time.
type region struct {
	reserved []byte
	private
}

// reserve makes a region of at most limit bytes.
func reserve(limit uint64) (region, error) {
	reserved, err := unix.Mmap(-1, 0, int(limit), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return region{}, fmt.Errorf("reserve %s of address space: %w", bytesText(int64(limit)), err)
	}
	_ = unix.Madvise(reserved, unix.MADV_NOHUGEPAGE) // a kernel without huge pages refuses; one write to such a page would cost 2 MiB
	return region{reserved: reserved}, nil
}

// extend turns the bytes between from and to into memory.
func (r *region) extend(from, to uint64) error {
	if to <= from {
		return nil
	}
	return unix.Mprotect(r.reserved[from:to], unix.PROT_READ|unix.PROT_WRITE)
}

// retract turns memory back into mere addresses. Extended again, it is zero.
func (r *region) retract(from, to uint64) error {
	if err := unix.Madvise(r.reserved[from:to], unix.MADV_DONTNEED); err != nil {
		return err
	}
	return unix.Mprotect(r.reserved[from:to], unix.PROT_NONE)
}

func (r *region) bytes(size uint64) []byte { return r.reserved[:size:size] }

func (r *region) release() {
	if r.reserved != nil {
		_ = unix.Munmap(r.reserved) // the addresses are a mapping of ours
		r.reserved = nil
	}
}

// imageMemory is the memory of an image: a file in memory that regions map.
type imageMemory struct {
	extents
	fd   int
	data []byte
}

// newImageMemory makes a memory of size bytes that is zero but for the parts, each with its offset.
func newImageMemory(size int, parts iter.Seq2[int, []byte]) (*imageMemory, error) {
	fd, err := unix.MemfdCreate("hako-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make the image: %w", err)
	}
	image, err := fillImage(fd, size, parts)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make the image: %w", err)
	}
	return image, nil
}

func fillImage(fd, size int, parts iter.Seq2[int, []byte]) (*imageMemory, error) {
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, err
	}
	var image imageMemory
	for offset, part := range parts {
		image.note(offset, len(part))
		for written := 0; written < len(part); {
			n, err := unix.Pwrite(fd, part[written:], int64(offset+written))
			if err != nil {
				return nil, err
			}
			written += n
		}
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, err
	}
	var err error
	image.fd = fd
	image.data, err = unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return &image, err
}

func (i *imageMemory) close() error {
	if err := unix.Munmap(i.data); err != nil {
		return err
	}
	return unix.Close(i.fd)
}

// overlay lays the region over the image: from now on its bytes are the image's.
func (r *region) overlay(image *imageMemory) error {
	_, err := unix.MmapPtr(image.fd, 0, unsafe.Pointer(unsafe.SliceData(r.reserved)), uintptr(len(image.data)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("map the image: %w", err)
	}
	return nil
}
