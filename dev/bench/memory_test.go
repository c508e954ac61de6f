package bench

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/mcpload"
)

var (
	program = flag.String("hako.program", "", "the hako whose memory is measured; without it memory is left out")
	settle  = flag.Duration("hako.settle", time.Minute, "how long after a load the memory is measured again")
)

// site is a directory with the program and its configuration.
type site struct{ dir string }

// newEmptySite returns a site without a configuration. It has a copy of the program of its own, written page by page,
// because resident memory depends on how the file came into the page cache: on Linux 6.18 with ext4, "hako version" had
// 37 MiB after its file was read from the disk or written page by page, 46 as the linker left it, and 62 after a copy in
// pieces of 4 MiB.
func newEmptySite(t *testing.T) *site {
	t.Helper()
	s := &site{t.TempDir()}
	from, err := os.Open(*program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(s.program(), os.O_WRONLY|os.O_CREATE, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, os.Getpagesize()))
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) program() string { return filepath.Join(s.dir, "program") }

const extismPlugins = 4

// newSite returns a site with the shipped plugins, and Extism plugins ext0, ext1, ... whose tools have these names as
// prefixes.
func newSite(t *testing.T, extism int) *site {
	t.Helper()
	s := newEmptySite(t)
	configuration := strings.Builder{}
	fmt.Fprint(&configuration, `
plugins: [plugins]
results: {disabled: true}
shipped: {enabled: true, mounts: {workspace: ./workspace}}
http: {address: "127.0.0.1:0"}
mcp: {limits: {rate: 1000000, calls: 10000, callsPerClient: 10000}}
limits: {rate: 10000000, queue: 10000}
log: {level: warn}
`)
	write := func(name string, data []byte) { writeFile(t, filepath.Join(s.dir, name), data) }
	write("plugins/README", nil)
	wasm := guesttest.Build(t, "dev/kit/guesttest/guests/extism")
	if extism > 0 {
		fmt.Fprintln(&configuration, "mock: true\nplugin:") // a mock has all shipped plugins in service
	}
	for i := range extism {
		name := fmt.Sprintf("ext%d", i)
		write("plugins/"+name+".wasm", wasm)
		write("plugins/"+name+".yaml", fmt.Appendf(nil, "name: %s\nversion: 1.0.0\ndescription: A guest.\n"+
			"permissions: {http: [{name: any, url: \"https://example.com/\", reason: the guest imports it}]}\n", name))
		fmt.Fprintf(&configuration, "  %s: {prefix: %s_}\n", name, name)
	}
	write("hako.yaml", []byte(configuration.String()))
	write("workspace/large.txt", []byte(strings.Repeat("a line of text, as files have them, of 64 bytes with its end.\n", 900_000/64)))
	for i := range extism {
		if output, err := s.command("plugin", "approve", fmt.Sprintf("ext%d", i), "--yes").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	return s
}

// command returns a command line of hako in the directory.
func (s *site) command(args ...string) *exec.Cmd {
	command := exec.Command(s.program(), args...)
	command.Dir, command.Env = s.dir, append(os.Environ(), "XDG_CACHE_HOME="+s.dir)
	return command
}

// served is "hako serve" in a process of its own.
type served struct {
	command *exec.Cmd
	url     string
	// stop ends it. It may be called twice.
	stop func()
}

func (s *site) serve(t *testing.T) *served {
	t.Helper()
	p := &served{command: s.command("serve", "--log-level", "info")}
	output, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	p.stop = stopOnce(p.command)
	t.Cleanup(p.stop)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)
	lines := bufio.NewScanner(output)
	for p.url == "" && lines.Scan() {
		p.url = address.FindString(lines.Text())
	}
	if p.url == "" {
		t.Fatal("hako does not say where it serves")
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	return p
}

// stopOnce returns a function that interrupts a process and waits for its end.
func stopOnce(command *exec.Cmd) func() {
	return sync.OnceFunc(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
}

// status returns the sum of numbers of /proc/PID/status or smaps_rollup, in MiB.
func status(pid int, file string, names ...string) (mib float64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(line, name+":"); ok {
				kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
				if err != nil {
					return 0, err
				}
				mib += kib / 1024
			}
		}
	}
	return mib, nil
}

func (s *served) status(t *testing.T, file string, names ...string) float64 {
	t.Helper()
	mib, err := status(s.command.Process.Pid, file, names...)
	if err != nil {
		t.Fatal(err)
	}
	return mib
}

func (s *served) resident(t *testing.T) float64 { return s.status(t, "status", "VmRSS") }

// private is the memory that only this process has and that is in no file.
func (s *served) private(t *testing.T) float64 { return s.status(t, "smaps_rollup", "Private_Dirty") }

func (s *served) peak(t *testing.T) float64 { return s.status(t, "status", "VmHWM") }

// resetPeak makes peak start from the current memory.
func (s *served) resetPeak(t *testing.T) {
	t.Helper()
	file := fmt.Sprintf("/proc/%d/clear_refs", s.command.Process.Pid)
	if err := os.WriteFile(file, []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// attack is a tool of the Extism guest with arguments. Some exceed a limit; that call fails.
type attack struct{ tool, arguments string }

// memory measures the resident memory of a process of its own: with all plugins loaded, in a flood of calls that exceed
// the memory, the log and the output of Extism plugins, a minute after it, and while eight large answers are under way.
func (r *results) memory(t *testing.T) {
	if *program == "" || runtime.GOOS != "linux" {
		t.Skip("it needs -hako.program and Linux")
	}
	s := newSite(t, extismPlugins).serve(t)
	clients := make([]*mcpload.Client, 2*extismPlugins)
	for i := range clients {
		clients[i] = connect(t, s.url, protocolVersions[1])
	}
	call := func(c *mcpload.Client, tool, arguments string) error {
		return c.Call(t.Context(), tool, c.Body(tool, arguments), "")
	}
	for i := range extismPlugins { // compiled and started once
		if err := call(clients[i], fmt.Sprintf("ext%d_echo", i), `{"text":"a"}`); err != nil {
			t.Fatal(err)
		}
	}
	if err := call(clients[0], "file_read", `{"path":"large.txt"}`); err != nil {
		t.Fatal(err)
	}
	time.Sleep(*settle)
	loaded := s.resident(t)
	r.add(t, "loaded_rss_mib", loaded, "MiB")
	r.add(t, "loaded_private_mib", s.private(t), "MiB")

	s.resetPeak(t)
	attacks := []attack{{"memory", `{}`}, {"blocks", `{}`}, {"big", `{"n":8000000}`}, {"churn", `{"n":200}`},
		{"print", `{"text":"` + strings.Repeat("a long line ", 80_000) + `"}`}}
	ctx, stop := context.WithTimeout(t.Context(), 5**duration)
	defer stop()
	var group sync.WaitGroup
	for i, c := range clients {
		group.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				a := attacks[n%len(attacks)]
				tool := fmt.Sprintf("ext%d_%s", i%extismPlugins, a.tool)
				_ = c.Call(ctx, tool, c.Body(tool, a.arguments), "")
			}
		})
	}
	group.Wait()
	r.add(t, "extism_flood_peak_rss_mib", s.peak(t), "MiB")
	time.Sleep(*settle)
	r.add(t, "extism_flood_kept_mib", s.resident(t)-loaded, "MiB")

	s.resetPeak(t)
	errs := make([]error, len(clients))
	for begin := time.Now(); time.Since(begin) < *duration; {
		for i, c := range clients {
			group.Go(func() {
				tool, arguments := fmt.Sprintf("ext%d_big", i%extismPlugins), `{"n":900000}`
				if i%2 == 1 {
					tool, arguments = "file_read", `{"path":"large.txt"}`
				}
				errs[i] = errors.Join(errs[i], call(c, tool, arguments))
			})
		}
		group.Wait()
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	r.add(t, "large_peak_rss_mib", s.peak(t), "MiB")
	time.Sleep(*settle)
	r.add(t, "large_kept_mib", s.resident(t)-loaded, "MiB")
}

// TestMemory runs only this benchmark.
func TestMemory(t *testing.T) {
	var r results
	r.memory(t)
}
