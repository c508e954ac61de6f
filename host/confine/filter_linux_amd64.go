package confine

import "golang.org/x/sys/unix"

// oldForbidden are older variants of forbidden that other processors do not have.
var oldForbidden = []uint32{unix.SYS_INOTIFY_INIT}

// oldMetadata are older variants of metadata that other processors do not have.
var oldMetadata = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME,
	unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
