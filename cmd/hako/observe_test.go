package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hako-run/hako/dev/fakes"
)

// spanReceiver takes traces over OTLP.
type spanReceiver struct {
	mu    sync.Mutex
	spans []*spans.Span
	raw   strings.Builder // all that was received
}

func (r *spanReceiver) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &request) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw.Write(body)
	for _, from := range request.ResourceSpans {
		for _, scope := range from.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
}

// find returns the first span with the name, or nil.
func (r *spanReceiver) find(name string) *spans.Span {
	for _, span := range r.spans {
		if span.Name == name {
			return span
		}
	}
	return nil
}

// TestTraces follows calls from a client's span to a vendor and a database: in one trace, each span below the one that
// caused it, with nothing of what was said.
func TestTraces(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	received := new(spanReceiver)
	otlp := httptest.NewServer(received)
	t.Cleanup(otlp.Close)
	dir, f := t.TempDir(), fakes.New()
	vendors := httptest.NewServer(f)
	t.Cleanup(vendors.Close)
	text := must(f.WriteConfig(dir, vendors.URL)) + "\ntraces: {endpoint: " + otlp.URL + "}\n"
	if err := os.WriteFile(filepath.Join(dir, "hako.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for tool, arguments := range map[string]string{"get_weather": `{"location":"東京"}`, "list_agents": `{}`} {
		if answer := s.inTrace(t, trace, tool, arguments); !strings.Contains(answer, `"result"`) {
			t.Errorf("%s: %s", tool, answer)
		}
	}
	s.rpc(t, "", "tools/list", "", "")
	s.stop()
	for name, above := range map[string]string{
		"tools/call get_weather": "", "tools/call list_agents": "", "http GET": "sandbox", "sql query": "sandbox",
		"policy": "tools/call", "queue": "sandbox", "instance": "sandbox", "tools/list": "",
	} {
		span := received.find(name)
		switch {
		case span == nil:
			t.Errorf("no span %s", name)
		case name == "tools/list":
		case above == "" && span.TraceState != "vendor=1", hex.EncodeToString(span.TraceId) != trace:
			t.Errorf("%s is in the trace %x, %s", name, span.TraceId, span.TraceState)
		case above != "" && !received.isBelow(span, above):
			t.Errorf("%s is not below %s", name, above)
		}
	}
	for _, secret := range []string{"東京", "/bosai/", "Bearer"} {
		if strings.Contains(received.raw.String(), secret) {
			t.Errorf("a span holds %q", secret)
		}
	}
	for _, id := range []string{trace, "web-get_weather"} {
		o := invoke(t, dir, "audit", "query", "--id", id, "--json")
		o.want(t, exitOK, `"trace_id":"`+trace+`"`, `"http_request_id":"web-get_weather"`)
		call := regexp.MustCompile(`"call":"([^"]+)"`).FindStringSubmatch(o.stdout)
		if call == nil || !strings.Contains(received.raw.String(), call[1]) {
			t.Errorf("no span has the ID of the call %q", call)
		}
	}
}

// inTrace calls a tool as a client does that has a span of its own.
func (s *served) inTrace(t *testing.T, trace, tool, arguments string) string {
	t.Helper()
	body := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"traceparent":"00-%s-00f067aa0ba902b7-01",`+
			`"tracestate":"vendor=1","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		tool,
		arguments,
		trace,
	)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "tools/call", "Mcp-Name": tool, "X-Request-Id": "web-" + tool,
	} {
		request.Header.Set(name, value)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return string(must(io.ReadAll(response.Body)))
}

// isBelow reports whether the span's parent has a name that begins so.
func (r *spanReceiver) isBelow(span *spans.Span, name string) bool {
	for _, other := range r.spans {
		if string(other.SpanId) == string(span.ParentSpanId) {
			return strings.HasPrefix(other.Name, name)
		}
	}
	return false
}

// TestScrapeDuringShutdown scrapes while hako ends: every answer is whole, or there is none.
func TestScrapeDuringShutdown(t *testing.T) {
	t.Parallel()
	s := serve(t, approved(t, ""))
	s.rpc(t, "", "tools/call", "probe_echo", `"name":"probe_echo","arguments":{"text":"x"},`)
	done, ended := make(chan struct{}), make(chan int)
	go func() {
		defer close(ended)
		for {
			response, err := httpClient.Get(s.base() + "/metrics")
			if err != nil {
				return // it has gone
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && (response.StatusCode != http.StatusOK ||
				!strings.Contains(string(body), "hako_calls_total{")) {
				t.Errorf("%s: %.200s", response.Status, body)
			}
			select {
			case <-done:
			default:
				close(done)
			}
		}
	}()
	<-done
	if code := s.stop(); code != exitOK {
		t.Errorf("hako ended with %d", code)
	}
	<-ended
}

// TestMetricsDisabled counts nothing, and serves nothing.
func TestMetricsDisabled(t *testing.T) {
	t.Parallel()
	s := serve(t, approved(t, "metrics: {disabled: true}\n"))
	if _, answer := s.rpc(t, "", "tools/call", "probe_echo", `"name":"probe_echo","arguments":{"text":"still here"},`); !strings.Contains(
		answer,
		"still here",
	) {
		t.Errorf("tools/call: %s", answer)
	}
	if code, _ := get(t, s.base()+"/metrics", nil); code != http.StatusNotFound {
		t.Errorf("metrics: %d", code)
	}
}
