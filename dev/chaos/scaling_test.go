//go:build unix

package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/measurement"
	"github.com/hako-run/hako/host/frontend/bearer"
)

var (
	scaling  = flag.String("chaos.scaling", "", "measure one, two and three replicas and write a table to this file")
	results  = flag.String("chaos.results", "", "write the results as JSON to this file too")
	measured = flag.Duration("chaos.measured", 10*time.Second, "how long each is measured")
	cpu      = flag.Float64("chaos.cpu", 0, "the share of one core that each replica gets; 0 means whatever is free")
)

const (
	// clients is the number of clients that call at once.
	clients = 16
	// databases is the number of tenants that write, each to a database of its own.
	databases = 8
)

// TestScaling measures what replicas do together. All of it shares this machine, the clients and the database too.
func TestScaling(t *testing.T) {
	if *scaling == "" {
		t.Skip("it measures: make scaling")
	}
	path, err := filepath.Abs(*program)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	var points []measurement.Result
	fmt.Fprintf(&table, "| replicas | call | calls/s | p50 | p99 |\n| --- | --- | --- | --- | --- |\n")
	for n := 1; n <= replicas; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, path, n, newTenants(databases)...)
			var projects []string
			for i := range databases {
				projects = append(projects, w.projectOf(t.Context(), i))
			}
			if *cpu > 0 {
				for _, r := range w.replicas {
					limitCPU(t, r.process.Process.Pid, *cpu)
				}
			}
			for _, kind := range []struct {
				key, name, tool string
				tenants         int
			}{{"reads_per_s", "reads", "list_projects", databases},
				{"writes_to_one_per_s", "writes to one database", "create_task", 1},
				{"writes_per_s", fmt.Sprintf("writes to %d databases", databases), "create_task", databases}} {
				w.measure(kind.tool, projects[:kind.tenants], *measured/4) // to get warm
				rate, p50, p99 := w.measure(kind.tool, projects[:kind.tenants], *measured)
				fmt.Fprintf(&table, "| %d | %s | %.0f | %.1f ms | %.1f ms |\n", n, kind.name, rate, p50, p99)
				points = append(points, measurement.Point("replicas", n, kind.key, rate, "calls/s"))
			}
		})
	}
	t.Log("\n" + table.String())
	if err := os.WriteFile(*scaling, []byte(table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if *results != "" {
		if err := measurement.Write(*results, points); err != nil {
			t.Fatal(err)
		}
	}
}

func newTenants(n int) (list []tenant) {
	for range n {
		token, hash := bearer.New()
		list = append(list, tenant{token, hash})
	}
	return list
}

// measure calls a tool from many clients, of as many tenants as there are projects, for a time. It returns calls a
// second, and percentiles in milliseconds.
func (w *world) measure(tool string, projects []string, d time.Duration) (rate, p50, p99 float64) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var mu sync.Mutex
	var times []time.Duration
	var work sync.WaitGroup
	begin := time.Now()
	for i := range clients {
		work.Go(func() {
			tenant := i % len(projects)
			c := w.clientOf(tenant, w.proxy)
			for n := 0; ctx.Err() == nil; n++ {
				arguments := map[string]any{}
				if tool == "create_task" {
					arguments = map[string]any{"project_id": projects[tenant], "title": fmt.Sprintf("%d %d", i, n)}
				}
				start := time.Now()
				if got := c.call(context.Background(), "", tool, arguments, ""); got.answered && !got.failed {
					mu.Lock()
					times = append(times, time.Since(start))
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	if len(times) == 0 {
		return 0, 0, 0
	}
	slices.Sort(times)
	at := func(share float64) float64 {
		return float64(times[int(share*float64(len(times)-1))].Microseconds()) / 1000
	}
	return float64(len(times)) / time.Since(begin).Seconds(), at(0.5), at(0.99)
}
