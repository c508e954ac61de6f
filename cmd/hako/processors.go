package main

import (
	"os"
	"runtime"
	"sync"
)

// guestProcessors is how many guests compute at the same moment.
var guestProcessors = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// spareProcessor lets Go run one thread more than guests may occupy, unless the environment has a say: guest code is not preemptible, and
// with a thread to spare a request is read at once and not when the runtime's monitor next looks, some 10 ms later.
func spareProcessor() {
	if n := guestProcessors(); os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + 1)
	}
}
