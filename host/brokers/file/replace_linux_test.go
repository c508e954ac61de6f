package file_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReplacingKeepsOwnerAndAttributes needs root to change owners, and a file system with attributes.
func TestReplacingKeepsOwnerAndAttributes(t *testing.T) {
	t.Parallel()
	g := open(t)
	path := filepath.Join(g.dir, "old")
	must(t, os.WriteFile(path, []byte("old"), 0o640))
	root := os.Getuid() == 0
	if root {
		must(t, os.Chown(path, 1234, 2345))
	}
	must(t, os.Chmod(path, 0o640))
	attributes := unix.Setxattr(path, "user.hako", []byte("value"), 0) == nil
	// A version and the entries user, user 1, group, mask and others: tag, permissions and number each.
	acl := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x04\x00\x01\x00\x00\x00" +
		"\x04\x00\x00\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
	acls := unix.Setxattr(path, "system.posix_acl_access", acl, 0) == nil
	want(t, "write", write(g, "new", "new"), 0)
	want(t, "rename", g.Rename("new", "old"), 0)
	info, err := os.Stat(path)
	must(t, err)
	st := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != 0o640 || root && (st.Uid != 1234 || st.Gid != 2345) {
		t.Errorf("mode %v, owner %d, group %d", info.Mode(), st.Uid, st.Gid)
	}
	value := make([]byte, 256)
	if n, err := unix.Getxattr(path, "user.hako", value); attributes && (err != nil || string(value[:n]) != "value") {
		t.Errorf("attribute: %v", err)
	}
	if n, err := unix.Getxattr(path, "system.posix_acl_access", value); acls && (err != nil || string(value[:n]) != string(acl)) {
		t.Errorf("ACL: %x, %v", value[:max(n, 0)], err)
	}
	if len(g.Unkept()) > 0 {
		t.Errorf("not kept: %v", g.Unkept())
	}
	t.Logf("as root: %v, attributes: %v, ACLs: %v", root, attributes, acls)
}
