//go:build unix

package file

import (
	"os"
	"syscall"
)

// copyAttributes gives the file source the mode, owner, group, ACL and attributes of the file target. It returns the
// names of those that it could not set. No permission goes to a group that did not have it.
func copyAttributes(source, target *dirEntry) (lost []string, err error) {
	f, err := source.dir.OpenFile(source.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, asChanged(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	old, ok := target.info.Sys().(*syscall.Stat_t)
	own, ok2 := info.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || !os.SameFile(info, source.info) {
		return nil, errChanged
	}
	mode := replacedMode(target.info.Mode())
	if target.info.Mode().Perm() != mode {
		lost = append(lost, "executable bits")
	}
	group := old.Gid == own.Gid || f.Chown(-1, int(old.Gid)) == nil
	if !group {
		lost = append(lost, "group")
	}
	if old.Uid != own.Uid && f.Chown(int(old.Uid), -1) != nil {
		lost = append(lost, "owner")
	}
	acl, attributes := copyExtended(f, target, group)
	if !acl {
		lost = append(lost, "ACL")
	}
	if !attributes {
		lost = append(lost, "attributes")
	}
	if !group || !acl { // the bits of the group are for another one, or were the mask of the ACL
		mode &^= 0o070 &^ (mode & 0o007 << 3)
	}
	return lost, f.Chmod(mode)
}
