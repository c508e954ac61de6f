// Package file gives guests the directories that an operator granted, as file systems for WASI preopens. New opens a
// Mount for a grant, and Mount.FS returns it for one guest, whose open files Handles counts and closes.
//
// wazero's own directory mounts join strings and follow symbolic links out of the directory. This package walks a path
// one element at a time on os.Root and keeps each directory open while it inspects an entry in it. So no "..", absolute
// path, link or concurrent rename leads outside. A mount also enforces read-only access, deny globs, a size quota and a
// limit on open files.
//
// Rules for the files of a mount:
//
//   - Only regular files and directories can be opened. Devices, pipes and sockets are refused without being opened.
//   - Guests can read through symbolic links that stay inside, and remove links. They cannot write through a link, nor
//     create symbolic or hard links.
//   - A file with a second hard link or an executable bit cannot be written in place: its other name may be outside,
//     and a file written by a guest must not be executable. It can be replaced by a new file.
//   - Files are created with mode 0644 and directories with 0755, less the umask. Guests cannot change modes. A new file
//     that replaces another in the same call takes over its mode, without executable bits, and where the host may set
//     them its owner, group, ACL and user attributes; Handles.Unkept has the others. Any other file that replaces one
//     gets no permission that the other did not have.
//   - A name that no entry has stands for the one that is canonically equivalent to it (Unicode), if there is one: macOS
//     decomposes the letters of names (NFD), and people and models type them composed (NFC).
package file

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"sync"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/hako-run/hako/host/grant"
)

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

// New opens the directory of a grant. The caller closes the Mount.
//
// It fails if the path is missing or no directory, if the mount has no name, if the quota is negative, or if a deny
// glob is malformed. The first write to a mount with a quota starts a goroutine that measures the files' size; writes
// wait for it. All mounts of the same directory in this process share that measurement.
func New(m grant.Mount) (*Mount, error) {
	deny, err := parseGlobs(m.Deny)
	switch {
	case err != nil:
		return nil, fmt.Errorf("mount %q: %w", m.Name, err)
	case m.Name == "":
		return nil, fmt.Errorf("mount of %s: the name is missing", m.Path)
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
	quota, err := newQuota(m, root)
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

// GuestPath returns the path at which guests see the mount: "/" and its name.
func (m *Mount) GuestPath() string { return "/" + m.name }

// Writable reports whether guests may change files.
func (m *Mount) Writable() bool { return m.write }

// FS returns the file system for one guest instance. h counts and closes the files that the guest opens, over all
// mounts of the instance. The result is an io.Closer that ends h. Like h it belongs to one guest, and it must not
// outlive the mount.
func (m *Mount) FS(h *Handles) sys.FS { return &guestFS{m: m, h: h} }

// Close closes the directory and waits for a running measurement to stop. Files that guests still have open stay usable
// until their Handles end. It may be called twice.
func (m *Mount) Close() error { return m.close() }
