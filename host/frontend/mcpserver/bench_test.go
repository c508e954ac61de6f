package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

type echoArguments struct {
	Text string `json:"text"`
}

const echoSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

// native is the SDK's server with a tool registered the SDK's way.
func native() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "native", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest,
		in echoArguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	get := func(*http.Request) *mcp.Server { return s }
	legacy := mcp.NewStreamableHTTPHandler(get, nil)
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true,
		PropagateRequestCancellation: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if transport.IsSessionless(r.Header) {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
}

// hosted is this package's server with a Pipeline that does the same.
func hosted(b *testing.B) http.Handler {
	calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		var in echoArguments
		if err := json.Unmarshal(call.Request.Arguments, &in); err != nil {
			return nil, err
		}
		return ok(&abi.Response{Content: []abi.Content{{Type: abi.Text, Text: in.Text}}})
	})
	echo := tool("echo")
	echo.InputSchema = json.RawMessage(echoSchema)
	c := offerAll(b, nil, &manifest.Manifest{Name: "test", Tools: []manifest.Tool{echo}})
	return newServer(b, c, calls, &Options{Limits: limits.Limits{Rate: 1 << 20}}).Handler()
}

// BenchmarkHTTP compares a call through this package with one to the bare SDK.
func BenchmarkHTTP(b *testing.B) {
	for _, version := range versions {
		for name, handler := range map[string]func(*testing.B) http.Handler{
			"native": func(*testing.B) http.Handler { return native() },
			"hosted": hosted,
		} {
			b.Run(version+"/"+name, func(b *testing.B) { benchmarkHTTP(b, handler(b), version) })
		}
	}
}

func benchmarkHTTP(b *testing.B, h http.Handler, version string) {
	server := httptest.NewServer(h)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	body := message(version, 1, "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`)
	b.SetParallelism(4)
	b.ReportAllocs()
	b.RunParallel(func(workers *testing.PB) {
		var session string
		if version < withoutSessions {
			session = openSession(b, h)
		}
		for workers.Next() {
			template := post(version, body, "Mcp-Session-Id", session)
			r, err := http.NewRequest(http.MethodPost, server.URL+Path, strings.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			r.Header = template.Header
			response, err := client.Do(r)
			if err != nil {
				b.Fatal(err)
			}
			data, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || !strings.Contains(string(data), "hello") {
				b.Fatalf("%s %s %v", response.Status, data, err)
			}
		}
	})
}

// BenchmarkFrontend compares the two ways of a call through this package, without a network.
func BenchmarkFrontend(b *testing.B) {
	for _, version := range versions {
		for name, method := range map[string]string{"direct": `"method":`, "SDK": `"unusual":0,"method":`} {
			b.Run(version+"/"+name, func(b *testing.B) {
				h := hosted(b)
				session := ""
				if version < withoutSessions {
					session = openSession(b, h)
				}
				body := strings.Replace(message(version, 1, "tools/call",
					`{"name":"echo","arguments":{"text":"hello"}}`),
					`"method":`, method, 1)
				template := post(version, body, "Mcp-Session-Id", session)
				b.ReportAllocs()
				for b.Loop() {
					r := *template
					r.Header = template.Header.Clone()
					r.Body = io.NopCloser(strings.NewReader(body))
					if w := do(h, &r); w.Code != http.StatusOK {
						b.Fatal(w.Code, w.Body)
					}
				}
			})
		}
	}
}
