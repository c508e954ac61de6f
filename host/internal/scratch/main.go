package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hako-run/hako/host/internal/guesttest"
	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/host/manifest"
)

func rss() int { var u syscall.Rusage; syscall.Getrusage(0, &u); return int(u.Maxrss >> 10) }
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func load(name string) []byte {
	if strings.HasPrefix(name, "/") {
		d, err := os.ReadFile(name)
		if err != nil { panic(err) }
		return d
	}
	return guesttest.Bombs()[name]
}

func child(phase, name string) {
	wasm := load(name)
	runtime.GC()
	debug.FreeOSMemory()
	fmt.Printf("size=%dK base=%dM ", len(wasm)>>10, rss())
	step := func(what string, f func() error) {
		c := cpu()
		err := f()
		e := ""
		if err != nil { e = " ERR " + strings.ReplaceAll(err.Error(), "\n", " | "); if len(e) > 130 { e = e[:130] } }
		fmt.Printf("| %s %.2fs %dM%s ", what, (cpu() - c).Seconds(), rss(), e)
	}
	step("read", func() error { _, err := manifest.Read(wasm); return err })
	var out []byte
	step("rewrite", func() error {
		r, err := rewrite.Module(wasm, 1<<20)
		if err != nil { return err }
		out = r.Wasm
		return nil
	})
	if out == nil { fmt.Println(); return }
	fmt.Printf("(%dK) ", len(out)>>10)
	cfg := wazero.NewRuntimeConfigInterpreter()
	if phase == "compile" { cfg = wazero.NewRuntimeConfigCompiler() }
	cfg = cfg.WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall).WithDebugInfoEnabled(false)
	ctx := experimental.WithCompilationWorkers(context.Background(), 2)
	step(phase, func() error {
		rt := wazero.NewRuntimeWithConfig(ctx, cfg)
		_, err := rt.CompileModule(ctx, out)
		return err
	})
	fmt.Println()
}

func main() {
	if len(os.Args) > 2 {
		child(os.Args[1], os.Args[2])
		return
	}
	phase := os.Args[1]
	os.MkdirAll("/tmp/compile-bombs", 0o755)
	for n, w := range guesttest.Bombs() { os.WriteFile("/tmp/compile-bombs/"+n+".wasm", w, 0o644) }
	var names []string
	for n := range guesttest.Bombs() { names = append(names, n) }
	sort.Strings(names)
	for _, n := range names {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		c := exec.CommandContext(ctx, "bash", "-c", `ulimit -d 4000000; exec "$0" "$@"`, os.Args[0], phase, "/tmp/compile-bombs/"+n+".wasm")
		out, err := c.CombinedOutput()
		s := strings.SplitN(string(out), "\n", 3)
		line := s[0]
		if err != nil {
			line += " !!! " + err.Error()
			for _, l := range strings.Split(string(out), "\n") { if strings.Contains(l, "fatal") || strings.Contains(l, "panic") { line += " " + l; break } }
			if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok { line += fmt.Sprintf(" peak=%dM cpu=%.1fs", u.Maxrss>>10, float64(u.Utime.Nano()+u.Stime.Nano())/1e9) }
		}
		cancel()
		fmt.Printf("%-52s %s\n", n, line)
	}
}
