package doctor

import (
	"bytes"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// freeSpace returns the number of bytes that this process may still write at path.
func freeSpace(path string) (free uint64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}

// totalMemory is the memory of the machine in bytes.
func totalMemory() (total uint64, known bool) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, false
	}
	return uint64(info.Totalram) * uint64(info.Unit), true
}

// processLimit returns the number of processes that the control groups of this process may have; empty: no limit.
func processLimit() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		root := "/sys/fs/cgroup"
		switch fields[1] {
		case "": // version 2
		case "pids":
			root += "/pids"
		default:
			continue
		}
		for group := fields[2]; ; group = path.Dir(group) {
			limit, err := os.ReadFile(path.Join(root, group, "pids.max"))
			if text := string(bytes.TrimSpace(limit)); err == nil && text != "max" {
				return text
			}
			if group == "/" || group == "." {
				break
			}
		}
	}
	return ""
}
