package mcpclient_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// bulkyTool is a tool whose schema has that many properties, each with a description of length bytes.
func bulkyTool(name string, properties, length int) map[string]any {
	declared := map[string]any{}
	for i := range properties {
		declared[fmt.Sprintf("property%d", i)] = map[string]any{"type": "string",
			"description": strings.Repeat("w", length)}
	}
	t := toolNamed(name)
	t["inputSchema"] = map[string]any{"type": "object", "properties": declared}
	return t
}

// lister serves MCP at every path. Its list of tools has these pages. It returns the base URL and the bytes of a list.
func lister(t *testing.T, pages ...[]any) (url string, size int64) {
	t.Helper()
	var bodies [][]byte
	for i, tools := range pages {
		page := map[string]any{"tools": tools}
		if i+1 < len(pages) {
			page["nextCursor"] = strconv.Itoa(i + 1)
		}
		var body bytes.Buffer
		encoder := json.NewEncoder(&body)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(page); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, bytes.TrimSpace(body.Bytes()))
		size += int64(body.Len())
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		switch {
		case r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&request) != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case request.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case request.Method == "tools/list":
			i, _ := strconv.Atoi(request.Params.Cursor) // the first page has no cursor
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, bodies[i])
		default:
			w.Header().Set("Content-Type", "application/json")
			answerTo(w, request.ID, request.Method, "")
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL, size
}

// liveHeap returns the size of the reachable heap in bytes. Tests that use it are not parallel.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// idle waits until all servers are idle.
func (r *rig) idle() {
	r.t.Helper()
	r.eventually("all servers to be idle", func() bool {
		for _, s := range r.upstreams.Status() {
			if s.State != mcpclient.Idle {
				return false
			}
		}
		return true
	})
}

// TestMemoryOfFiftyUpstreams: 50 idle servers with 2,000 tools whose schemas are large keep a few times the bytes of
// their lists, after the lists arrived as well as from the cache.
func TestMemoryOfFiftyUpstreams(t *testing.T) {
	var tools []any
	for i := range fleetTools {
		tools = append(tools, bulkyTool(fmt.Sprintf("t%d", i), 10, 600))
	}
	url, size := lister(t, tools)
	dirs := newFolders(t)
	var specs []mcpclient.Spec
	for i := range fleetSize {
		name := fmt.Sprintf("s%d", i)
		specs = append(specs, mcpclient.Spec{Name: name, URL: url + "/" + name, Start: mcpclient.Lazy,
			IdleTimeout: time.Millisecond, ProtocolVersion: "2025-11-25"})
	}
	for _, from := range []string{"from the servers", "from the cache"} {
		before := liveHeap()
		r, stop := dirs.run(t, specs...)
		r.ready()
		r.idle()
		if n := len(r.tools()); n != fleetSize*fleetTools {
			t.Fatalf("%s: %d tools", from, n)
		}
		kept, lists := liveHeap()-before, fleetSize*size
		t.Logf("%s: %d KiB of lists keep %d KiB", from, lists>>10, kept>>10)
		if kept > 5*lists {
			t.Errorf("%s: %d KiB of lists keep %d KiB", from, lists>>10, kept>>10)
		}
		stop()
		if kept := liveHeap() - before; kept > lists/2 {
			t.Errorf("%s: %d KiB stay after the end", from, kept>>10)
		}
		runtime.KeepAlive(r)
	}
}

// patterned makes tools with n patterns, each of nearly the largest size.
func patterned(n int) func(name string) any {
	return func(name string) any {
		tool, properties := toolNamed(name), map[string]any{}
		for i := range n {
			properties[fmt.Sprint("p", i)] = map[string]any{"pattern": fmt.Sprintf("(%c{30}){30}", 'a'+i%26)}
		}
		tool["inputSchema"] = map[string]any{"type": "object", "properties": properties}
		return tool
	}
}

// TestHostileLists: lists of the largest size that hako reads, with the largest schemas, are offered and cached within
// the fixed limits of docs/upstreams.md.
func TestHostileLists(t *testing.T) {
	// mostHeap is a few times the longest lists, of 24 MiB, which are decoded and then encoded for the cache. keptHeap
	// is more than what is offered of them.
	const mostHeap, keptHeap = 200 << 20, 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // as in TestHostileUpstream
	described := func(text string) func(string) any {
		return func(name string) any {
			tool := toolNamed(name)
			tool["description"] = text
			return tool
		}
	}
	for name, test := range map[string]struct {
		tool func(name string) any
		// each is the number of tools of a page, offered that of all pages that are read.
		each, offered int
	}{
		"schemas of 16 MiB": {func(name string) any { return bulkyTool(name, 1, 250<<10) }, 34, 2 * 34},
		"too large schemas": {func(name string) any { return bulkyTool(name, 1, 256<<10) }, 34, 0},
		"texts of 22 MiB":   {described(strings.Repeat("w", 250<<10)), 30, 3 * 30},
		"escaped texts":     {described(strings.Repeat("<", 250<<10)), 30, 3 * 30},
		"many subschemas": {func(name string) any {
			tool, properties := toolNamed(name), map[string]any{}
			for i := range 1990 {
				if !strings.HasSuffix(name, "_33") { // small ones after large ones that are omitted are offered
					properties[fmt.Sprint("p", i)] = true
				}
			}
			tool["inputSchema"] = map[string]any{"type": "object", "properties": properties}
			return tool
		}, 34, 10 + 2},
		"many patterns":  {patterned(1990), 10, 0},
		"large patterns": {patterned(10), 600, 40},
		"200,000 values": {func(name string) any {
			tool := toolNamed(name)
			tool["inputSchema"] = map[string]any{"type": "object", "examples": make([]int, 9900)}
			return tool
		}, 10, 2 * 10},
	} {
		t.Run(name, func(t *testing.T) {
			pages := make([][]any, 8)
			for i := range pages {
				for j := range test.each {
					pages[i] = append(pages[i], test.tool(fmt.Sprintf("t%d_%d", i, j)))
				}
			}
			url, _ := lister(t, pages...)
			clear(pages)
			spec := lazily(mcpclient.Spec{Name: "liar", URL: url, ProtocolVersion: "2025-11-25"})
			dirs, before := newFolders(t), liveHeap()
			for _, state := range []mcpclient.State{mcpclient.Up, mcpclient.Idle} { // the second time from the cache
				stopPeak := peak()
				r, stop := dirs.run(t, spec)
				r.ready()
				most, _ := stopPeak()
				kept := liveHeap() - before
				t.Logf("%s: the heap grew by %d MiB and kept %d MiB", state, most, kept>>20)
				if most > mostHeap>>20 || kept > keptHeap {
					t.Errorf("%s: the heap grew by %d MiB and kept %d MiB", state, most, kept>>20)
				}
				s := r.status("liar")
				if s.State != state || s.Tools != test.offered || !slices.ContainsFunc(s.Omitted, func(o string) bool {
					return strings.HasPrefix(o, "tools: there are more than the limits")
				}) {
					t.Errorf("%s: %d tools, status is %+v", state, s.Tools, s)
				}
				for _, tool := range r.catalog.View().Tools {
					if len(tool.Spec.InputSchema) > 256<<10 ||
						utf8.RuneCountInString(tool.Spec.Description.In("en")) > 16<<10 {
						t.Fatalf("%s: %d bytes of schema, %d of text", tool.Name, len(tool.Spec.InputSchema),
							len(tool.Spec.Description.In("en")))
					}
				}
				info, err := os.Stat(filepath.Join(dirs.cache, "liar.json"))
				if err != nil || info.Size() > 32<<20 {
					t.Errorf("%s: the file of the cache: %+v, %v", state, info, err)
				}
				stop()
			}
		})
	}
}
