package sandbox

import (
	"fmt"
	"iter"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/host/limit"
)

// region is a reserved range of addresses whose beginning is committed. It lies outside of Go's heap, so guests'
// memories add no work to the garbage collector.
//
// A region may map an image copy-on-write: a page stays the image's until the guest writes to it, and the kernel then
// makes a private copy. restore finds the private pages and copies the image over them. They stay private: guests
// mostly write to the same pages again, and each discarded page would cost a fault.
type region struct {
	reserved []byte
	privatePages
}

// reserve reserves a region of size bytes.
func reserve(size uint64) (region, error) {
	reserved, err := unix.Mmap(-1, 0, int(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return region{}, fmt.Errorf("reserve %s of address space: %w", limit.Bytes(int64(size)), err)
	}
	// A kernel without huge pages refuses; one write to such a page would cost 2 MiB.
	_ = unix.Madvise(reserved, unix.MADV_NOHUGEPAGE)
	return region{reserved: reserved}, nil
}

// commit makes the bytes between from and to accessible.
func (r *region) commit(from, to uint64) error {
	if to <= from {
		return nil
	}
	return unix.Mprotect(r.reserved[from:to], unix.PROT_READ|unix.PROT_WRITE)
}

// decommit frees committed memory. Committed again, it is zero.
func (r *region) decommit(from, to uint64) error {
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

// imageMemory is the memory of an image: a sealed memfd that regions map.
type imageMemory struct {
	extents
	fd   int
	data []byte
}

// newImageMemory creates a memory of size bytes that contains the parts, each at its offset, and is otherwise zero.
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
		image.add(offset, len(part))
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
	if size > 0 {
		image.data, err = unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	}
	return &image, err
}

func (i *imageMemory) close() error {
	if len(i.data) > 0 {
		if err := unix.Munmap(i.data); err != nil {
			return err
		}
	}
	return unix.Close(i.fd)
}

// mapImage maps the image copy-on-write at the start of the region.
func (r *region) mapImage(image *imageMemory) error {
	if len(image.data) == 0 {
		return nil
	}
	_, err := unix.MmapPtr(image.fd, 0, unsafe.Pointer(unsafe.SliceData(r.reserved)), uintptr(len(image.data)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("map the image: %w", err)
	}
	return nil
}
