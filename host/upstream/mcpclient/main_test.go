package mcpclient_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testlog"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/internal/process"
	"github.com/hako-run/hako/pdk/abi"
)

// asServer makes the test binary be an MCP server on its standard input and output; its value says which.
const asServer = "HAKO_TEST_SERVER"

func TestMain(m *testing.M) {
	process.Main()
	if kind := os.Getenv(asServer); kind != "" {
		if err := serverKinds[kind](context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		syscall.Exit(0)
	}
	os.Exit(m.Run())
}

// serverKinds are the servers that the test binary can be.
var serverKinds = map[string]func(context.Context) error{
	"plain": func(ctx context.Context) error { return plainServer().Run(ctx, &mcp.StdioTransport{}) },
	"noisy": func(ctx context.Context) error {
		fmt.Println("Server listening!")
		fmt.Println("{not JSON")
		fmt.Fprintln(os.Stderr, "noise on standard error \x1b[31m"+strings.Repeat("y", 10_000))
		return plainServer().Run(ctx, &mcp.StdioTransport{})
	},
	"exits": func(context.Context) error { return errors.New("the token is missing") },
	// silent takes what it is sent and says nothing.
	"silent": func(context.Context) error {
		fmt.Fprintln(os.Stderr, "silent begins")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	},
	// old says nothing to a first request that it does not know.
	"old": func(context.Context) error {
		return rawServer(func(method string, _ json.RawMessage) (any, bool) {
			if method == "initialize" {
				return initialized(), true
			}
			return map[string]any{"tools": []any{toolNamed("relic")}}, method == "tools/list"
		})
	},
	// older ends at one.
	"older": func(context.Context) error {
		return rawServer(func(method string, _ json.RawMessage) (any, bool) {
			switch method {
			case "initialize":
				return initialized(), true
			case "tools/list":
				return map[string]any{"tools": []any{toolNamed("fossil")}}, true
			case "server/discover":
				os.Exit(1)
			}
			return nil, false
		})
	},
	// stubborn has a child, and neither minds the end of its input nor SIGTERM.
	"stubborn": func(context.Context) error {
		signal.Ignore(syscall.SIGTERM)
		grandchild := exec.Command("sleep", "1000")
		if err := grandchild.Start(); err != nil {
			return err
		}
		_ = rawServer(func(method string, _ json.RawMessage) (any, bool) {
			switch method {
			case "initialize":
				return initialized(), true
			case "tools/list":
				return map[string]any{"tools": []any{toolNamed("x")}}, true
			case "tools/call":
				text := fmt.Sprintf("%d %d", os.Getpid(), grandchild.Process.Pid)
				return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}, true
			}
			return nil, false
		})
		select {}
	},
	"flood":  floodServer,
	"odd":    oddServer,
	"pages":  pagesServer,
	"crowd":  crowdServer,
	"claims": claimsServer,
	"nulls":  nullsServer,
	"rude":   rudeServer,
	"lists":  listsServer,
}

func initialized() any {
	return map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
		"serverInfo": map[string]any{"name": "raw", "version": "1"},
	}
}

func toolNamed(name string) map[string]any {
	return map[string]any{"name": name, "description": "d", "inputSchema": map[string]any{"type": "object"}}
}

// rawServer speaks JSON-RPC without a library. A request that answer does not know gets no reply.
func rawServer(answer func(method string, params json.RawMessage) (any, bool)) error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			return err
		}
		if result, ok := answer(request.Method, request.Params); ok {
			reply, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result})
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", reply)
		}
	}
	return in.Err()
}

// listing is a raw server with these tools.
func listing(tools ...any) error {
	return rawServer(func(method string, _ json.RawMessage) (any, bool) {
		switch method {
		case "initialize":
			return initialized(), true
		case "tools/list":
			return map[string]any{"tools": tools}, true
		case "tools/call":
			return map[string]any{"content": []any{map[string]any{"type": "text", "text": "ok"}}}, true
		case "server/discover":
			os.Exit(1)
		}
		return nil, false
	})
}

// floodServer sends notifications without end once it has been asked for its tools: before, its answers would be behind
// them.
func floodServer(context.Context) error {
	flood := sync.OnceFunc(func() { go pourOut() })
	return rawServer(func(method string, _ json.RawMessage) (any, bool) {
		switch method {
		case "initialize":
			return initialized(), true
		case "tools/list":
			time.AfterFunc(100*time.Millisecond, flood)
			return map[string]any{"tools": []any{toolNamed("x")}}, true
		case "server/discover":
			os.Exit(1)
		}
		return nil, false
	})
}

func pourOut() {
	out := bufio.NewWriter(os.Stdout)
	for i := 0; ; i++ {
		method := []string{"notifications/tools/list_changed", "notifications/progress", "notifications/message",
			"notifications/nothing"}[i%4]
		fmt.Fprintf(out, `{"jsonrpc":"2.0","method":%q,"params":{"level":"info","data":"flood","progressToken":"hako-1","progress":1}}`+"\n", method)
		if i%100 == 0 && out.Flush() != nil {
			os.Exit(0)
		}
	}
}

// oddServer has tools that break rules.
func oddServer(context.Context) error {
	long := strings.Repeat("long", 30)
	tool := func(name string, change map[string]any) any {
		t := toolNamed(name)
		maps.Copy(t, change)
		return t
	}
	schema := func(s any) map[string]any { return map[string]any{"inputSchema": s} }
	return listing(
		tool("good", nil), tool("good", nil), tool("a.b", nil), tool("a_b", nil), tool("c/d", nil), tool(long+"1", nil),
		tool(long+"2", nil), tool("", nil), nil,
		tool("draft7", schema(map[string]any{"$schema": "http://json-schema.org/draft-07/schema#",
			"properties": map[string]any{"x": map[string]any{"type": "string"}}})),
		tool("list", schema([]any{1})), tool("text", schema("x")),
		tool("wrong", schema(map[string]any{"type": "array"})),
		tool("broken", schema(map[string]any{"type": "object",
			"properties": map[string]any{"x": map[string]any{"type": "nonsense"}}})),
		tool("fetch", schema(map[string]any{"type": "object",
			"properties": map[string]any{"x": map[string]any{"$ref": "https://evil.example/"}}})),
		tool("output", map[string]any{"outputSchema": map[string]any{"type": "nonsense"}}),
		tool("hidden", map[string]any{"description": "see\u202ethis\U000e0041\x07 text", "title": "two\nlines"}),
		tool("mute", map[string]any{"description": ""}),
		tool("wordy", map[string]any{"description": strings.Repeat("w", 20_000)}),
	)
}

// pagesServer has a list that does not end.
func pagesServer(context.Context) error {
	page := 0
	return rawServer(func(method string, _ json.RawMessage) (any, bool) {
		switch method {
		case "initialize":
			return initialized(), true
		case "tools/list":
			page++
			return map[string]any{"tools": []any{toolNamed(fmt.Sprintf("t%d", page))}, "nextCursor": fmt.Sprint(page)},
				true
		case "server/discover":
			os.Exit(1)
		}
		return nil, false
	})
}

// crowdServer has a thousand tools on a page.
func crowdServer(context.Context) error {
	var tools []any
	for i := range 1000 {
		tools = append(tools, toolNamed(fmt.Sprintf("t%d", i)))
	}
	return listing(tools...)
}

// claimsServer says that its tool only reads.
func claimsServer(context.Context) error {
	t := toolNamed("wipe")
	t["annotations"] = map[string]any{"readOnlyHint": true, "destructiveHint": true, "title": "Wipe"}
	return listing(t)
}

// rudeServer answers a call with the text in its argument, where ID stands for the id of the request, after it has
// answered the calls before it in the same way. The argument "slow" waits for the next call.
func rudeServer(context.Context) error {
	in := bufio.NewScanner(os.Stdin)
	fmt.Print("\ufeff")
	slow := ""
	for in.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Text string } }
		}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			return err
		}
		id, said := string(request.ID), request.Params.Arguments.Text
		result := any(map[string]any{"tools": []any{toolNamed("say")}})
		switch request.Method {
		case "tools/call":
			if said == "slow" {
				slow = id
				fmt.Fprintln(os.Stderr, "slow begins")
				continue
			}
			fmt.Println(strings.ReplaceAll(said, "ID", id))
			if said != "end" {
				continue
			}
			id, result = slow, map[string]any{"content": []any{map[string]any{"type": "text", "text": "slow done"}}}
		case "initialize":
			result = initialized()
		case "tools/list":
		default:
			fmt.Println(`{"level":30,"method":"` + request.Method + `","id":` + cmp.Or(id, "0") + `,"error":"unknown"}`)
			if id != "" {
				fmt.Printf(`Oops: {"jsonrpc":"2.0","id":"%s","error":{"code":-32601,"message":"what?"}}`+"\n", id)
			}
			continue
		}
		reply, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": result})
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", reply)
	}
	return in.Err()
}

// listsServer announces all lists. Those in asFailing fail, with this code or without a response.
func listsServer(context.Context) error {
	return rawExchange(func(id, method string) string {
		failing := strings.Split(os.Getenv(asFailing), ",")
		kind, isList := strings.CutSuffix(method, "/list")
		switch {
		case method == "initialize":
			all := map[string]any{"tools": struct{}{}, "prompts": struct{}{}, "resources": struct{}{}}
			result, _ := json.Marshal(map[string]any{"protocolVersion": "2025-11-25", "capabilities": all,
				"serverInfo": map[string]any{"name": "raw", "version": "1"}})
			return `"result":` + string(result)
		case !isList:
			return `"error":{"code":-32601,"message":"what?"}`
		}
		for _, f := range failing {
			if name, code, _ := strings.Cut(f, " "); name == kind {
				return `"error":{"code":` + code + `,"message":"not implemented"}`
			}
		}
		switch kind {
		case "tools":
			return `"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
		case "prompts":
			return `"result":{"prompts":[{"name":"p"}]}`
		case "resources":
			return `"result":{"resources":[{"uri":"a://b","name":"r"}]}`
		}
		return `"result":{"resourceTemplates":[{"uriTemplate":"a://{b}","name":"t"}]}`
	})
}

// asFailing has the lists that fail, each with a code: "prompts -32601,resources -32603".
const asFailing = "HAKO_TEST_FAILING"

// rawExchange writes a response with the member that answer returns for each request.
func rawExchange(answer func(id, method string) string) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			return err
		}
		if request.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", request.ID, answer(string(request.ID), request.Method))
		}
	}
	return in.Err()
}

// nullsServer has a prompt with null for an argument.
func nullsServer(context.Context) error {
	return rawServer(func(method string, _ json.RawMessage) (any, bool) {
		switch method {
		case "initialize":
			return map[string]any{
				"protocolVersion": "2025-11-25", "capabilities": map[string]any{"prompts": map[string]any{}},
				"serverInfo": map[string]any{"name": "raw", "version": "1"},
			}, true
		case "prompts/list":
			return map[string]any{"prompts": []any{map[string]any{"name": "p", "arguments": []any{nil}}}}, true
		case "server/discover":
			os.Exit(1)
		}
		return nil, false
	})
}

// plainServer has a tool for each thing that tools do.
func plainServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "plain", Version: "1.2.3"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Ref.Name +
				req.Params.Ref.URI, req.Params.Argument.Value}}}, nil
		},
	})
	tool := func(name string, handle func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult,
		error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: name + " does things.",
			InputSchema: json.RawMessage(`{"type":"object"}`)},
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
	tool("progress", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult,
		error) {
		token := req.Params.GetProgressToken()
		for i := 1.0; ctx.Err() == nil; i++ { // until the caller has seen enough
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: i,
				Message: "step"})
			time.Sleep(time.Millisecond)
		}
		return nil, ctx.Err()
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
			StructuredContent: json.RawMessage(`{"sum":9007199254740993}`),
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
		_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "your password?",
			RequestedSchema: json.RawMessage(`{"type":"object"}`)})
		return said("%v", err), nil
	})
	tool("touch", func(ctx context.Context, req *mcp.CallToolRequest, a map[string]any) (*mcp.CallToolResult, error) {
		uri, _ := a["uri"].(string)
		return said("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
	})
	s.AddResource(&mcp.Resource{URI: "memo://one", Name: "one", MIMEType: "text/plain"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI,
					Text: "first memo"}}},
				nil
		})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "day://{day}", Name: "day"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI,
				Text: "day " + req.Params.URI}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user",
				Content: &mcp.TextContent{Text: "Hello " + req.Params.Arguments["name"]}}}}, nil
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
	log       *testlog.Buffer
}

func newRig(t *testing.T, specs ...mcpclient.Spec) *rig {
	t.Helper()
	return newRigWith(t, nil, specs...)
}

func newRigWith(t *testing.T, change func(*mcpclient.Options), specs ...mcpclient.Spec) *rig {
	t.Helper()
	r := &rig{t: t, catalog: new(catalog.Catalog), log: new(testlog.Buffer)}
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(r.log, t.Output()), nil))
	options := mcpclient.Options{Catalog: r.catalog, Dir: t.TempDir(), Environ: os.Environ(), Version: "v0",
		Logger: logger,
		Limits: manifest.Limits{Time: 10 * time.Minute}, // for busy machines
	}
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
	if err := r.upstreams.Ready(testwait.Context(r.t)); err != nil {
		r.t.Fatal(err)
	}
}

// call calls a tool as frontends do.
func (r *rig) call(name, arguments string) *pipeline.Result {
	r.t.Helper()
	result, err := r.pipeline.Call(r.t.Context(),
		&pipeline.Call{Request: abi.Request{Method: abi.CallTool, Name: name, Arguments: json.RawMessage(arguments)}})
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

// status is the status of one server.
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
	if !testwait.Until(r.t, is) {
		r.t.Fatalf("not yet: %s. %+v", what, r.upstreams.Status())
	}
}

// merged is a copy of env with more.
func merged(env map[string]mcpclient.Value, more map[string]mcpclient.Value) map[string]mcpclient.Value {
	all := maps.Clone(env)
	maps.Copy(all, more)
	return all
}
