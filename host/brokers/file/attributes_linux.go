package file

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	accessACL = "system.posix_acl_access"
	// maxAttribute is the largest value of an attribute, in bytes, as XATTR_SIZE_MAX.
	maxAttribute = 64 << 10
)

// copyExtended gives f the ACL and the user attributes of target and reports whether it has them now. Without the group
// of target, f gets no ACL: the one of target would be for another group.
func copyExtended(f *os.File, target *dirEntry, group bool) (acl, attributes bool) {
	to := int(f.Fd())
	_ = unix.Fremovexattr(to, accessACL) // A default ACL of the directory gave it one.
	old, err := target.dir.OpenFile(target.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return false, false
	}
	defer old.Close()
	if info, err := old.Stat(); err != nil || !os.SameFile(info, target.info) {
		return false, false
	}
	from := int(old.Fd())
	value := make([]byte, maxAttribute)
	copied := func(name string) bool {
		n, err := unix.Fgetxattr(from, name, value)
		return err == nil && unix.Fsetxattr(to, name, value[:n], 0) == nil
	}
	acl, attributes = true, true
	if _, err := unix.Fgetxattr(from, accessACL, nil); err == nil {
		acl = group && copied(accessACL)
	}
	names := make([]byte, maxAttribute)
	n, err := unix.Flistxattr(from, names)
	if err != nil {
		return acl, errors.Is(err, unix.ENOTSUP)
	}
	for _, name := range strings.Split(string(names[:n]), "\x00") {
		if strings.HasPrefix(name, "user.") && !copied(name) {
			attributes = false
		}
	}
	return acl, attributes
}
