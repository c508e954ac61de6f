package testprogram

import (
	"os"
	"os/exec"
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
	// The directory of the test binary may be closed to the user; /proc/self/exe is not.
	rerun := exec.Command("/proc/self/exe", "-test.run="+strings.Join(path, "/"), "-test.count=1", "-test.v")
	rerun.Env = append(os.Environ(), "TMPDIR=/tmp")
	rerun.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := rerun.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()+" ") {
		t.Errorf("as a user without rights: %v\n%s", err, output)
	}
	return true
}
