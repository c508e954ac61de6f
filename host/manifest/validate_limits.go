package manifest

import (
	"time"

	"github.com/hako-run/hako/internal/strictyaml"
)

// limits checks that each stated limit is one that a host can keep.
func (v *validation) limits(path string, l Limits) {
	between(v, path+".time", l.Time, time.Millisecond, time.Hour)
	between(v, path+".cpu", l.CPU, 1, 100_000_000)
	between(v, path+".queueWait", l.QueueWait, time.Millisecond, time.Hour)
	v.size(path+".memory", l.Memory, 1<<20, 4<<30)
	v.size(path+".input", l.Input, 1<<10, 256<<20)
	v.size(path+".output", l.Output, 1<<10, 256<<20)
	v.size(path+".log", l.Log, 1, 16<<20)
	between(v, path+".concurrency", l.Concurrency, 1, 1024)
	between(v, path+".queue", l.Queue, 1, 100_000)
	between(v, path+".rate", l.Rate, 1, 1_000_000)
	between(v, path+".openFiles", l.OpenFiles, 1, 1024)
	between(v, path+".requests", l.Requests, 1, 100_000)
	between(v, path+".calls", l.Calls, 1, 1000)
	between(v, path+".parallelCalls", l.ParallelCalls, 1, 64)
}

// toolLimits checks the limits of one tool.
func (v *validation) toolLimits(path string, l Limits) {
	v.limits(path, l)
	for key, stated := range map[string]bool{
		"memory":        l.Memory != 0,
		"concurrency":   l.Concurrency != 0,
		"queue":         l.Queue != 0,
		"queueWait":     l.QueueWait != 0,
		"requests":      l.Requests != 0,
		"calls":         l.Calls != 0,
		"parallelCalls": l.ParallelCalls != 0,
	} {
		if stated {
			v.Add(path+"."+key, "applies to the whole plugin: move it to the manifest's limits")
		}
	}
}

func between[T int | time.Duration](v *validation, path string, value, least, most T) {
	if value != 0 && (value < least || value > most) {
		v.Add(path, "must be between %v and %v", least, most)
	}
}

func (v *validation) size(path string, value, least, most int64) {
	if value != 0 && (value < least || value > most) {
		v.Add(path, "must be between %s and %s", strictyaml.FormatSize(least), strictyaml.FormatSize(most))
	}
}
