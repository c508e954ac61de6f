package file

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Handles tracks the files and directories that one guest instance has open, over all its mounts.
//
// A call starts with Begin and ends with End. Like the instance, Handles belongs to one goroutine at a time.
type Handles struct {
	limit    int
	ctx      context.Context         // of the current call
	charge   func(steps int64) error // of the current call; nil: nothing is charged
	open     map[handle]struct{}
	created  map[fileID]struct{} // files that the guest has created in the current call
	unkept   []Unkept            // of the current call
	roots    []*openDir          // the preopened directories
	wasiOnly wasiErrno
}

// handle is an open file or directory.
type handle interface{ release() error }

// Unkept names what a file lost when the guest replaced it.
type Unkept struct {
	Path       string   // as the guest sees it
	Attributes []string // such as "owner" and "group"
}

// NewHandles returns a Handles with at most limit open at once; zero means 64. Opening one more fails with EMFILE. The
// preopened directories do not count.
func NewHandles(limit int) *Handles {
	return &Handles{
		limit:   cmp.Or(limit, 64),
		ctx:     context.Background(),
		open:    map[handle]struct{}{},
		created: map[fileID]struct{}{},
	}
}

// Begin starts a call. Its operations call charge with their price in steps (package broker), and fail once charge
// fails or ctx ends. With a nil charge they cost nothing.
func (h *Handles) Begin(ctx context.Context, charge func(steps int64) error) {
	h.ctx, h.charge, h.unkept = ctx, charge, nil
	clear(h.created)
}

// spend charges for the work that follows. An error means that the call must stop.
func (h *Handles) spend(steps int64) error {
	if h.charge != nil {
		if err := h.charge(steps); err != nil {
			return err
		}
	}
	return h.ctx.Err()
}

// End ends a call: it closes what the guest left open and returns the number of those handles. The preopened
// directories stay usable for the next call.
func (h *Handles) End() int {
	left := len(h.open)
	for o := range h.open {
		_ = o.release() // The guest cannot get the error any more.
	}
	for _, d := range h.roots {
		_ = d.release()
	}
	clear(h.open)
	clear(h.created)
	h.unkept = nil
	h.ctx, h.charge, h.wasiOnly = context.Background(), nil, 0
	return left
}

// Unkept returns what files have lost that the guest has replaced in the current call, until End or Begin.
func (h *Handles) Unkept() []Unkept { return h.unkept }

// Errno returns the WASI errno of the last failed operation if wazero's sys.Errno lacks it, such as EDQUOT, EMFILE and
// ENOSPC, and 0 otherwise. wazero reports EIO (29) for these; a wrapper around the WASI functions may replace that with
// this number.
func (h *Handles) Errno() uint32 { return uint32(h.wasiOnly) }

// remove forgets o and reports whether it was still open, so that it is released once.
func (h *Handles) remove(o handle) bool {
	_, ok := h.open[o]
	delete(h.open, o)
	return ok
}

// errno returns the errno for the guest. The text of err, which may contain a host path, does not reach it.
func (h *Handles) errno(err error) (code sys.Errno) {
	if err != nil {
		code, h.wasiOnly = toErrno(err)
	}
	return code
}

// toErrno returns wazero's errno for err, or sys.EIO and an errno that wazero lacks.
func toErrno(err error) (sys.Errno, wasiErrno) {
	var wasiOnly wasiErrno
	var code sys.Errno
	switch {
	case errors.Is(err, io.EOF):
		return 0, 0
	case errors.As(err, &wasiOnly):
		return sys.EIO, wasiOnly
	case errors.As(err, &code):
		return code, 0
	}
	return hostErrno(err)
}
