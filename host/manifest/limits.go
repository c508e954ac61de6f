package manifest

import (
	"cmp"
	"strconv"
	"time"

	"github.com/hako-run/hako/internal/strictyaml"
)

// Limits bound a call or a plugin. Zero means: not stated here, so the next wider scope decides. The host's own
// defaults are in DefaultLimits.
type Limits struct {
	// Time is the wall time of one call, waiting in the queue not included.
	Time time.Duration
	// CPU bounds what one call computes, in millions of steps. A step is a function call, a turn of a loop, or some
	// hundred instructions without either; moving 16 bytes in bulk counts as one too. A core takes some 100 to 1,000
	// million steps a second.
	CPU int
	// Memory is the most linear memory of one instance, in bytes.
	Memory int64
	// Input and Output bound the arguments and the result of one call, in bytes.
	Input  int64
	Output int64
	// Log bounds what one call may log, in bytes.
	Log int64
	// Concurrency limits the calls of the plugin that run at once, Queue those that wait, and QueueWait their wait.
	Concurrency int
	Queue       int
	QueueWait   time.Duration
	// Rate limits the calls of the plugin per minute.
	Rate int
	// OpenFiles limits the files that one call holds open.
	OpenFiles int
	// Requests limits the HTTP requests of one call.
	Requests int
	// Calls limits the calls of other tools that one call makes, ParallelCalls those that run at once; others wait.
	Calls         int
	ParallelCalls int
}

// DefaultLimits apply where neither the operator nor the manifest says otherwise.
var DefaultLimits = Limits{
	Time:          30 * time.Second,
	CPU:           10_000,
	Memory:        64 << 20,
	Input:         4 << 20,
	Output:        4 << 20,
	Log:           64 << 10,
	Concurrency:   16,
	Queue:         256,
	QueueWait:     10 * time.Second,
	Rate:          6000,
	OpenFiles:     64,
	Requests:      100,
	Calls:         50,
	ParallelCalls: 8,
}

// DefaultCeilings are the most that a manifest gets of each limit unless the operator says otherwise.
var DefaultCeilings = Limits{
	Time:          10 * time.Minute,
	CPU:           1_000_000,
	Memory:        1 << 30,
	Input:         64 << 20,
	Output:        64 << 20,
	Log:           1 << 20,
	Concurrency:   256,
	Queue:         4096,
	QueueWait:     5 * time.Minute,
	Rate:          1_000_000,
	OpenFiles:     512,
	Requests:      10_000,
	Calls:         1000,
	ParallelCalls: 64,
}

// LimitKeys are the keys of Limits, as manifests and the configuration have them.
var LimitKeys = []string{
	"time", "cpu", "memory", "input", "output", "log", "concurrency", "queue", "queueWait", "rate", "openFiles",
	"requests", "calls", "parallelCalls",
}

// Read reads limits.
func (l *Limits) Read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"time":          strictyaml.Duration(&l.Time),
		"cpu":           strictyaml.Count(&l.CPU),
		"memory":        strictyaml.Size(&l.Memory),
		"input":         strictyaml.Size(&l.Input),
		"output":        strictyaml.Size(&l.Output),
		"log":           strictyaml.Size(&l.Log),
		"concurrency":   strictyaml.Count(&l.Concurrency),
		"queue":         strictyaml.Count(&l.Queue),
		"queueWait":     strictyaml.Duration(&l.QueueWait),
		"rate":          strictyaml.Count(&l.Rate),
		"openFiles":     strictyaml.Count(&l.OpenFiles),
		"requests":      strictyaml.Count(&l.Requests),
		"calls":         strictyaml.Count(&l.Calls),
		"parallelCalls": strictyaml.Count(&l.ParallelCalls),
	})
}

// Texts are the limits as one writes them in a manifest or the configuration, by key.
func (l Limits) Texts() map[string]string {
	return map[string]string{
		"time":          l.Time.String(),
		"cpu":           strconv.Itoa(l.CPU),
		"memory":        strictyaml.FormatSize(l.Memory),
		"input":         strictyaml.FormatSize(l.Input),
		"output":        strictyaml.FormatSize(l.Output),
		"log":           strictyaml.FormatSize(l.Log),
		"concurrency":   strconv.Itoa(l.Concurrency),
		"queue":         strconv.Itoa(l.Queue),
		"queueWait":     l.QueueWait.String(),
		"rate":          strconv.Itoa(l.Rate),
		"openFiles":     strconv.Itoa(l.OpenFiles),
		"requests":      strconv.Itoa(l.Requests),
		"calls":         strconv.Itoa(l.Calls),
		"parallelCalls": strconv.Itoa(l.ParallelCalls),
	}
}

// Or returns l with every zero field taken from wider.
func (l Limits) Or(wider Limits) Limits {
	return l.combine(wider, func(a, b int64) int64 { return cmp.Or(a, b) })
}

// Within returns l with no field larger than that of ceilings.
func (l Limits) Within(ceilings Limits) Limits {
	return l.combine(ceilings, func(a, b int64) int64 { return min(a, b) })
}

// Beyond returns the fields of l that are larger than those of o; the others are zero.
func (l Limits) Beyond(o Limits) Limits {
	return l.combine(o, func(a, b int64) int64 {
		if a > b {
			return a
		}
		return 0
	})
}

// Max returns the larger of each field.
func (l Limits) Max(o Limits) Limits {
	return l.combine(o, func(a, b int64) int64 { return max(a, b) })
}

// Without returns the fields of l that o does not state.
func (l Limits) Without(o Limits) Limits {
	return l.combine(o, func(a, b int64) int64 {
		if b != 0 {
			return 0
		}
		return a
	})
}

// combine returns the limits that f makes of each of l and o.
func (l Limits) combine(o Limits, f func(a, b int64) int64) Limits {
	count := func(a, b int) int { return int(f(int64(a), int64(b))) }
	duration := func(a, b time.Duration) time.Duration { return time.Duration(f(int64(a), int64(b))) }
	return Limits{
		Time:          duration(l.Time, o.Time),
		CPU:           count(l.CPU, o.CPU),
		Memory:        f(l.Memory, o.Memory),
		Input:         f(l.Input, o.Input),
		Output:        f(l.Output, o.Output),
		Log:           f(l.Log, o.Log),
		Concurrency:   count(l.Concurrency, o.Concurrency),
		Queue:         count(l.Queue, o.Queue),
		QueueWait:     duration(l.QueueWait, o.QueueWait),
		Rate:          count(l.Rate, o.Rate),
		OpenFiles:     count(l.OpenFiles, o.OpenFiles),
		Requests:      count(l.Requests, o.Requests),
		Calls:         count(l.Calls, o.Calls),
		ParallelCalls: count(l.ParallelCalls, o.ParallelCalls),
	}
}
