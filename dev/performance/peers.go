package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/dev/kit/measurement"
)

// servers are the columns of the table of peers.
var servers = []named{
	{"hako_rust", "hako, Rust guest"},
	{"hako_go", "hako, Go guest"},
	{"hako_component", "hako, wassette's component"},
	{"wassette", "wassette"},
	{"hyper_mcp", "hyper-mcp"},
}

// loads are its rows: parts of keys, and what they are. Of a load with several numbers a row has all.
var loads = []struct {
	keys []string
	what string
}{
	{[]string{"small_c1_p50_ms"}, "20 bytes, 1 client, p50 (ms)"},
	{[]string{"small_c64_rate"}, "20 bytes, 64 clients (calls/s)"},
	{[]string{"small_c512_rate"}, "20 bytes, 512 clients (calls/s)"},
	{[]string{"small_c512_cpu_ms"}, "the same, processor time of a call (ms)"},
	{[]string{"22k_c1_cpu_ms", "22k_c8_cpu_ms"}, "22 KB of text, processor time of a call, 1 / 8 clients (ms)"},
	{[]string{"900k_c1_cpu_ms", "900k_c8_cpu_ms"}, "0.9 MB of text, processor time of a call, 1 / 8 clients (ms)"},
	{[]string{"900k_c1_p50_ms"}, "0.9 MB of text, 1 client, p50 (ms)"},
	{[]string{"900k_c8_rate"}, "0.9 MB of text, 8 clients (calls/s)"},
	{[]string{"rest_rss_mib"}, "resident at rest (MiB)"},
	{[]string{"after_load_rss_mib"}, "resident after 512 clients (MiB)"},
	{[]string{"large_peak_rss_mib"}, "resident, highest, 8 clients with 0.9 MB (MiB)"},
}

const peersHead = `## Beside other hosts

` +
	"`make bench-peers`" + ` puts an echo tool in each host and the same load on it, over MCP's streamable HTTP 2025-03-26 with sessions. A host
is left out unless these variables name its program and its guest:

| host | program | guest |
| --- | --- | --- |
| hako | ` + "`bin/hako`" +
	` | of the Go compiler; of Rust, where cargo and its target wasm32-wasip1 are; that of wassette |
| [wassette](https://github.com/microsoft/wassette) 0.5.0 | ` + "`HAKO_PEER_WASSETTE`" + ` | ` +
	"`HAKO_PEER_WASSETTE_GUEST`" + `: a component that exports ` + "`echo: func(text: string) -> string`" + ` |
| [hyper-mcp](https://github.com/hyper-mcp-rs/hyper-mcp) 0.2.3 | ` + "`HAKO_PEER_HYPER_MCP`" + ` | ` +
	"`HAKO_PEER_HYPER_MCP_GUEST`" + `: an Extism plugin with the tool ` + "`echo`" + ` |

They do not do the same work: hyper-mcp uses one instance per session again as it is; wassette makes a new one for each call, without a limit on
time or memory; hako starts each call clean, metered and limited, decides it by policy, scans it for secrets and records it. Both peers write a
response in two pieces without TCP_NODELAY, so with few clients a call of theirs waits 40 ms for an acknowledgement: compare at 512 clients,
and by processor time. Rates and latencies depend on what else the machine does.

`

func renderPeers(out io.Writer, results []measurement.Result) error {
	fmt.Fprint(out, peersHead)
	byKey := indexResults(results)
	var measured []named
	for _, s := range servers {
		if _, ok := byKey["peer_"+s.key+"_rest_rss_mib"]; ok {
			measured = append(measured, s)
		}
	}
	fmt.Fprint(out, "| |")
	for _, s := range measured {
		fmt.Fprintf(out, " %s |", s.what)
	}
	fmt.Fprintf(out, "\n|%s\n", strings.Repeat(" --- |", len(measured)+1))
	for _, row := range loads {
		fmt.Fprintf(out, "| %s |", row.what)
		for _, s := range measured {
			var values []string
			for _, key := range row.keys {
				values = append(values, cell(byKey, "peer_"+s.key+"_"+key))
			}
			fmt.Fprintf(out, " %s |", strings.Join(values, " / "))
		}
		fmt.Fprintln(out)
	}
	return nil
}
