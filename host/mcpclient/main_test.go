package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// asServer makes the test binary be an MCP server on its standard input and output; its value says which.
const asServer = "HAKO_TEST_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(asServer); kind != "" {
		if err := serverKinds[kind](context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serverKinds are the servers that the test binary can be.
var serverKinds = map[string]func(context.Context) error{
	"plain": func(ctx context.Context) error { return plainServer().Run(ctx, &mcp.StdioTransport{}) },
}

// plainServer has a tool for each thing that tools do.
func plainServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "plain", Version: "1.2.3"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Ref.Name + req.Params.Ref.URI, req.Params.Argument.Value}}}, nil
		},
	})
	tool := func(name string, handle func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: name + " does things.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				arguments := map[string]any{}
				_ = json.Unmarshal(req.Params.Arguments, &arguments)
				return handle(ctx, req, arguments)
			})
	}
	said := func(format string, args ...any) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
	}
	tool("echo", func(_ context.Context, _ *mcp.CallToolRequest, a map[string]any) (*mcp.CallToolResult, error) {
		return said("%v", a["text"]), nil
	})
	tool("environment", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		dir, _ := os.Getwd()
		return said("%s\nPWD %s", strings.Join(os.Environ(), "\n"), dir), nil
	})
	tool("pid", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		return said("%d", os.Getpid()), nil
	})
	tool("fail", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		r := said("it is broken")
		r.IsError = true
		return r, nil
	})
	tool("refuse", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		return nil, errors.New("no such thing")
	})
	tool("die", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	tool("hang", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "hang begins")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "hang was cancelled")
		return nil, ctx.Err()
	})
	tool("big", func(_ context.Context, _ *mcp.CallToolRequest, a map[string]any) (*mcp.CallToolResult, error) {
		n, _ := a["bytes"].(float64)
		return said("%s", strings.Repeat("x", int(n))), nil
	})
	tool("progress", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		token := req.Params.GetProgressToken()
		for i := range 3 {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i), Total: 3, Message: "step"})
		}
		return said("%v", token != nil), nil
	})
	tool("everything", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.TextContent{Text: "words"},
				&mcp.ImageContent{Data: []byte{1, 2, 3}, MIMEType: "image/png"},
				&mcp.ResourceLink{URI: "memo://one", Name: "one"},
				&mcp.ResourceLink{URI: "https://example.com/", Name: "web"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "memo://two", Text: "two"}},
			},
			StructuredContent: map[string]any{"sum": 7},
		}, nil
	})
	tool("rename", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, error) {
		s.RemoveTools("echo")
		tool("echo2", func(_ context.Context, _ *mcp.CallToolRequest, a map[string]any) (*mcp.CallToolResult, error) {
			return said("again: %v", a["text"]), nil
		})
		return said("done"), nil
	})
	tool("ask", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, error) {
		_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "your password?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
		return said("%v", err), nil
	})
	s.AddResource(&mcp.Resource{URI: "memo://one", Name: "one", MIMEType: "text/plain"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "first memo"}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "day://{day}", Name: "day"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "day " + req.Params.URI}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello " + req.Params.Arguments["name"]}}}}, nil
	})
	return s
}

// child is a server that is this test binary.
func child(name, kind string) mcpclient.Spec {
	return mcpclient.Spec{Name: name, Command: os.Args[0], Env: map[string]mcpclient.Value{asServer: {Text: kind}}}
}

// rig is a catalog and a pipeline with upstream servers.
type rig struct {
	t         *testing.T
	catalog   *catalog.Catalog
	pipeline  *pipeline.Pipeline
	upstreams *mcpclient.Upstreams
	log       *logBuffer
}

// logBuffer takes a log for tests to look at.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func newRig(t *testing.T, specs ...mcpclient.Spec) *rig {
	t.Helper()
	return newRigWith(t, nil, specs...)
}

func newRigWith(t *testing.T, change func(*mcpclient.Options), specs ...mcpclient.Spec) *rig {
	t.Helper()
	r := &rig{t: t, catalog: new(catalog.Catalog), log: new(logBuffer)}
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(r.log, t.Output()), nil))
	options := mcpclient.Options{Catalog: r.catalog, Dir: t.TempDir(), Environ: os.Environ(), Version: "v0", Logger: logger}
	if change != nil {
		change(&options)
	}
	var err error
	if r.upstreams, err = mcpclient.New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.upstreams.Close(); err != nil {
			t.Error(err)
		}
	})
	r.pipeline = pipeline.New(r.catalog, &pipeline.Options{Logger: logger})
	if err := r.upstreams.Apply(specs); err != nil {
		t.Fatal(err)
	}
	r.ready()
	return r
}

func (r *rig) ready() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	if err := r.upstreams.Ready(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// call calls a tool as doors do.
func (r *rig) call(name, arguments string) *pipeline.Result {
	r.t.Helper()
	result, err := r.pipeline.Call(r.t.Context(), &pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(arguments)}})
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return result
}

// text is the text of a result.
func text(result *pipeline.Result) string {
	var parts []string
	for _, c := range result.Response.Content {
		parts = append(parts, c.Text)
	}
	return strings.Join(parts, "|")
}

// tools are the names on offer.
func (r *rig) tools() []string {
	names := []string{}
	for _, tool := range r.catalog.View().Tools {
		names = append(names, tool.Name)
	}
	return names
}

// status is that of one server.
func (r *rig) status(name string) mcpclient.Status {
	r.t.Helper()
	list := r.upstreams.Status()
	i := slices.IndexFunc(list, func(s mcpclient.Status) bool { return s.Name == name })
	if i < 0 {
		r.t.Fatalf("no server %s in %+v", name, list)
	}
	return list[i]
}

// eventually waits for what happens in other processes.
func (r *rig) eventually(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not yet: %s. %+v", what, r.upstreams.Status())
		}
	}
}

// merged is a copy of env with more.
func merged(env map[string]mcpclient.Value, more map[string]mcpclient.Value) map[string]mcpclient.Value {
	all := maps.Clone(env)
	maps.Copy(all, more)
	return all
}
