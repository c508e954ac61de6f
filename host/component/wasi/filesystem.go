package wasi

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/wasm/component"
)

// filesystem is wasi:filesystem on the granted mounts. Package file enforces their rules.
func (h *host) filesystem() []broker.Interface {
	const method = "[method]descriptor."
	sync := func(do func(file.File) file.Errno) broker.InterfaceFunc {
		return func1(func(c caller, d descriptor) any {
			return h.at(c, d, func(n *node) (any, error) { return n.done(do(n.file)) })
		})
	}
	return []broker.Interface{
		wasi("filesystem/preopens", functions{"get-directories": func0(h.directories)}),
		wasi("filesystem/types", functions{
			method + "read-via-stream":     func2(h.readStream),
			method + "write-via-stream":    func2(h.writeStream),
			method + "append-via-stream":   func1(h.appendStream),
			method + "advise":              func1(func(caller, descriptor) any { return component.OK(nil) }),
			method + "sync":                sync(file.File.Sync),
			method + "sync-data":           sync(file.File.Datasync),
			method + "get-flags":           func1(h.getFlags),
			method + "get-type":            func1(h.getType),
			method + "set-size":            func2(h.setSize),
			method + "set-times":           func3(h.setTimes),
			method + "read":                func3(h.readAt),
			method + "write":               func3(h.writeAt),
			method + "read-directory":      func1(h.readDirectory),
			method + "stat":                func1(h.stat),
			method + "stat-at":             func3(h.statAt),
			method + "create-directory-at": func2(h.createDirectoryAt),
			method + "set-times-at":        func5(h.setTimesAt),
			method + "link-at":             func5(h.linkAt),
			method + "symlink-at":          func3(h.symlinkAt),
			method + "open-at":             func5(h.openAt),
			method + "readlink-at":         func2(h.readlinkAt),
			method + "remove-directory-at": func2(h.removeDirectoryAt),
			method + "rename-at":           func4(h.renameAt),
			method + "unlink-file-at":      func2(h.unlinkFileAt),
			method + "is-same-object":      func2(h.isSameObject),
			method + "metadata-hash":       func1(h.metadataHash),
			method + "metadata-hash-at":    func3(h.metadataHashAt),
			"[method]directory-entry-stream.read-directory-entry": func1(h.readDirectoryEntry),
			"filesystem-error-code": func1(func(_ caller, e *ioError) any {
				return e.file
			}),
		}),
	}
}

// fileCodes are the cases of wasi:filesystem/types.error-code.
var fileCodes = []string{
	"access", "would-block", "already", "bad-descriptor", "busy", "deadlock", "quota", "exist", "file-too-large",
	"illegal-byte-sequence", "in-progress", "interrupted", "invalid", "io", "is-directory", "loop", "too-many-links",
	"message-size", "name-too-long", "no-device", "no-entry", "no-lock", "insufficient-memory", "insufficient-space",
	"not-directory", "not-empty", "not-recoverable", "unsupported", "no-tty", "no-such-device", "overflow",
	"not-permitted", "pipe", "read-only", "invalid-seek", "text-file-busy", "cross-device",
}

// fileCode returns the error-code of a fileError.
func fileCode(err error) component.Case {
	return component.Case{Number: uint32(slices.Index(fileCodes, err.Error()))}
}

// Flags of descriptors, paths and open-at.
const (
	flagRead       = 1 << 0
	flagWrite      = 1 << 1
	flagsSync      = 1<<2 | 1<<3 | 1<<4
	flagMutate     = 1 << 5
	followSymlinks = 1 << 0
	openCreate     = 1 << 0
	openDirectory  = 1 << 1
	openExclusive  = 1 << 2
	openTruncate   = 1 << 3
)

// files are the files that one call has open.
type files struct {
	host *host
	// ctx is the context of the current operation.
	ctx     context.Context
	handles *file.Handles
	// roots are the preopened directories: the mounts, and "/", which lists them.
	roots []*node
	ended bool
}

// filesKey is the key of the files in the call's state.
type filesKey struct{ host *host }

func (h *host) files(c caller) *files {
	f := broker.State(c.Call, filesKey{h}, func() *files {
		return &files{host: h, handles: file.NewHandles(h.OpenFiles), roots: make([]*node, len(h.Mounts)+1)}
	})
	f.ctx = c.ctx
	f.handles.Begin(c.ctx, c.Spend)
	return f
}

// Close implements io.Closer for broker.State.
func (f *files) Close() error {
	f.handles.End()
	f.ended = true
	return nil
}

// failure returns errno, of the last operation, as a fileError.
func (f *files) failure(errno file.Errno) error {
	if errno == 0 {
		return nil
	}
	return fileError(f.handles.ErrorCode(errno))
}

// root returns a preopened directory.
func (f *files) root(number int) (*node, error) {
	if n := f.roots[number]; n != nil {
		return n, nil
	}
	n := &node{files: f, mount: number, flags: flagRead, dir: true}
	if number < len(f.host.Mounts) {
		mount := f.host.Mounts[number]
		n.fs = mount.FS(f.handles)
		if mount.Writable() {
			n.flags |= flagMutate
		}
	} else {
		n.fs = file.Root(f.host.Mounts, func(path string) { f.host.Outside(f.ctx, path) })
	}
	opened, errno := n.fs.OpenFile(".", file.OpenRead, 0)
	if errno != 0 {
		return nil, f.failure(errno)
	}
	n.file, f.roots[number] = opened, n
	return n, nil
}

// descriptor is wasi:filesystem/types.descriptor: a preopen or a *node.
type descriptor interface {
	open(f *files) (*node, error)
}

// preopen is a preopened directory, by its number. It has no state, so that an image may hold it.
type preopen int

func (p preopen) open(f *files) (*node, error) { return f.root(int(p)) }

// Lasting implements component.Lasting.
func (preopen) Lasting() {}

// node is an open file or directory.
type node struct {
	files *files
	mount int // its number
	fs    file.FS
	file  file.File
	path  string // relative to the mount; empty for the mount itself
	flags uint32 // descriptor-flags
	dir   bool
	users int // the descriptor and its streams
}

// open fails for a file of a call that has ended.
func (n *node) open(f *files) (*node, error) {
	if n.files != f {
		return nil, errDescriptor
	}
	return n, nil
}

// Drop implements component.Dropper. Streams of the file remain usable.
func (n *node) Drop() {
	if n.users--; n.users == 0 && !n.files.ended {
		n.file.Close() // the guest cannot get the error any more
	}
}

// resolve returns a path below a directory as a path of its mount.
func (n *node) resolve(below string) (string, error) {
	clean := path.Clean(below)
	switch {
	case !n.dir:
		return "", fileError("not-directory")
	case below == "":
		return "", fileError("no-entry")
	case len(below) > file.MaxPath:
		return "", fileError("name-too-long")
	case below[0] == '/', clean == "..", strings.HasPrefix(clean, "../"):
		return "", fileError("not-permitted")
	case n.path == "":
		return below, nil
	}
	return n.path + "/" + below, nil // path.Join would drop a slash at the end
}

// fileError is an error-code of wasi:filesystem by name.
type fileError string

func (e fileError) Error() string { return string(e) }

const (
	errDescriptor = fileError("bad-descriptor")
	errInvalid    = fileError("invalid")
	// errOpenFiles stands for too many open files, for which there is no code.
	errOpenFiles = fileError("insufficient-memory")
)

// at calls do with a descriptor's file and returns its result. Mounts report the end of the call as an error: it ends
// here.
func (h *host) at(c caller, d descriptor, do func(*node) (any, error)) any {
	n, err := d.open(h.files(c))
	var value any
	if err == nil {
		value, err = do(n)
	}
	c.Charge(0)
	if err := c.ctx.Err(); err != nil {
		panic(err)
	}
	if errors.Is(err, errOpenFiles) {
		h.warn(c.ctx, "the call has as many files open as limits.openFiles allows: close some, or raise it")
	}
	if err != nil {
		return component.Failed(fileCode(err))
	}
	return component.OK(value)
}

// below is at for a path below the directory d.
func (h *host) below(c caller, d descriptor, path string, do func(n *node, path string) (any, error)) any {
	return h.at(c, d, func(n *node) (any, error) {
		resolved, err := n.resolve(path)
		if err != nil {
			return nil, err
		}
		return do(n, resolved)
	})
}

// done returns the result of an operation without a value.
func (n *node) done(errno file.Errno) (any, error) { return nil, n.files.failure(errno) }

func (h *host) directories(caller) any {
	var list []any
	for i, mount := range h.Mounts {
		list = append(list, []any{preopen(i), mount.GuestPath()})
	}
	return append(list, []any{preopen(len(h.Mounts)), "/"})
}

func (h *host) openAt(c caller, d descriptor, links uint32, path string, how, flags uint32) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) {
		flag, err := n.openFlag(links, how, flags)
		if err != nil {
			return nil, err
		}
		f := n.files
		opened, errno := n.fs.OpenFile(path, flag, 0)
		if errno != 0 {
			return nil, f.failure(errno)
		}
		child := &node{files: f, mount: n.mount, fs: n.fs, file: opened, path: cleanPath(path), users: 1}
		if child.dir, errno = opened.IsDir(); errno != 0 {
			opened.Close()
			return nil, f.failure(errno)
		}
		child.flags = flags & (flagRead | flagWrite)
		if child.dir {
			child.flags = flagRead | n.flags&flagMutate
		}
		return child, nil
	})
}

// openFlag converts the flags of open-at.
func (n *node) openFlag(links, how, flags uint32) (file.Flag, error) {
	changes := how&(openCreate|openTruncate) != 0 || flags&(flagWrite|flagMutate) != 0
	switch {
	case flags&flagsSync != 0:
		return 0, fileError("unsupported")
	case how&openDirectory != 0 && how&(openCreate|openExclusive|openTruncate) != 0:
		return 0, errInvalid
	case changes && n.flags&flagMutate == 0:
		return 0, fileError("read-only")
	}
	flag := file.OpenRead
	switch flags & (flagRead | flagWrite) {
	case flagWrite:
		flag = file.OpenWrite
	case flagRead | flagWrite:
		flag = file.OpenReadWrite
	}
	for _, option := range []struct {
		set  bool
		flag file.Flag
	}{
		{how&openCreate != 0, file.OpenCreate}, {how&openDirectory != 0, file.OpenDirectory},
		{how&openExclusive != 0, file.OpenExclusive}, {how&openTruncate != 0, file.OpenTruncate},
		{links&followSymlinks == 0, file.OpenNoFollow},
	} {
		if option.set {
			flag |= option.flag
		}
	}
	return flag, nil
}

// cleanPath returns the path of a mount to an open directory, which is empty for the mount itself.
func cleanPath(p string) string {
	if p = path.Clean(p); p == "." {
		return ""
	}
	return p
}
