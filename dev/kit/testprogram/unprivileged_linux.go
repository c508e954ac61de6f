package testprogram

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// nobody is the ID of the user and the group without rights.
const nobody = 65534

// RunUnprivileged returns false unless root runs the test. For root, whom file modes do not restrict, it runs the test
// again in a process without rights, which uses /tmp, reports the result, and returns true: the test is done.
func RunUnprivileged(t testing.TB) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	var path []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		path = append(path, "^"+regexp.QuoteMeta(part)+"$")
	}
	// The directory of the test binary is closed to the user.
	dir, err := os.MkdirTemp("/tmp", "unprivileged")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self := filepath.Join(dir, filepath.Base(os.Args[0]))
	if err := errors.Join(os.Chmod(dir, 0o755), copyProgram(self)); err != nil {
		t.Fatal(err)
	}
	rerun := exec.Command(self, "-test.run="+strings.Join(path, "/"), "-test.count=1", "-test.v")
	rerun.Env = append(os.Environ(), "TMPDIR=/tmp")
	rerun.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := rerun.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()+" ") {
		t.Errorf("as a user without rights: %v\n%s", err, output)
	}
	return true
}

func copyProgram(to string) error {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}
