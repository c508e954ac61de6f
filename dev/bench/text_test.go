package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// text measures calls with much text in and out: the processor time of the server, and its highest memory with eight
// callers. The tool echoes; its guests are in Go with the PDK, and in Rust with serde_json.
func (r *results) text(t *testing.T) {
	if *program == "" || runtime.GOOS != "linux" {
		t.Skip("it needs -hako.program and Linux")
	}
	s := newTextSite(t, map[string][]byte{"go": echoPlugin(t, "go", "echo"), "rust": rustPlugin(t)}).serve(t)
	const line = `Tomorrow it will be sunny in Tokyo, with a high of 20 degrees, and we wrote \"fine\" to 12 people.\n`
	for _, language := range []string{"rust", "go"} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"1mib", 900_000}, {"22k", 22_000}} {
			tool, arguments := language+"_echo", `{"text":"`+strings.Repeat(line, size.bytes/len(line))+`"}`
			s.calls(t, 1, tool, arguments, *duration/4)
			before := s.cpuTime(t)
			n := s.calls(t, 1, tool, arguments, *duration)
			r.add(t, fmt.Sprintf("text_%s_cpu_ms_%s", size.name, language), ms(s.cpuTime(t)-before)/float64(n), "ms")
		}
	}
	large := `{"text":"` + strings.Repeat(line, 900_000/len(line)) + `"}`
	s.resetPeak(t)
	s.calls(t, 8, "rust_echo", large, *duration)
	r.add(t, "text_1mib_peak_rss_mib", s.peak(t), "MiB")
}

// newTextSite returns a directory with a configuration of hako with these plugins alone, by their names, which are the
// prefixes of their tools.
func newTextSite(t *testing.T, plugins map[string][]byte) *site {
	t.Helper()
	s := newEmptySite(t)
	text := []byte(`
plugins: [plugins]
shipped: {enabled: false}
http: {address: "127.0.0.1:0"}
mcp: {limits: {rate: 1000000, calls: 10000, callsPerClient: 10000}}
limits: {rate: 10000000, queue: 10000}
plugin:
`)
	err := os.Mkdir(filepath.Join(s.dir, "plugins"), 0o700)
	for name, wasm := range plugins {
		text = fmt.Appendf(text, "  %s: {prefix: %s_}\n", name, name)
		err = errors.Join(err, os.WriteFile(filepath.Join(s.dir, "plugins", name+".wasm"), wasm, 0o600))
	}
	if err := errors.Join(err, os.WriteFile(filepath.Join(s.dir, "hako.yaml"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name := range plugins {
		if output, err := s.command("plugin", "approve", name, "--yes").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	return s
}

// rustPlugin builds the guest in Rust.
func rustPlugin(t *testing.T) []byte {
	t.Helper()
	if _, err := exec.LookPath("cargo"); err != nil {
		testprogram.Missing(t, "cargo")
	}
	target := t.TempDir()
	build := exec.Command("cargo", "build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip1",
		"--target-dir", target)
	build.Dir = filepath.Join(guesttest.Root(), "dev/bench/testdata/rust")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	wasm, err := os.ReadFile(filepath.Join(target, "wasm32-wasip1/release/rust.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("NAME", "rust", "TOOL", "echo").Replace(echoManifest)
	text, _, _ = strings.Cut(text, "permissions:") // it imports nothing that needs one
	wasm, err = wasmfile.Embed(wasm, map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// calls makes calls from n clients for a time and returns how many came back.
func (s *served) calls(t *testing.T, n int, tool, arguments string, lasting time.Duration) int {
	t.Helper()
	counts, errs := make([]int, n), make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		c := connect(t, s.url, protocolVersions[1])
		group.Go(func() {
			body := c.Body(tool, arguments)
			for begin := time.Now(); errs[i] == nil && (counts[i] == 0 || time.Since(begin) < lasting); counts[i]++ {
				errs[i] = c.Call(t.Context(), tool, body, "12 people")
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}

// cpuTime returns the processor time of the server so far.
func (s *served) cpuTime(t *testing.T) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all of Go's ports
	_, rest, _ := strings.Cut(string(data), ") ")
	var total time.Duration
	for _, field := range strings.Fields(rest)[11:13] { // utime and stime, proc_pid_stat(5)
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += time.Duration(ticks) * tick
	}
	return total
}

// TestText runs only this benchmark.
func TestText(t *testing.T) {
	var r results
	r.text(t)
}
