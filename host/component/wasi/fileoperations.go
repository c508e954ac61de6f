package wasi

import (
	"math"

	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/wasm/component"
)

func (h *host) setSize(c caller, d descriptor, size uint64) any {
	return h.at(c, d, func(n *node) (any, error) {
		if size > math.MaxInt64 {
			return nil, errInvalid
		}
		return n.done(n.file.Truncate(int64(size)))
	})
}

// readAt returns at most maxTransfer bytes.
func (h *host) readAt(c caller, d descriptor, length, offset uint64) any {
	return h.at(c, d, func(n *node) (any, error) {
		if err := n.permits(flagRead); err != nil {
			return nil, err
		}
		data, err := n.read(length, offset)
		return []any{data, uint64(len(data)) < min(length, maxTransfer)}, err
	})
}

// read reads up to maxTransfer bytes at an offset.
func (n *node) read(length, offset uint64) ([]byte, error) {
	if offset > math.MaxInt64 {
		return nil, errInvalid
	}
	data := make([]byte, min(length, maxTransfer))
	read, errno := n.file.Pread(data, int64(offset))
	return data[:read], n.files.failure(errno)
}

// writeAt writes at most maxTransfer bytes.
func (h *host) writeAt(c caller, d descriptor, data []byte, offset uint64) any {
	return h.at(c, d, func(n *node) (any, error) {
		if offset > math.MaxInt64 {
			return nil, errInvalid
		}
		written, errno := n.file.Pwrite(data, int64(offset))
		return uint64(written), n.files.failure(errno)
	})
}

func (h *host) readStream(c caller, d descriptor, offset uint64) any {
	return h.stream(c, d, flagRead, func(s *fileStream) any {
		s.offset = offset
		return &fileInput{*s}
	})
}

func (h *host) writeStream(c caller, d descriptor, offset uint64) any {
	return h.stream(c, d, flagWrite, func(s *fileStream) any {
		s.offset = offset
		return &fileOutput{fileStream: *s}
	})
}

func (h *host) appendStream(c caller, d descriptor) any {
	return h.stream(c, d, flagWrite, func(s *fileStream) any { return &fileOutput{fileStream: *s, append: true} })
}

// stream returns a stream of a file, which must have been opened with the flag.
func (h *host) stream(c caller, d descriptor, flag uint32, open func(*fileStream) any) any {
	return h.at(c, d, func(n *node) (any, error) {
		if err := n.permits(flag); err != nil {
			return nil, err
		}
		n.users++
		return open(&fileStream{node: n}), nil
	})
}

// permits returns an error unless n is a file that was opened with the flag.
func (n *node) permits(flag uint32) error {
	switch {
	case n.dir:
		return fileError("is-directory")
	case n.flags&flag == 0:
		return errDescriptor
	}
	return nil
}

// fileStream is a stream of a file at an offset. It keeps the file open.
type fileStream struct {
	node   *node
	offset uint64
	closed bool
}

func (*fileStream) ready(caller) bool                { return true }
func (*fileStream) event() (<-chan struct{}, uint64) { return nil, 0 }

// Drop implements component.Dropper.
func (s *fileStream) Drop() { s.node.Drop() }

// begin returns an error if the stream is closed.
func (s *fileStream) begin(h *host, c caller) error {
	if _, err := s.node.open(h.files(c)); err != nil || s.closed {
		return errClosed
	}
	return nil
}

// fail closes the stream and returns the error for the guest. The end of the call ends it here.
func (s *fileStream) fail(c caller, err error) error {
	c.Charge(0)
	if err := c.ctx.Err(); err != nil {
		panic(err)
	}
	s.closed = true
	return &ioError{text: "the file cannot be read or written: " + err.Error(), file: component.Some(fileCode(err))}
}

type fileInput struct{ fileStream }

func (s *fileInput) read(c caller, n int) ([]byte, error) {
	if err := s.begin(s.node.files.host, c); err != nil || n == 0 {
		return nil, err
	}
	data, err := s.node.read(uint64(n), s.offset)
	if err != nil {
		return nil, s.fail(c, err)
	}
	if len(data) == 0 {
		s.closed = true
		return nil, errClosed
	}
	s.offset += uint64(len(data))
	return data, nil
}

type fileOutput struct {
	fileStream
	append bool
}

func (s *fileOutput) check(c caller) error { return s.begin(s.node.files.host, c) }

func (s *fileOutput) write(c caller, p []byte) error {
	for len(p) > 0 {
		n, err := s.writeSome(p)
		if err != nil {
			return s.fail(c, err)
		}
		p, s.offset = p[n:], s.offset+uint64(n)
	}
	return nil
}

func (s *fileOutput) writeSome(p []byte) (n int, err error) {
	var errno file.Errno
	switch f := s.node.file; {
	case s.append:
		f.SetAppend(true) // other writes pass an offset
		n, errno = f.Write(p)
	case s.offset > math.MaxInt64:
		return 0, fileError("file-too-large")
	default:
		n, errno = f.Pwrite(p, int64(s.offset))
	}
	return n, s.node.files.failure(errno)
}

func (*fileOutput) flush(caller) error { return nil }

func (h *host) createDirectoryAt(c caller, d descriptor, path string) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) { return n.done(n.fs.Mkdir(path, 0o755)) })
}

func (h *host) removeDirectoryAt(c caller, d descriptor, path string) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) { return n.done(n.fs.Rmdir(path)) })
}

func (h *host) unlinkFileAt(c caller, d descriptor, path string) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) { return n.done(n.fs.Unlink(path)) })
}

func (h *host) readlinkAt(c caller, d descriptor, path string) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) {
		target, errno := n.fs.Readlink(path)
		return target, n.files.failure(errno)
	})
}

// symlinkAt fails: guests may not create links.
func (h *host) symlinkAt(c caller, d descriptor, target, path string) any {
	return h.below(c, d, path, func(n *node, path string) (any, error) { return n.done(n.fs.Symlink(target, path)) })
}

// linkAt fails: guests may not create links.
func (h *host) linkAt(c caller, d descriptor, _ uint32, from string, to descriptor, path string) any {
	return h.between(c, d, from, to, path, file.FS.Link)
}

func (h *host) renameAt(c caller, d descriptor, from string, to descriptor, path string) any {
	return h.between(c, d, from, to, path, file.FS.Rename)
}

// between calls do with two paths of one mount.
func (h *host) between(c caller, d descriptor, from string, to descriptor, path string,
	do func(fs file.FS, from, to string) file.Errno) any {
	return h.below(c, d, from, func(source *node, from string) (any, error) {
		target, err := to.open(source.files)
		if err != nil {
			return nil, err
		}
		path, err := target.resolve(path)
		switch {
		case err != nil:
			return nil, err
		case target.mount != source.mount:
			return nil, fileError("cross-device")
		}
		return source.done(do(source.fs, from, path))
	})
}

func (h *host) readDirectory(c caller, d descriptor) any {
	return h.below(c, d, ".", func(n *node, path string) (any, error) {
		dir, errno := n.fs.OpenFile(path, file.OpenRead|file.OpenDirectory|file.OpenNoFollow, 0)
		if errno != 0 {
			return nil, n.files.failure(errno)
		}
		return &listing{node{files: n.files, file: dir, users: 1}, nil}, nil
	})
}

// listing is wasi:filesystem/types.directory-entry-stream.
type listing struct {
	node
	next []file.Entry
}

// batch is the number of entries that are read at once.
const batch = 64

func (h *host) readDirectoryEntry(c caller, l *listing) any {
	return h.at(c, &l.node, func(n *node) (any, error) {
		if len(l.next) == 0 {
			var errno file.Errno
			if l.next, errno = n.file.Readdir(batch); errno != 0 {
				return nil, n.files.failure(errno)
			}
			if len(l.next) == 0 {
				return component.None, nil
			}
		}
		entry := l.next[0]
		l.next = l.next[1:]
		return component.Some([]any{fileType(entry.Type), entry.Name}), nil
	})
}
