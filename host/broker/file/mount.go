// Package file gives guests the directories that an operator granted, as file systems for WASI preopens.
//
// wazero's own directory mounts join strings and follow symbolic links out of the directory. Here every path is walked one
// element at a time on os.Root, each directory held open while its entry is looked at, so no "..", absolute path, link or
// rename at the wrong moment leads outside. On top of that a mount knows read-only, deny globs, a size quota and a limit on
// open files.
//
// What a guest may do with what the operator left in the directory:
//
//   - Only regular files and directories can be opened. Devices, pipes and sockets are refused without touching them.
//   - Symbolic links that stay inside can be read through and removed. Nothing is written through one, and guests
//     create neither symbolic nor hard links.
//   - A file with a second hard link or an executable bit cannot be written in place: the other name may lie outside, and
//     what a guest wrote must not become executable. Putting a new file in its place is allowed.
//   - Files are created with mode 0644 and directories with 0755, less the umask. Modes cannot be changed, but a file that
//     replaces another is readable and writable by no more people than that was.
package file

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/grant"
)

// Options configures a Mount. A nil *Options means all defaults.
type Options struct {
	// Remeasure is how old the measure of a directory with a quota may be before a growing file starts a new one in the
	// background, so that what others add or remove counts. Zero means 1m.
	Remeasure time.Duration
}

// Mount is one granted directory. It is safe for concurrent use by any number of guests.
type Mount struct {
	name  string
	write bool
	root  *os.Root
	deny  globs
	quota quota
	seed  maphash.Seed
	close func() error
}

// New opens the directory of a grant. Close gives it up.
//
// It fails if the path is missing or no directory, if the mount has no name, if the quota is negative, or if a deny glob is
// malformed. Below a writable mount with a quota, a goroutine starts to measure what the files hold; guests that write
// before it has finished wait for it. All mounts of the same directory in this process share that measure.
func New(m grant.Mount, opts *Options) (*Mount, error) {
	deny, err := parseGlobs(m.Deny)
	switch {
	case err != nil:
		return nil, fmt.Errorf("mount %q: %w", m.Name, err)
	case m.Name == "":
		return nil, fmt.Errorf("mount of %s: it needs a name", m.Path)
	case m.Quota < 0:
		return nil, fmt.Errorf("mount %q: quota %d is negative: use 0 for no quota", m.Name, m.Quota)
	}
	root, err := os.OpenRoot(m.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("mount %q: %w: create the directory or map the mount to another one", m.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("mount %q: %w", m.Name, err)
	}
	quota, err := newQuota(m, root, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mount %q: %w", m.Name, err), root.Close())
	}
	return &Mount{
		name: m.Name, write: m.Write, root: root, deny: deny, quota: quota, seed: maphash.MakeSeed(),
		close: sync.OnceValue(func() error {
			quota.close()
			return root.Close()
		}),
	}, nil
}

// GuestPath is the directory that a guest sees: "/" and the mount's name.
func (m *Mount) GuestPath() string { return "/" + m.name }

// FS returns the mount as one guest instance sees it. What the guest opens is counted and closed by h, which the instance's
// other mounts share; the result is an io.Closer that ends h. Like h it belongs to one guest, and it must not outlive the
// mount.
func (m *Mount) FS(h *Handles) sys.FS { return &guestFS{m: m, h: h} }

// Close gives the directory up and waits for a measurement under way. Files that guests still have open stay usable until
// their Handles end. It may be called twice.
func (m *Mount) Close() error { return m.close() }
