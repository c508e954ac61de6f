package sandbox

import (
	"bytes"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// private is what is known of a region's pages that are no longer the image's.
type private struct {
	// runs are the ranges of offsets whose pages were private at the last scan, pages is how many. known says that there was one.
	runs  []extent
	pages int
	known bool
	// faults is how many page faults the process had had when the call began. Without another one until it ended no page has become
	// private; stale says that there was one, or that nobody knows.
	faults int64
	stale  bool
	// restored counts restorations.
	restored int
}

// begin is told before a call.
func (r *region) begin() { r.faults = pageFaults() }

// end is told right after a call: what the host does with the answer has page faults of its own.
func (r *region) end() {
	faults := pageFaults()
	r.stale = r.stale || faults < 0 || faults != r.faults
}

// restore makes the first size bytes of the region those of the image again, and zero after its end.
//
// The kernel knows which pages are private, but walks over all to tell. So it is asked only if there was a page fault during a call.
func (r *region) restore(image *imageMemory, size uint64) {
	own := r.reserved[:size]
	if !r.known || r.stale {
		r.scan(own)
	}
	if !r.known {
		n := copy(own, image.data)
		if !r.drop(own[n:]) {
			clear(own[n:])
		}
		return
	}
	if r.restored++; r.restored%surplusInterval == 0 && r.pages > surplusPages+4*r.changed(image.data) && r.drop(own) {
		return
	}
	for _, run := range r.runs {
		putBack(own[run.from:run.to], image.data, run.from)
	}
}

// What a call has made private stays so, and costs time in each restoration from then on. In each surplusInterval-th the pages are
// looked at: if less than a fourth of them has changed, a few aside, all are given back, and the next calls fault in what they need.
const (
	surplusInterval = 32
	surplusPages    = 64
)

// putBack makes pages those of the image from an offset on again, and zero after its end.
func putBack(pages, image []byte, offset int) {
	n := 0
	if offset < len(image) {
		n = copy(pages, image[offset:])
	}
	clear(pages[n:])
}

// changed counts the private pages that differ from the image.
func (r *region) changed(image []byte) (pages int) {
	for _, run := range r.runs {
		for at := run.from; at < run.to; at += imageBlock {
			want := zeros[:]
			if at < len(image) {
				want = image[at : at+imageBlock]
			}
			if !bytes.Equal(r.reserved[at:at+imageBlock], want) {
				pages++
			}
		}
	}
	return pages
}

// drop gives the private pages among these back: they are the image's then, or zero after its end. The kernel refuses if this process
// locks its memory.
func (r *region) drop(pages []byte) bool {
	if unix.Madvise(pages, unix.MADV_DONTNEED) != nil {
		return false
	}
	r.private = private{restored: r.restored}
	return true
}

// scan finds the private pages of own. It leaves known false if the kernel cannot tell which they are (before Linux 6.7, or without
// /proc).
func (r *region) scan(own []byte) {
	r.known, r.stale, r.runs, r.pages = false, false, r.runs[:0], 0
	pagemap := openPagemap()
	if pagemap < 0 {
		return
	}
	scan := scans.Get().(*pageScan)
	defer scans.Put(scan)
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(own))))
	scan.argument = pagemapScan{
		size: uint64(unsafe.Sizeof(pagemapScan{})), start: base, end: base + uint64(len(own)),
		vec: uint64(uintptr(unsafe.Pointer(&scan.found))), vecLen: uint64(len(scan.found)),
		categoryInverted: pageIsFile, categoryMask: pageIsFile, returnMask: pageIsFile,
		categoryAnyOf: pageIsPresent | pageIsSwapped,
	}
	for scan.argument.start < scan.argument.end {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pagemap), pagemapScanRequest, uintptr(unsafe.Pointer(&scan.argument)))
		if errno != 0 {
			return
		}
		for _, found := range scan.found[:n] {
			r.runs = append(r.runs, extent{int(found.start - base), int(found.end - base)})
			r.pages += int(found.end-found.start) / imageBlock
		}
		scan.argument.start = scan.argument.walkEnd
	}
	r.known = true
}

// pageFaults is how many page faults there have been in this process.
func pageFaults() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return -1
	}
	return int64(usage.Minflt) + int64(usage.Majflt)
}

// pageScan is what one scan needs. It lives on the heap, where its address does not change.
type pageScan struct {
	argument pagemapScan
	found    [256]pageRegion
}

var scans = sync.Pool{New: func() any { return new(pageScan) }}

// The PAGEMAP_SCAN request of Linux 6.7; Documentation/admin-guide/mm/pagemap.rst.
const (
	pagemapScanRequest = 0xc0606610
	pageIsFile         = 1 << 2
	pageIsPresent      = 1 << 3
	pageIsSwapped      = 1 << 4
)

// pageRegion is a run of pages that a scan found.
type pageRegion struct {
	start, end uint64
	_          uint64 // what it was asked to tell of them
}

type pagemapScan struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages   uint64
	categoryInverted, categoryMask, categoryAnyOf, returnMask uint64
}

// openPagemap returns a descriptor of this process's page map, or -1.
var openPagemap = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})
