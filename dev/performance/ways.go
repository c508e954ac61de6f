package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// Prefixes of the keys that have a table of their own.
const (
	waysPrefix  = "ways_"
	partsPrefix = "part_"
)

// named is a part of a key and what it stands for.
type named struct{ key, what string }

var works = []named{
	{"small", "20 bytes of JSON in and out"},
	{"compute", "a recursion of 57,000 calls"},
	{"mib", "1 MiB of JSON in and out"},
}

var ways = []named{
	{"native", "the same function in Go, with its JSON"},
	{"reused", "an instance that is used again as it is (`state: shared`)"},
	{"clean", "an instance that is put back after each call (`state: call`, the default)"},
	{"fresh", "an instance that is started for the call"},
	{"extism", "a guest of the Extism ABI in this host: fresh too, since Go draws random numbers when it starts"},
	{"extism_sdk", "the same guest in the Extism SDK for Go, one reused instance for each caller, no limits"},
}

var callers = []int{1, 8, 64}

const waysHead = `## Ways to call a function

One function, called in six ways by 1, 8 and 64 callers at once: the median latency, and the processor time of a call with all that goes on
beside it, in microseconds. With more callers than processors the latency is mostly waiting for one.

`

func renderWays(out io.Writer, results map[string]measurement.Result) {
	fmt.Fprint(out, waysHead)
	for _, way := range ways {
		fmt.Fprintf(out, "- `%s`: %s\n", way.key, way.what)
	}
	for _, work := range works {
		fmt.Fprintf(out, "\n%s:\n\n| |", work.what)
		for _, n := range callers {
			fmt.Fprintf(out, " %d: latency | cpu |", n)
		}
		fmt.Fprint(out, "\n| --- | --- | --- | --- | --- | --- | --- |\n")
		for _, way := range ways {
			fmt.Fprintf(out, "| `%s` |", way.key)
			for _, n := range callers {
				key := waysPrefix + work.key + "_" + way.key + "_c" + strconv.Itoa(n)
				fmt.Fprintf(out, " %s | %s |", cell(results, key+"_us"), cell(results, key+"_cpu_us"))
			}
			fmt.Fprintln(out)
		}
	}
}

func cell(results map[string]measurement.Result, key string) string {
	r, ok := results[key]
	if !ok {
		return ""
	}
	return number(r.Value)
}

var parts = []named{
	{"rewrite_ms", "rewrite the module"},
	{"compile_cold_ms", "compile it, with nothing in the cache"},
	{"compile_warm_ms", "read it from the cache"},
	{"image_make_ms", "first call: start the guest and make the image of it"},
	{"image_load_ms", "first call in a new process: load the image"},
}

func renderParts(out io.Writer, results map[string]measurement.Result) {
	fmt.Fprint(out, "\n## Part by part\n\nWhat a plugin of 4 MB from the Go compiler costs before its second call, in milliseconds. `fuel_*` and the difference\n"+
		"between `clean` and `reused` above are the other parts.\n\n| | ms |\n| --- | --- |\n")
	for _, part := range parts {
		fmt.Fprintf(out, "| %s | %s |\n", part.what, cell(results, partsPrefix+part.key))
	}
}
