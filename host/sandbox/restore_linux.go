package sandbox

import (
	"bytes"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// privatePages caches which pages of a region differ from the image's mapping because the guest wrote to them.
type privatePages struct {
	// runs are the ranges that were private at the last scan, count is their number of pages. known is false before the
	// first scan.
	runs  []extent
	count int
	known bool
	// rescan is set after a call with page faults, which may have made pages private.
	rescan bool
	// restored counts calls of restore.
	restored int
}

func (r *region) markFaulted() { r.rescan = true }

// faultWatch reports whether a call caused page faults. Without one, no page has become private.
type faultWatch struct{ before int64 }

func (w *faultWatch) begin() { w.before = pageFaults() }

// faulted reports whether there was a page fault in this process since begin, or that it is unknown.
func (w *faultWatch) faulted() bool {
	faults := pageFaults()
	return faults < 0 || faults != w.before
}

// restore copies the image into the first size bytes of the region and clears the rest of them.
//
// The kernel walks over all pages to find the private ones, so it is asked only if a page fault occurred during a call.
func (r *region) restore(image *imageMemory, size uint64) {
	own := r.reserved[:size]
	if !r.known || r.rescan {
		r.scan(own)
	}
	if !r.known {
		n := copy(own, image.data)
		if !r.discardPrivatePages(own[n:]) {
			clear(own[n:])
		}
		return
	}
	if r.restored++; r.restored%discardInterval == 0 && r.count > discardSlack+4*r.countChanged(image.data) &&
		r.discardPrivatePages(own) {
		return
	}
	for _, run := range r.runs {
		copyImage(own[run.from:run.to], image.data, run.from)
	}
}

// A page that became private costs time in every later restoration. In every discardInterval-th one the pages are
// compared with the image: if fewer than a fourth differ, allowing for discardSlack, all are discarded, and later calls
// fault in what they need.
const (
	discardInterval = 32
	discardSlack    = 64
)

// copyImage copies the image from offset on into pages and clears their rest.
func copyImage(pages, image []byte, offset int) {
	n := 0
	if offset < len(image) {
		n = copy(pages, image[offset:])
	}
	clear(pages[n:])
}

// countChanged counts the private pages that differ from the image.
func (r *region) countChanged(image []byte) (pages int) {
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

// discardPrivatePages makes the pages the image's again, or zero beyond it. It reports false if the kernel refuses, as
// it does for locked memory.
func (r *region) discardPrivatePages(pages []byte) bool {
	if unix.Madvise(pages, unix.MADV_DONTNEED) != nil {
		return false
	}
	r.privatePages = privatePages{restored: r.restored}
	return true
}

// scan finds the private pages of own. It leaves known false if the kernel cannot report them (before Linux 6.7, or
// without /proc).
func (r *region) scan(own []byte) {
	r.known, r.rescan, r.runs, r.count = false, false, r.runs[:0], 0
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
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pagemap), pagemapScanRequest,
			uintptr(unsafe.Pointer(&scan.argument)))
		if errno != 0 {
			return
		}
		for _, found := range scan.found[:n] {
			r.runs = append(r.runs, extent{int(found.start - base), int(found.end - base)})
			r.count += int(found.end-found.start) / imageBlock
		}
		scan.argument.start = scan.argument.walkEnd
	}
	r.known = true
}

// pageFaults returns the process's number of page faults, or -1.
func pageFaults() int64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return -1
	}
	return int64(usage.Minflt) + int64(usage.Majflt)
}

// pageScan holds the arguments and results of a scan. It is allocated on the heap, where its address does not change.
type pageScan struct {
	argument pagemapScan
	found    [256]pageRegion
}

var scans = sync.Pool{New: func() any { return new(pageScan) }}

// The PAGEMAP_SCAN ioctl of Linux 6.7; see Documentation/admin-guide/mm/pagemap.rst.
const (
	pagemapScanRequest = 0xc0606610
	pageIsFile         = 1 << 2
	pageIsPresent      = 1 << 3
	pageIsSwapped      = 1 << 4
)

// pageRegion is a run of pages that a scan found.
type pageRegion struct {
	start, end uint64
	_          uint64 // categories
}

type pagemapScan struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages   uint64
	categoryInverted, categoryMask, categoryAnyOf, returnMask uint64
}

// openPagemap opens this process's page map once and returns the descriptor, or -1.
var openPagemap = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})
