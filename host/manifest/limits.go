package manifest

import (
	"fmt"

	"github.com/hako-run/hako/internal/strictyaml"
)

// Texts are the limits as one writes them in a manifest or the configuration, by key.
func (l Limits) Texts() map[string]string {
	return map[string]string{
		"time": l.Time.String(), "cpu": fmt.Sprint(l.CPU), "memory": strictyaml.FormatSize(l.Memory),
		"input":  strictyaml.FormatSize(l.Input),
		"output": strictyaml.FormatSize(l.Output), "log": strictyaml.FormatSize(l.Log),
		"concurrency": fmt.Sprint(l.Concurrency),
		"queue":       fmt.Sprint(l.Queue), "queueWait": l.QueueWait.String(), "rate": fmt.Sprint(l.Rate),
		"openFiles": fmt.Sprint(l.OpenFiles),
		"requests":  fmt.Sprint(l.Requests),
		"calls":     fmt.Sprint(l.Calls), "parallelCalls": fmt.Sprint(l.ParallelCalls),
	}
}
