// Command performance renders the results in /bench, which is not in git, as docs/performance.md. "make bench" and its siblings run it; each
// renders its own section.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// goal is a number to reach. Least reports whether more is better.
type goal struct {
	key, what string
	bar       float64
	least     bool
}

var goals = []goal{
	{"mcp_http_throughput_ratio",
		"calls a second over MCP HTTP, 64 clients, the worse of both protocol versions: sandboxed tool / same function registered natively", 0.9, true},
	{"mcp_http_p99_ratio", "the same, 99th percentile of the time of a call", 1.25, false},
	{"metrics_throughput_ratio", "calls a second over MCP HTTP, 64 clients: metrics on / off", 0.97, true},
	{"clean_latency_ratio", "a call with 24 KB of JSON in and out on a clean instance / on a reused one", 1.15, false},
	{"clean_cpu_ratio", "the same, processor time, resets included", 1.5, false},
	{"fuel_loop_ratio", "a tight loop with fuel / without", 2, false},
	{"fuel_recursion_ratio", "a recursion with fuel / without", 1.35, false},
	{"fuel_gojson_ratio", "a Go guest that decodes JSON, with fuel / without", 1.12, false},
	{"deadline_overshoot_ms",
		"how late the worst hostile guest is stopped: loops, recursion, floods of host calls, of memory, of bulk operations", 50, false},
	{"neighbour_p95_ratio",
		"one caller's small calls beside 200 spinning calls of another plugin / alone, 95th percentile over MCP HTTP", 3, false},
	{"file_1mib_ratio", "1 MiB through `file_read` / the same tool registered natively", 3, false},
	{"start_50_plugins_ms", "start with 50 plugins of 3 MB and a warm cache, until `tools/list` is answered", 150,
		false},
	{"idle_plugin_mib", "memory of a plugin that nobody calls", 1, false},
	{"first_call_cold_ms", "a new 3 MB Go plugin of which nothing is cached, until its first answer", 1000, false},
	{"pipeline_overhead_us",
		"validation, a policy of 100 rules, a quota, the audit log and metrics around a call that does nothing", 50,
		false},
	{"governance_overhead_us", "the policy, the quota and the audit log of it", 50, false},
	{"policy_10k_rules_us", "the same with 10,000 rules and a caller that was not seen before", 200, false},
	{"audit_records_per_second",
		"records that outlive the end of hako when `Append` returns, and are on the disk a second later; 8 writers", 5000, true},
	{"code_overhead_ms",
		"a program of `run_code` with 30 calls, one after the other, beyond the time of the 30 calls, median", 2,
		false},
	{"code_calls_per_core_second", "calls a second that programs make, on one processor", 1000, true},
	{"code_parallel_50ms_ms", "a program with 8 calls of 50 ms at once", 60, false},
	{"code_search_10k_ms", "`find_tools` in a catalog of 10,000 tools, under a policy of 100 rules", 20, false},
	{"extism_flood_kept_mib",
		"resident memory that is left of a flood of calls to Extism plugins that exceed memory, output and log, a minute later", 32, false},
	{"large_peak_rss_mib",
		"the most resident memory while eight answers of 0.9 MB are under way, with 14 plugins loaded", 300, false},
	{"text_1mib_cpu_ms_rust", "processor time of a call with 0.9 MB of text in and out, the guest in Rust", 8, false},
	{"text_22k_cpu_ms_rust", "the same with 22 KB", 0.35, false},
	{"text_1mib_cpu_ms_go", "with 0.9 MB, the guest in Go", 20, false},
	{"text_22k_cpu_ms_go", "with 22 KB, the guest in Go", 0.8, false},
	{"text_1mib_peak_rss_mib",
		"the most resident memory while eight clients call the guest in Rust with 0.9 MB of text", 300, false},
	{"rest_rss_mib",
		"resident memory of a server with the shipped plugins that was started with cached code and is not called", 60, false},
	{"rest_private_mib", "the same, without the pages of the program's file", 40, false},
	{"after_load_rss_mib", "resident memory after 64 clients have called", 200, false},
	{"after_load_kept_rss_mib", "the same, a minute later", 90, false},
	{"after_large_requests_rss_mib", "resident memory a minute after 270 calls with 3.9 MB of arguments", 110, false},
	{"cli_call_ms", "`hako call` of a shipped plugin with cached code", 100, false},
	{"cli_call_rss_mib", "its highest resident memory", 60, false},
	{"binary_mb", "the size of the program", 100, false},
	{"audit_verify_1m_seconds", "verifying an audit log of a million records", 10, false},
}

const (
	folder = "docs/images"
	target = "docs/performance.md"
)

// sections are the parts of the page, each with the target of the Makefile that writes its results.
var sections = []struct {
	target string
	source []string
	render func(out io.Writer, results []measurement.Result) error
}{
	{"bench", []string{"bench/results.json"}, render},
	{"bench-growth", []string{"bench/growth.json", "bench/replicas.json"}, renderGrowth},
	{"bench-peers", []string{"bench/peers.json"}, renderPeers},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// run renders the sections that have been measured here.
func run() error {
	page, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := string(page)
	for _, section := range sections {
		var results []measurement.Result
		for _, source := range section.source {
			list, err := measurement.Read(source)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			results = append(results, list...)
		}
		if len(results) == 0 {
			continue
		}
		text, err = replaceSection(text, section.target,
			func(out io.Writer) error { return section.render(out, results) })
		if err != nil {
			return err
		}
	}
	return os.WriteFile(target, []byte(text), 0o644)
}

const head = `# Performance

%s made this part: one run, one process, on %s/%s with %d processors. Ratios compare two ways
of doing the same within that run, so they say more than times, which depend on the machine and on what else it did.

## Numbers to reach

| key | what | measured | bar | |
| --- | --- | --- | --- | --- |
`

const middle = `
The bars in milliseconds and microseconds were set on a machine where the native tool makes some 13,000 calls a
second (` + "`mcp_http_2025_native_c64_rate`" + `, below). A slower machine misses some of them for that reason alone.
A call with 22 KB to the guest in Rust missed its bar there too: it took 0.37 to 0.49 ms.

Where a bar is missed, this is in the way. A guest that starts each call from its image allocates again what a
reused guest has kept, and a reset copies back the pages that the call wrote: 3 to 5 microseconds for a small
call. The fastest of seven instances counts, because a guest that handles JSON takes up to twice as long where
its native stack and its memory agree in the lowest bits of their addresses, which is chance. Against the native
tool over HTTP, whose own work takes some microseconds, a call pays for the guest's run and reset and for the
checks of the frontend. With fuel a Go guest can be faster than without: beside counting, the rewriter takes
jumps directly that the Go compiler leads through a switch.

More than half of the memory of ` + "`hako call`" + ` are pages of the program's file, most of them
touched by the initialization of packages. The machine code of a plugin is mapped from the cache; the kernel
maps 64 KiB around each page that is touched, which makes half of it resident. How much of the program's file is
resident depends on how the file came into the page cache, too: on Linux 6.18 a fault maps more of a file that was
written in large pieces. ` + "`hako version`" + ` had 37 MiB after its file was read from the disk, and 62 MiB after a
copy in pieces of 4 MiB. The benchmarks start a copy that was written page by page. Most of the memory at large
answers is there before: the data of the loaded plugins (unused ones are unloaded after ten minutes) and the
program. The rest is garbage, of which the server lets 64 MiB gather, and the memories of eight guests.

`

const last = `
## Everything else

| key | value | unit |
| --- | --- | --- |
`

func render(out io.Writer, results []measurement.Result) error {
	fmt.Fprintf(out, head, "`make bench`", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	byKey := indexResults(results)
	for _, g := range goals {
		fmt.Fprintln(out, g.row(byKey))
	}
	fmt.Fprint(out, middle)
	renderWays(out, byKey)
	renderParts(out, byKey)
	fmt.Fprint(out, last)
	for _, r := range results {
		if !strings.HasPrefix(r.Key, waysPrefix) && !strings.HasPrefix(r.Key, partsPrefix) {
			fmt.Fprintf(out, "| `%s` | %s | %s |\n", r.Key, number(r.Value), r.Unit)
		}
	}
	return nil
}

func indexResults(results []measurement.Result) map[string]measurement.Result {
	byKey := map[string]measurement.Result{}
	for _, r := range results {
		byKey[r.Key] = r
	}
	return byKey
}

func (g goal) row(results map[string]measurement.Result) string {
	bar := "at most " + number(g.bar)
	if g.least {
		bar = "at least " + number(g.bar)
	}
	r, ok := results[g.key]
	measured, verdict := "not measured", ""
	if ok {
		measured, verdict = number(r.Value), "missed"
		if g.least == (r.Value >= g.bar) || r.Value == g.bar {
			verdict = "reached"
		}
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |", g.key, g.what, measured, bar, verdict)
}

// number gives three significant digits, or all before the point.
func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
