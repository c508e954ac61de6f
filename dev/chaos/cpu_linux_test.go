package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// limitCPU gives a process a share of one core for the rest of the test, in a control group of its own. That takes
// root.
func limitCPU(t *testing.T, pid int, share float64) {
	t.Helper()
	const period = 20_000 // microseconds
	quota := int(share * period)
	group, limits := "/sys/fs/cgroup", map[string]string{"cpu.max": fmt.Sprint(quota, " ", period)}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil { // version 1
		group, limits = "/sys/fs/cgroup/cpu", map[string]string{"cpu.cfs_period_us": fmt.Sprint(period),
			"cpu.cfs_quota_us": fmt.Sprint(quota)}
	}
	group = filepath.Join(group, "hako-scaling-"+strconv.Itoa(pid))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(group) }) // after the process has ended
	limits["cgroup.procs"] = strconv.Itoa(pid)
	for _, name := range []string{"cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.max", "cgroup.procs"} {
		if value, ok := limits[name]; ok {
			if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
