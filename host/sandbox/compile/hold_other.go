//go:build !linux

package compile

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/metrics"
	"syscall"
	"time"
)

func self() (string, error) { return os.Executable() }

func bind(*exec.Cmd) {}

func kill(child *exec.Cmd) {
	if child.Process != nil {
		_ = child.Process.Kill()
	}
}

func signalled(*os.ProcessState, syscall.Signal) bool { return false }

// hold bounds what this process may take. Its file is bounded afterwards, and its processor time by workers times its time.
func hold(o *order) error {
	go watch(uint64(o.Memory))
	return nil
}

// watchInterval is how often the memory is looked at: little enough for some hundred megabytes to pass the limit at most.
const watchInterval = 10 * time.Millisecond

func watch(limit uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(watchInterval) {
		metrics.Read(sample)
		if sample[0].Value.Uint64()-sample[1].Value.Uint64() > limit {
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(exitMemory)
		}
	}
}
