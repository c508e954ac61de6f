package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
)

// BenchmarkAPI answers requests with 1,000 tools on offer, all of which were called in each step of the last hour.
func BenchmarkAPI(b *testing.B) {
	w := newWorld(b, nil)
	var tools []manifest.Tool
	for i := range 1_000 {
		tools = append(tools, manifest.Tool{Name: fmt.Sprintf("tool_%d", i),
			Description: manifest.Text{"en": strings.Repeat("Does something. ", 20)}})
	}
	for i := range 5 {
		w.offer(fmt.Sprintf("many-%d", i), echo, tools[200*i:200*(i+1)]...)
	}
	for range 360 {
		for i := range tools {
			w.traffic.CallEnded(ended(tools[i].Name, pipeline.OK, time.Duration(i)*time.Millisecond))
		}
		w.clock.add(10 * time.Second)
	}
	w.write(10_000, "tool_1", "aki")
	viewer := w.as(console.Viewer)
	for _, path := range []string{
		"session", "overview", "plugins", "tools?limit=200", "tools?q=999", "tools/tool_500", "series?tool=tool_5",
		"series/top?limit=200", "errors", "approvals",
		"audit?limit=50", "audit?text=nothing", "configuration",
	} {
		b.Run(path, func(b *testing.B) {
			size := 0
			for b.Loop() {
				got := viewer.get(path)
				if size = len(got.body); got.status != http.StatusOK {
					b.Fatalf("%d %s", got.status, got.body)
				}
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
