package metrics

import (
	"testing"
	"time"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// BenchmarkCall counts what a call over MCP that is answered from an instance gives to count, one after the other and
// from several goroutines at once.
func BenchmarkCall(b *testing.B) {
	count := func(m *Metrics, trace string) {
		m.CallStarted(&pipeline.Running{Method: abi.CallTool})
		m.InstanceRestored("echo", 3*time.Microsecond)
		m.CallQueued("echo", 100*time.Nanosecond)
		m.CallEnded(pipeline.Record{
			Caller: pipeline.Caller{Frontend: pipeline.FrontendHTTP}, Method: abi.CallTool, Name: "echo",
			Source:  "echo",
			Outcome: pipeline.OK,
			Input:   30, Output: 100, Steps: 200, Duration: 25 * time.Microsecond, TraceID: trace,
		})
		m.RequestAnswered("session", abi.CallTool, 50*time.Microsecond)
	}
	for name, trace := range map[string]string{"plain": "", "traced": "4bf92f3577b34da6a3ce929d0e0e4736"} {
		b.Run(name, func(b *testing.B) {
			m := New("bench")
			b.ReportAllocs()
			for b.Loop() {
				count(m, trace)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			m := New("bench")
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					count(m, trace)
				}
			})
		})
	}
}
