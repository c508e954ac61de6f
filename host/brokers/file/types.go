package file

import (
	"github.com/tetratelabs/wazero/experimental/sys"
	wsys "github.com/tetratelabs/wazero/sys"
)

// Types of file systems, for packages that use mounts without wazero.
type (
	// FS is the file system of one guest on one mount.
	FS = sys.FS
	// File is an open file or directory.
	File = sys.File
	// Errno is the error of an operation; zero means success. Handles.ErrorCode explains it.
	Errno = sys.Errno
	// Flag has the options with which a file is opened.
	Flag = sys.Oflag
	// Stat are the attributes of a file.
	Stat = wsys.Stat_t
	// Entry is an entry of a directory.
	Entry = sys.Dirent
)

// Flags of FS.OpenFile.
const (
	OpenRead      Flag = sys.O_RDONLY
	OpenWrite     Flag = sys.O_WRONLY
	OpenReadWrite Flag = sys.O_RDWR
	OpenCreate    Flag = sys.O_CREAT
	OpenDirectory Flag = sys.O_DIRECTORY
	OpenExclusive Flag = sys.O_EXCL
	OpenNoFollow  Flag = sys.O_NOFOLLOW
	OpenTruncate  Flag = sys.O_TRUNC
)

// KeepTime is a time for File.Utimens and FS.Utimens that changes nothing.
const KeepTime int64 = sys.UTIME_OMIT

// ErrorCode returns the error code of wasi:filesystem 0.2 for errno, which must be that of the last failed operation.
func (h *Handles) ErrorCode(errno Errno) string {
	if errno == sys.EIO {
		if code, ok := wasiOnlyCodes[h.wasiOnly]; ok {
			return code
		}
	}
	if code, ok := errorCodes[errno]; ok {
		return code
	}
	return "io"
}

var errorCodes = map[sys.Errno]string{
	sys.EACCES: "access", sys.EAGAIN: "would-block", sys.EBADF: "bad-descriptor", sys.EEXIST: "exist",
	sys.EINTR: "interrupted", sys.EINVAL: "invalid", sys.EISDIR: "is-directory", sys.ELOOP: "loop",
	sys.ENAMETOOLONG: "name-too-long", sys.ENOENT: "no-entry", sys.ENOSYS: "unsupported", sys.ENOTDIR: "not-directory",
	sys.ERANGE: "overflow", sys.ENOTEMPTY: "not-empty", sys.ENOTSUP: "unsupported", sys.EPERM: "not-permitted",
	sys.EROFS: "read-only",
}

// wasiOnlyCodes has "insufficient-memory" for too many open files, for which wasi:filesystem has no code.
var wasiOnlyCodes = map[wasiErrno]string{
	wasiEBUSY: "busy", wasiEDQUOT: "quota", wasiEFBIG: "file-too-large", wasiEMFILE: "insufficient-memory",
	wasiEMLINK: "too-many-links", wasiENFILE: "insufficient-memory", wasiENOSPC: "insufficient-space",
	wasiEXDEV: "cross-device",
}
