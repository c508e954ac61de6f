package file

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Handles are the files and directories that one guest instance has open, over all its mounts.
//
// Between Begin and End lies one call. Like the guest, they belong to one goroutine at a time.
type Handles struct {
	limit  int
	ctx    context.Context         // of the call under way
	charge func(steps int64) error // for it; nil: nothing is charged
	open   map[handle]struct{}
	roots  []*openDir // the preopened directories
	beyond wasiErrno
}

// handle is what the guest has open.
type handle interface{ release() error }

// NewHandles returns handles of which at most limit are open at once; zero means 64. One more fails with EMFILE. The
// preopened directories themselves do not count.
func NewHandles(limit int) *Handles {
	return &Handles{
		limit: cmp.Or(limit, 64),
		ctx:   context.Background(),
		open:  map[handle]struct{}{},
	}
}

// Begin starts a call. What its operations cost is charged, in the steps of package broker; when ctx has ended or charge fails, operations
// fail too. A nil charge takes nothing.
func (h *Handles) Begin(ctx context.Context, charge func(steps int64) error) {
	h.ctx, h.charge = ctx, charge
}

// spend charges for work that comes next. An error says that the call is over.
func (h *Handles) spend(steps int64) error {
	if h.charge != nil {
		if err := h.charge(steps); err != nil {
			return err
		}
	}
	return h.ctx.Err()
}

// End ends a call: it closes what the guest left open and returns how many that were. The preopened directories stay usable
// for the next call.
func (h *Handles) End() int {
	left := len(h.open)
	for o := range h.open {
		_ = o.release() // The guest can no longer be told.
	}
	for _, d := range h.roots {
		_ = d.release()
	}
	clear(h.open)
	h.ctx, h.charge, h.beyond = context.Background(), nil, 0
	return left
}

// Errno returns the WASI errno of the last operation that failed, if wazero has no name for it, and 0 otherwise. EDQUOT,
// EMFILE, ENOSPC and a few others are like this: from wazero alone a guest gets EIO (29), which a wrapper around the WASI
// functions may replace by this number.
func (h *Handles) Errno() uint32 { return uint32(h.beyond) }

// remove reports whether o was still open, so that it is released once.
func (h *Handles) remove(o handle) bool {
	_, ok := h.open[o]
	delete(h.open, o)
	return ok
}

// errno is what the guest gets for err. No text and so no host path reaches it.
func (h *Handles) errno(err error) (code sys.Errno) {
	if err != nil {
		code, h.beyond = toErrno(err)
	}
	return code
}

// toErrno finds the number for err, or sys.EIO and the one that only WASI knows.
func toErrno(err error) (sys.Errno, wasiErrno) {
	var beyond wasiErrno
	var code sys.Errno
	switch {
	case errors.Is(err, io.EOF):
		return 0, 0
	case errors.As(err, &beyond):
		return sys.EIO, beyond
	case errors.As(err, &code):
		return code, 0
	}
	return hostErrno(err)
}
