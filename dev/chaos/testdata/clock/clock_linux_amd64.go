// These files become part of the program hako that the chaos runs, by go build -overlay, and of no other: they give its process a clock of
// its own. Whatever asks Go for the time gets that of the machine, moved by as many seconds as a file says at the moment. The monotonic
// clock, which timers and deadlines go by, is not moved, as it is not when somebody sets a machine's clock.
package main

import (
	"os"
	"syscall"
	"unsafe"
)

var (
	// machineClock is the address of the kernel's function (vdso(7)) that Go's runtime calls.
	machineClock uintptr
	// ahead is the file's content, a number of 8 bytes.
	ahead *int64
)

// replaceClock puts clock in its place.
func replaceClock()

func init() {
	name := os.Getenv("CHAOS_CLOCK")
	if name == "" {
		return
	}
	file, err := os.Open(name)
	if err != nil {
		panic(err)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	ahead = (*int64)(unsafe.Pointer(&memory[0]))
	if replaceClock(); machineClock == 0 {
		panic("this machine's kernel has no vDSO")
	}
}
