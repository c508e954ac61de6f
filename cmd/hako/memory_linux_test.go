//go:build !race

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
)

// maxResidentAtRest bounds the resident memory of a server that nobody calls, in MiB.
const maxResidentAtRest = 100

// TestMemoryAtRest starts a server with the shipped plugins, whose compiled code is in the cache, and reads how much
// memory is resident.
func TestMemoryAtRest(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	outlines := filepath.Join(cache, "compiled", "images", "*.outline")
	shareCode(t, cache)
	start := func() (process *exec.Cmd, active int) {
		stderr := new(watched)
		process = exec.CommandContext(t.Context(), program(t), "-C", dir, "serve", "--http", "127.0.0.1:0")
		process.Env = append(os.Environ(), asProgram+"=1", "HAKO_CACHE="+cache)
		process.Stderr = stderr
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		<-stderr.await("Next:")
		return process, strings.Count(stderr.String(), "  active  ")
	}
	stop := func(process *exec.Cmd) {
		if err := errors.Join(process.Process.Signal(os.Interrupt), process.Wait()); err != nil {
			t.Error(err)
		}
	}
	first, active := start()
	compiled := func() bool {
		found, err := filepath.Glob(outlines)
		return err == nil && len(found) >= active
	}
	if active == 0 || !testwait.Until(t, compiled) {
		t.Fatalf("%d plugins are in service, and not all are compiled", active)
	}
	stop(first)
	second, _ := start()
	if mib := resident(t, second.Process.Pid); mib > maxResidentAtRest {
		t.Errorf("%d MiB are resident at rest, more than %d", mib, maxResidentAtRest)
	} else {
		t.Logf("%d MiB are resident", mib)
	}
	stop(second)
}

// shareCode makes a cache use the compiled code of the tests' cache, so that nothing is compiled again.
func shareCode(t *testing.T, cache string) {
	t.Helper()
	code, err := filepath.Glob(filepath.Join(os.Getenv("HAKO_CACHE"), "compiled", "wazero-*"))
	if err == nil {
		err = os.MkdirAll(filepath.Join(cache, "compiled"), 0o700)
	}
	for _, dir := range code {
		err = errors.Join(err, os.Symlink(dir, filepath.Join(cache, "compiled", filepath.Base(dir))))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// resident returns the resident memory of a process in MiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	value, _, _ := strings.Cut(rest, " kB")
	kib, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
