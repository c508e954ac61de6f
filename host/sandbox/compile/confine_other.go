//go:build !linux

package compile

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/hako-run/hako/internal/process"
)

// Self returns the path of this program.
func Self() (string, error) { return os.Executable() }

// start starts the child. On Windows it ends with this process; elsewhere it goes on until it is done.
func start(child *exec.Cmd) (io.Closer, error) { return process.StartGroup(child) }

func killedBy(*os.ProcessState, syscall.Signal) bool { return false }

// confineSelf limits the memory of this process. The size of its file is checked afterwards, and its processor time is
// at most workers times its wall time.
func confineSelf(o *childConfig) error {
	go watch(uint64(o.Memory))
	return nil
}

// watchInterval is the interval at which the memory is checked. The limit is exceeded by some hundred megabytes at
// most.
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
