// Package processors divides the machine's processors between guests and the host's own work.
//
// Compiled guest code is not preemptible by Go's scheduler: a goroutine that runs a guest occupies its thread until the
// guest calls the host. If guests could occupy all of Go's threads, a request would wait until the runtime's monitor
// polls the network, every 10 ms.
package processors

import (
	"os"
	"runtime"
	"sync"
)

// spare is the number of threads that Go gets beyond those that guests may occupy: one that waits for the network, and
// one that serves requests meanwhile.
const spare = 2

// Guests returns how many guests may compute at the same moment: GOMAXPROCS as it was at the start.
var Guests = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// Spare raises GOMAXPROCS, so that the host's own work has threads that guests do not occupy. If the environment sets
// GOMAXPROCS, it does nothing. A program calls it once, before it serves.
func Spare() {
	if n := Guests(); os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + spare)
	}
}
