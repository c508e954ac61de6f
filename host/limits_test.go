package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// TestHostileManifestLimits gives manifests no more than the ceilings, and no tool more than the operator has set.
func TestHostileManifestLimits(t *testing.T) {
	t.Parallel()
	const asked = "time: 1h, memory: 4GiB, output: 200MiB, concurrency: 1024, queue: 10"
	for name, test := range map[string]struct {
		options Options
		want    manifest.Limits // of the plugin; zero: not looked at
		tool    manifest.Limits
		warned  string
	}{
		"held to the default ceilings": {
			want: manifest.Limits{Time: 10 * time.Minute, Memory: 1 << 30, Output: 64 << 20, Concurrency: 256,
				Queue: 10},
			tool:   manifest.Limits{Time: 10 * time.Minute, Output: 64 << 20},
			warned: "raise ceilings.memory, or set plugin.p.limits.memory",
		},
		"held to the operator's ceilings": {
			options: Options{Ceilings: manifest.Limits{Memory: 128 << 20, Time: time.Minute}},
			want:    manifest.Limits{Time: time.Minute, Memory: 128 << 20, Concurrency: 256},
			tool:    manifest.Limits{Time: time.Minute, Output: 64 << 20},
			warned:  "asked=4GiB given=128MiB",
		},
		"what the operator sets passes them": {
			options: Options{Settings: map[string]Settings{"p": {Limits: manifest.Limits{Memory: 2 << 30,
				Time: 2 * time.Hour}}}},
			want:   manifest.Limits{Memory: 2 << 30, Time: 2 * time.Hour},
			tool:   manifest.Limits{Output: 64 << 20}, // the time is the operator's
			warned: "ceilings.output",
		},
		"what the operator sets for all holds for tools": {
			options: Options{Limits: manifest.Limits{Time: time.Second, Output: 1 << 20}},
			want:    manifest.Limits{Time: time.Second, Output: 1 << 20},
			warned:  "ceilings.concurrency",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := manifest.Parse([]byte("name: p\nversion: 1.0.0\ndescription: P.\nlimits: {" + asked + "}\n" +
				"tools: [{name: a, description: A., inputSchema: {type: object}, limits: {time: 1h, output: 200MiB}}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			test.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			h, err := New(&test.options)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if got := h.limits(m); got != test.want.Or(got) {
				t.Errorf("the plugin gets %v, want %v", got, test.want)
			}
			if got := h.bounded(m).Tools[0].Limits; got != test.tool {
				t.Errorf("the tool gets %v, want %v", got, test.tool)
			}
			if m.Tools[0].Limits.Time != time.Hour {
				t.Error("the manifest was changed")
			}
			if !strings.Contains(log.String(), test.warned) {
				t.Errorf("logged %q, want %q", log.String(), test.warned)
			}
		})
	}
}
