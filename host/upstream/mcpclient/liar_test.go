package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/internal/visible"
)

// asLiar says which lie the server "liar" tells.
const asLiar = "HAKO_TEST_LIE"

func init() {
	serverKinds["liar"] = func(context.Context) error { return lieOver(os.Stdin, os.Stdout, os.Getenv(asLiar)) }
}

// lies are answers to tools/list or tools/call: a beginning, what is repeated, how often, and an end.
var lies = map[string]struct {
	method, begin, part string
	times               int
	end                 string
}{
	"list of empty tools": {"tools/list", `{"tools":[{"name":"x"}`, `,{}`, 2_600_000, `]}`},
	"list of small tools": {"tools/list", `{"tools":[{"name":"x"}`, `,{"name":"a","inputSchema":{}}`, 270_000,
		`]}`},
	"schema of a chain": {"tools/list", `{"tools":[{"name":"x","inputSchema":`, `{"a":`, 1_600_000, `1`},
	"schemas of objects": {"tools/list", `{"tools":[{"name":"x","inputSchema":{"x":[1`, `,{"a":{}}`, 900_000,
		`]}}]}`},
	"list in metadata": {"tools/list", `{"tools":[{"name":"x"}],"_meta":{"a":[1`, `,[]`, 2_600_000, `]}}`},
	"list behind another name": {"tools/list",
		`{"tools":[{"name":"x"}],"structuredContent":1,"_meta":{"structuredContent":[1`, `,{}`, 2_600_000, `]}}`},
	"list of long names": {"tools/list", `{"tools":[{"name":"x"}`, `,{"name":"` + strings.Repeat("n", 1000) +
		`"}`, 8000, `]}`},
	"pages without end": {"tools/list", `{"nextCursor":"more","tools":[{"name":"x"}`,
		`,{"name":"a","inputSchema":{"a":[[],[],[],[],[],[],[],[]]}}`, 4000, `]}`},
	"empty blocks": {"tools/call", `{"content":[{"type":"text","text":""}`, `,{"type":"text","text":""}`,
		300_000, `]}`},
	"blocks with metadata": {"tools/call", `{"content":[{"type":"text","text":""}`,
		`,{"type":"text","text":"","_meta":{"a":[` + strings.Repeat("{},", 40) + `1]}}`, 4000, `]}`},
	"links without a text": {"tools/call", `{"content":[{"type":"text","text":""}`,
		`,{"type":"resource_link","uri":"a:b","name":"n"}`, 150_000, `]}`},
	"names and descriptions only": {"tools/call", `{"content":[{"type":"text","text":""}`,
		`,{"type":"resource_link","uri":"a:b","name":"n","description":"` + strings.Repeat("d", 2000) + `"}`, 3000,
		`]}`},
	"control characters": {"tools/call", `{"content":[{"type":"text","text":"`, `\u0001`, 1_000_000, `"}]}`},
	"data beyond its limit": {"tools/call", `{"content":[{"type":"image","mimeType":"image/png","data":"`, `QUJD`,
		1_150_000, `"}]}`},
	"second structured content": {"tools/call", `{"structuredContent":{},"content":[],"structuredContent":[1`, `,{}`,
		2_600_000, `]}`},
	"second result": {"tools/call", `{"content":[]},"result":{"content":[],"structuredContent":[1`, `,{}`,
		2_600_000, `]}`},
	"line without an end": {"tools/call", `{"content":[{"type":"text","text":"`, strings.Repeat("x", 1<<20),
		1 << 40, ``},
	"line without an end, listed": {"tools/list", ``, strings.Repeat(" ", 1<<20), 1 << 40, ``},
}

// tell writes a lie as the answer to a request.
func tell(out io.Writer, id json.RawMessage, lie string) {
	w := bufio.NewWriter(out)
	l := lies[lie]
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s`, id, l.begin)
	for i := 0; i < l.times; i++ {
		if _, err := w.WriteString(l.part); err != nil {
			return
		}
	}
	if lie == "schema of a chain" {
		for range l.times {
			_, _ = w.WriteString("}")
		}
		_, _ = w.WriteString("}]}")
	}
	fmt.Fprintf(w, "%s}\n", l.end)
	_ = w.Flush()
}

// lieOver is a server on streams that answers in good order but for the lie.
func lieOver(in io.Reader, out io.Writer, lie string) error {
	requests := bufio.NewScanner(in)
	requests.Buffer(nil, 1<<20)
	for requests.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(requests.Bytes(), &request); err != nil {
			return err
		}
		if request.ID != nil {
			answerTo(out, request.ID, request.Method, lie)
		}
	}
	return requests.Err()
}

func answerTo(out io.Writer, id json.RawMessage, method, lie string) {
	if lies[lie].method == method {
		tell(out, id, lie)
		return
	}
	var result any
	switch method {
	case "initialize":
		result = initialized()
	case "tools/list":
		result = map[string]any{"tools": []any{toolNamed("x")}}
	case "tools/call":
		result = map[string]any{"content": []any{}}
	default:
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", id)
		return
	}
	text, _ := json.Marshal(result)
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, text)
}

// overHTTP is lieOver for one request, as an object or as an event.
func overHTTP(lie string, events bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&request) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if request.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if events {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: ")
			answerTo(w, request.ID, request.Method, lie)
			_, _ = io.WriteString(w, "\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answerTo(w, request.ID, request.Method, lie)
	})
}

// peak samples the heap until it is stopped, and returns by how much it grew, at most and in the end, in MiB.
func peak() (stop func() (most, kept int64)) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	runtime.GC()
	before := heap()
	var most atomic.Int64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				most.Store(max(most.Load(), heap()))
			}
		}
	}()
	return func() (int64, int64) {
		close(done)
		<-ended
		runtime.GC()
		runtime.GC()
		return max(0, most.Load()-before) >> 20, max(0, heap()-before) >> 20
	}
}

// TestHostileUpstream: what a server sends is bounded before it is held, and held no longer than it is of use. The
// cases run one after the other, for the memory that each takes.
func TestHostileUpstream(t *testing.T) {
	// mostHeap is more than the longest message (9 MiB) and what it becomes; keptHeap is noise and, on stdio, the SDK's
	// buffer for a line.
	const mostHeap, keptHeap = 120, 32
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // garbage that a busy machine has not collected is not what is measured
	for lie, l := range lies {
		for _, way := range []string{"stdio", "HTTP", "events"} {
			if strings.HasPrefix(lie, "line without") && way == "HTTP" {
				continue // an object is not read beyond its limit
			}
			t.Run(way+": "+lie, func(t *testing.T) {
				spec := child("liar", "liar")
				spec.Env[asLiar] = mcpclient.Value{Text: lie}
				if way != "stdio" {
					server := httptest.NewServer(overHTTP(lie, way == "events"))
					t.Cleanup(server.Close)
					t.Cleanup(server.CloseClientConnections)
					spec = mcpclient.Spec{Name: "liar", URL: server.URL}
				}
				spec.ProtocolVersion = "2025-11-25"
				stop := peak()
				r := newRig(t, spec)
				if l.method == "tools/call" {
					if got := r.call("liar_x", "{}"); got.Outcome == pipeline.OK {
						t.Errorf("the answer passed: %.200q", text(got))
					} else if words := text(got); !strings.Contains(words, "larger than") &&
						!strings.Contains(words, "has more than") && !strings.Contains(words, "failed") &&
						!strings.Contains(words, "invalid response") {
						t.Errorf("the reason is %q", words)
					}
				} else if s := r.status("liar"); s.State == mcpclient.Up && len(s.Omitted) == 0 &&
					lie != "list in metadata" {
					t.Errorf("the list passed: %+v", s)
				}
				most, kept := stop()
				t.Logf("heap: %d MiB at most, %d MiB kept", most, kept)
				if most > mostHeap || kept > keptHeap {
					t.Errorf("the heap grew by %d MiB and kept %d MiB", most, kept)
				}
			})
		}
	}
}

// TestHostileUpstreamTexts: no text that a server lists holds what people do not see.
func TestHostileUpstreamTexts(t *testing.T) {
	t.Parallel()
	const hidden = "a\u200b\U000e0041\U000e0100\ufe01\u3164\u2800\u202e\u2067\x1b[8m\u009bb"
	for name, change := range map[string]map[string]any{
		"description": {"description": hidden}, "title": {"title": hidden},
		"title of annotations": {"annotations": map[string]any{"title": hidden}},
		"description in a schema": {"inputSchema": map[string]any{"type": "object",
			"properties": map[string]any{"p": map[string]any{"description": hidden, "title": hidden}}}},
		"enum": {"inputSchema": map[string]any{"type": "object",
			"properties": map[string]any{"p": map[string]any{"enum": []any{hidden}}}}},
		"default": {"inputSchema": map[string]any{"type": "object",
			"properties": map[string]any{"p": map[string]any{"default": hidden, "examples": []any{hidden}}}}},
		"name of a property": {"inputSchema": map[string]any{"type": "object",
			"properties": map[string]any{hidden: map[string]any{}}, "required": []any{hidden}}},
		"output schema": {"outputSchema": map[string]any{"type": "object", "description": hidden}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := toolNamed("x")
			for key, value := range change {
				tool[key] = value
			}
			list, _ := json.Marshal(map[string]any{"tools": []any{tool}})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var request struct {
					ID     json.RawMessage
					Method string
				}
				if json.NewDecoder(r.Body).Decode(&request); request.Method == "tools/list" {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, list)
				} else if request.ID != nil {
					w.Header().Set("Content-Type", "application/json")
					answerTo(w, request.ID, request.Method, "")
				} else {
					w.WriteHeader(http.StatusAccepted)
				}
			}))
			t.Cleanup(server.Close)
			r := newRig(t, mcpclient.Spec{Name: "liar", URL: server.URL, ProtocolVersion: "2025-11-25"})
			found, ok := r.catalog.View().Tool("liar_x")
			if !ok {
				t.Fatalf("the tool is not in the catalog: %q", r.status("liar").Omitted)
			}
			for _, text := range []string{found.Spec.Description.In("en"), found.Spec.Title.In("en"), string(found.Spec.InputSchema), string(found.Spec.OutputSchema)} {
				var decoded any
				if json.Unmarshal([]byte(text), &decoded) == nil {
					text = fmt.Sprint(decoded)
				}
				if c, is := visible.First(text, "\n"); is {
					t.Errorf("%U is left in %q", c, text)
				}
			}
		})
	}
}

// TestHostileKeys: an answer with a key twice in one object reaches nobody, and the error says whose it was.
func TestHostileKeys(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]string{
		"at the top":            `{"content":[],"content":[{"type":"text","text":"x"}]}`,
		"isError":               `{"content":[],"isError":true,"isError":false}`,
		"escaped":               `{"content":[],"c\u006fntent":[]}`,
		"in a block":            `{"content":[{"type":"text","text":"a","text":"b"}]}`,
		"in structured content": `{"content":[],"structuredContent":{"a":{"b":1,"b":2}}}`,
		"in metadata":           `{"content":[],"_meta":{"a":1,"a":2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var request struct {
					ID     json.RawMessage
					Method string
				}
				if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&request) != nil {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				if request.ID == nil {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				if request.Method == "tools/call" {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, result)
					return
				}
				answerTo(w, request.ID, request.Method, "")
			}))
			t.Cleanup(server.Close)
			r := newRig(t, mcpclient.Spec{Name: "liar", URL: server.URL, ProtocolVersion: "2025-11-25"})
			const want = "upstream server liar sent an invalid response: an object in it has a duplicate key"
			if got := r.call("liar_x", "{}"); got.Outcome == pipeline.OK ||
				!strings.Contains(fmt.Sprint(got.Response.Content), want) {
				t.Errorf("%s: %v", got.Outcome, got.Response.Content)
			}
		})
	}
}
