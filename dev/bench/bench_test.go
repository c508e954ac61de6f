// Package bench compares hako with the same work done natively, in one process and one run, and writes the results as
// JSON.
package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/dev/kit/measurement"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/metrics"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/processors"
	"github.com/hako-run/hako/pdk/abi"
)

var (
	out      = flag.String("hako.out", "", "write the results to this file; without it nothing is measured")
	duration = flag.Duration("hako.duration", 2*time.Second, "how long each load lasts")
)

// likeServe configures the Go runtime like hako serve.
func likeServe() {
	debug.SetGCPercent(400)
	processors.Spare()
}

type results []measurement.Result

func (r *results) add(t *testing.T, key string, value float64, unit string) {
	t.Helper()
	r.addResult(t, measurement.Result{Key: key, Value: value, Unit: unit})
}

// addPoint adds the point at x of a line of a curve.
func (r *results) addPoint(t *testing.T, curve string, x int, line string, value float64, unit string) {
	t.Helper()
	r.addResult(t, measurement.Point(curve, x, line, value, unit))
}

func (r *results) addResult(t *testing.T, result measurement.Result) {
	t.Helper()
	t.Logf("%-44s %10.3f %s", result.Key, result.Value, result.Unit)
	*r = append(*r, result)
}

func TestBench(t *testing.T) {
	if *out == "" {
		t.Skip("make bench runs this")
	}
	likeServe()
	var r results
	// This one comes first: a child's highest memory begins with that of its parent.
	loaded := r.rest(t)
	t.Run("http", func(t *testing.T) { r.http(t) })
	t.Run("metrics", func(t *testing.T) { r.metrics(t) })
	t.Run("kept", func(t *testing.T) { r.kept(t, loaded) })
	t.Run("file", func(t *testing.T) { r.file(t) })
	t.Run("broker", func(t *testing.T) { r.broker(t) })
	t.Run("sql", func(t *testing.T) { r.sql(t) })
	t.Run("sandbox", func(t *testing.T) { r.sandbox(t) })
	t.Run("ways", func(t *testing.T) { r.ways(t) })
	t.Run("parts", func(t *testing.T) { r.parts(t) })
	t.Run("fuel", func(t *testing.T) { r.fuel(t) })
	t.Run("cold", func(t *testing.T) { r.cold(t) })
	t.Run("component", func(t *testing.T) { r.component(t) })
	t.Run("pipeline", func(t *testing.T) { r.pipeline(t) })
	t.Run("code", func(t *testing.T) { r.code(t) })
	t.Run("govern", func(t *testing.T) { r.govern(t) })
	t.Run("chat", func(t *testing.T) { r.chat(t) })
	t.Run("slack", func(t *testing.T) { r.slack(t) })
	t.Run("start", func(t *testing.T) { r.start(t) })
	t.Run("neighbour", func(t *testing.T) { r.neighbour(t) })
	t.Run("sessions", func(t *testing.T) { r.sessions(t) })
	t.Run("text", func(t *testing.T) { r.text(t) })
	t.Run("memory", func(t *testing.T) { r.memory(t) })
	if err := measurement.Write(*out, r); err != nil {
		t.Fatal(err)
	}
}

type echo struct {
	Text string `json:"text"`
}

// native is an MCP server with the same function registered with the SDK, without hako.
func native(t *testing.T, dir string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "native", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest,
		in echo) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	type fileArgs struct {
		Path string `json:"path"`
	}
	type fileResult struct {
		Content string `json:"content"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "file_read"}, func(_ context.Context, _ *mcp.CallToolRequest,
		in fileArgs) (*mcp.CallToolResult, fileResult, error) {
		data, err := os.ReadFile(filepath.Join(dir, in.Path))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}},
			fileResult{string(data)}, err
	})
	get := mcp.NewStreamableHTTPHandler
	stateful := get(func(*http.Request) *mcp.Server { return server }, nil)
	stateless := get(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	}))
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

const echoManifest = `
name: NAME
version: 1.0.0
description: Echoes.
tools:
  - name: TOOL
    description: Echoes.
    inputSchema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
permissions: {http: [{name: any, url: "https://example.com/", reason: the guest imports it}]}
limits: {rate: 1000000}
`

// echoPlugin returns the guest probe with a manifest for its tool echo.
func echoPlugin(t testing.TB, name, tool string) []byte {
	t.Helper()
	return pluginOf(t, echoManifest, name, tool)
}

// pluginOf returns the guest probe with a manifest in the form of echoManifest.
func pluginOf(t testing.TB, text, name, tool string) []byte {
	t.Helper()
	text = strings.NewReplacer("NAME", name, "TOOL", tool).Replace(text)
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/probe"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func filesPlugin(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(guesttest.Root(), "manifests", "files.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := wasmfile.Embed(guesttest.Build(t, "plugins/files"), map[string][]byte{abi.ManifestSection: text})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// sandboxed returns hako with the plugins, composed like in hako serve, including metrics.
func sandboxed(t *testing.T, dir string, plugins ...[]byte) string {
	t.Helper()
	return observed(t, metrics.New("bench"), dir, plugins...)
}

// observed returns hako with the plugins and metrics. Nil metrics count nothing.
func observed(t *testing.T, numbers *metrics.Metrics, dir string, plugins ...[]byte) string {
	t.Helper()
	options := &host.Options{
		CacheDir: guesttest.CacheDir(t), ShippedMounts: map[string]string{"workspace": dir},
		Limits: manifest.Limits{Rate: 100_000_000, Queue: 10_000, Concurrency: 64}, Processors: processors.Guests(),
	}
	for i, wasm := range plugins {
		options.Shipped = append(options.Shipped, host.Shipped{File: fmt.Sprintf("%d.wasm", i),
			Wasm: guesttest.Bytes(wasm)})
	}
	if numbers != nil {
		options.Observer = numbers
	}
	h, err := host.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, status := range h.Plugins() {
		if status.State != host.Active {
			t.Fatalf("%s: %s", status.Name, status.Reason)
		}
	}
	frontend := &mcpserver.Options{Limits: limits.Limits{Calls: 10_000, CallsPerClient: 10_000, Rate: 10_000_000,
		Burst: 10_000_000, Sessions: 10_000}}
	if numbers != nil {
		frontend.Observer = numbers
	}
	server, err := mcpserver.New(h.Catalog(), h, frontend)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return serve(t, server.Handler()) + "/mcp"
}

// http compares the tool echo in both, at several numbers of clients and in both protocol versions.
func (r *results) http(t *testing.T) {
	dir := t.TempDir()
	urls := map[string]string{"native": native(t, dir), "sandboxed": sandboxed(t, dir, echoPlugin(t, "echo", "echo"))}
	const arguments, want = `{"text":"hello from a client"}`, "hello from a client"
	var worstRate, worstTail = 1e9, 0.0
	for _, version := range protocolVersions {
		for _, clients := range []int{1, 8, 64} {
			rates := map[string]rate{}
			for _, side := range []string{"native", "sandboxed"} { // one warm-up round
				load(t, urls[side], version, clients, "echo", arguments, want, *duration/4)
			}
			for _, side := range []string{"native", "sandboxed"} {
				rates[side] = load(t, urls[side], version, clients, "echo", arguments, want, *duration)
				prefix := fmt.Sprintf("mcp_http_%s_%s_c%d", version[:4], side, clients)
				r.add(t, prefix+"_rate", rates[side].perSecond, "calls/s")
				r.add(t, prefix+"_p50", ms(rates[side].p50), "ms")
				r.add(t, prefix+"_p99", ms(rates[side].p99), "ms")
			}
			rateRatio := rates["sandboxed"].perSecond / rates["native"].perSecond
			tailRatio := float64(rates["sandboxed"].p99) / float64(rates["native"].p99)
			key := fmt.Sprintf("mcp_http_%s_c%d", version[:4], clients)
			r.add(t, key+"_throughput_ratio", rateRatio, "sandboxed/native")
			r.add(t, key+"_p99_ratio", tailRatio, "sandboxed/native")
			if clients == 64 {
				worstRate, worstTail = min(worstRate, rateRatio), max(worstTail, tailRatio)
			}
		}
	}
	r.add(t, "mcp_http_throughput_ratio", worstRate, "sandboxed/native")
	r.add(t, "mcp_http_p99_ratio", worstTail, "sandboxed/native")
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// file reads 1 MiB of text through file_read and through the same tool registered natively.
func (r *results) file(t *testing.T) {
	dir := t.TempDir()
	content := strings.Repeat("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n", 1<<14)
	if err := os.WriteFile(filepath.Join(dir, "large.txt"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	urls := map[string]string{"native": native(t, dir), "sandboxed": sandboxed(t, dir, filesPlugin(t))}
	medians := map[string]time.Duration{}
	for _, side := range []string{"native", "sandboxed", "native", "sandboxed"} {
		medians[side] = load(t, urls[side], protocolVersions[0], 1, "file_read",
			`{"path":"large.txt"}`, "abcde", *duration).p50
	}
	r.add(t, "file_1mib_native", ms(medians["native"]), "ms")
	r.add(t, "file_1mib_sandboxed", ms(medians["sandboxed"]), "ms")
	r.add(t, "file_1mib_ratio", float64(medians["sandboxed"])/float64(medians["native"]), "sandboxed/native")
}

// pipeline measures the time that validation, policy, quota, audit and metrics add to a call whose backend does
// nothing.
func (r *results) pipeline(t *testing.T) {
	p := nothingPipeline(t, governance(t, 100))
	took := median(t, func() error {
		_, err := p.Call(t.Context(), nothingCall("aki"))
		return err
	})
	r.add(t, "pipeline_overhead_us", us(took), "us")
}

// nothingPipeline returns a pipeline with a tool that does nothing.
func nothingPipeline(t *testing.T, g pipeline.Governance) *pipeline.Pipeline {
	t.Helper()
	m, err := manifest.Parse([]byte(strings.NewReplacer("NAME", "nothing", "TOOL", "nothing").Replace(echoManifest)))
	if err != nil {
		t.Fatal(err)
	}
	c := new(catalog.Catalog)
	if err := c.Put(catalog.Source{Name: "nothing", Backend: nothing{}}, m); err != nil {
		t.Fatal(err)
	}
	return pipeline.New(c, &pipeline.Options{Observer: metrics.New("bench"), Governance: g})
}

func nothingCall(user string) *pipeline.Call {
	return &pipeline.Call{
		Caller:  pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: user},
		Request: abi.Request{Method: abi.CallTool, Name: "nothing", Arguments: json.RawMessage(`{"text":"hello"}`)},
	}
}

type nothing struct{}

func (nothing) Call(context.Context, *catalog.Invocation) (*abi.Response, error) {
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "done"}}}, nil
}

// samples is the number of measurements of a small operation.
const samples = 500

// median is the median time of f.
func median(t *testing.T, f func() error) time.Duration {
	t.Helper()
	times := make([]time.Duration, samples)
	for i := range times {
		start := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// start measures the time from the start to an answered tools/list with 50 plugins: with an empty cache directory, and
// with the one that the first start has filled.
func (r *results) start(t *testing.T) {
	const plugins = 50
	dir := t.TempDir()
	folder := filepath.Join(dir, "plugins")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	consents, err := grant.Load(filepath.Join(dir, "consents.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range plugins {
		name := fmt.Sprintf("p%d", i)
		wasm := echoPlugin(t, name, "echo"+name)
		if err := os.WriteFile(filepath.Join(folder, name+".wasm"), wasm, 0o644); err != nil {
			t.Fatal(err)
		}
		approve(t, consents, wasm)
	}
	time.Sleep(3 * time.Second) // the index omits files that have just changed
	options := &host.Options{Folders: []string{folder}, Consents: filepath.Join(dir, "consents.yaml"),
		CacheDir: filepath.Join(dir, "cache")}
	for _, kind := range []string{"cold", "warm"} {
		start := time.Now()
		s := startHost(t, options)
		_, data, err := s.client.Post(t.Context(), "tools/list", "",
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if n := strings.Count(string(data), `"name":"echop`); err != nil || n != plugins {
			t.Fatalf("%d tools, %v: %.300s", n, err, data)
		}
		key := "start_50_plugins_ms"
		if kind == "cold" {
			key = "start_50_plugins_cold_ms"
		}
		r.add(t, key, ms(time.Since(start)), "ms")
		if kind == "warm" {
			r.add(t, "idle_plugin_mib", idle(s.host, plugins), "MiB")
		}
		s.stop(t)
	}
}

// idle bounds the memory of one idle plugin: the heap with the host, divided by the number of plugins.
func idle(h *host.Host, plugins int) float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	runtime.KeepAlive(h)
	return float64(stats.HeapAlloc) / float64(plugins) / (1 << 20)
}

// approveIn records consent to a plugin in a new file.
func approveIn(t *testing.T, path string, wasm []byte) {
	t.Helper()
	consents, err := grant.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	approve(t, consents, wasm)
}

func approve(t *testing.T, consents *grant.File, wasm []byte) {
	t.Helper()
	module, err := wasmfile.Read(wasm)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(module.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	consent := grant.Consent{Name: m.Name, Version: m.Version, Digest: module.Digest,
		Asked: m.Permissions, ApprovedBy: "bench"}
	if err := consents.Approve(t.Context(), consent); err != nil {
		t.Fatal(err)
	}
}
