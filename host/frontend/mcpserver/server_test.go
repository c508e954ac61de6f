package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

func yes() *bool { b := true; return &b }

// everything is a manifest with one of each.
func everything() *manifest.Manifest {
	return &manifest.Manifest{
		Name: "test",
		Tools: []manifest.Tool{{
			Name:         "greet",
			Title:        manifest.Text{"en": "Greet", "ja": "あいさつ"},
			Description:  manifest.Text{"en": "Greets.", "ja": "あいさつします。"},
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","maxLength":5}},"required":["name"]}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"greeting":{"type":"string"}}}`),
			Annotations:  manifest.Annotations{ReadOnlyHint: yes(), OpenWorldHint: yes()},
			Icons: []manifest.Icon{{Src: "https://example.com/i.png", MIMEType: "image/png",
				Sizes: []string{"48x48"}}},
		}},
		Resources: []manifest.Resource{{URI: "test://fixed", Name: "fixed", Title: manifest.Text{"en": "Fixed"},
			MIMEType: "text/plain"}},
		ResourceTemplates: []manifest.ResourceTemplate{{URITemplate: "test://item/{id}", Name: "item",
			MIMEType: "text/plain"}},
		Prompts: []manifest.Prompt{{Name: "ask", Title: manifest.Text{"en": "Ask"},
			Arguments: []manifest.PromptArgument{
				{Name: "topic", Description: manifest.Text{"en": "About what."}, Required: true},
			}}},
	}
}

func serveEverything(_ context.Context, request *abi.Request, _ func(abi.Progress)) (*abi.Response, error) {
	switch request.Method {
	case abi.CallTool:
		return &abi.Response{StructuredContent: json.RawMessage(`{"greeting":"Hello"}`)}, nil
	case abi.ReadResource:
		if request.URI == "test://item/none" {
			return &abi.Response{Error: &abi.Error{Code: abi.CodeNotFound, Message: "no such item"}}, nil
		}
		return &abi.Response{Contents: []abi.ResourceContents{{URI: request.URI, MIMEType: "text/plain", Text: "it"}}},
			nil
	case abi.GetPrompt:
		return &abi.Response{Description: "asks", Messages: []abi.PromptMessage{
			{Role: "user", Content: abi.Content{Type: abi.Text, Text: string(request.Arguments)}},
		}}, nil
	}
	return &abi.Response{Completion: &abi.Completion{Values: []string{request.Argument.Value + "x"}}}, nil
}

func TestOffersTheCatalog(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, offerAll(t, serveEverything, everything()), nil,
			&Options{Name: "box", Title: "Box", Version: "9", Instructions: "Be kind."})
		client := frontend.connect(t, s, version, nil)

		tools, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := &mcp.Tool{
			Name: "greet", Title: "Greet", Description: "Greets.",
			InputSchema: map[string]any{
				"type": "object", "required": []any{"name"},
				"properties": map[string]any{"name": map[string]any{"type": "string", "maxLength": 5.0}},
			},
			OutputSchema: map[string]any{"type": "object",
				"properties": map[string]any{"greeting": map[string]any{"type": "string"}}},
			Annotations: &mcp.ToolAnnotations{Title: "Greet", ReadOnlyHint: true, OpenWorldHint: yes()},
			Icons: []mcp.Icon{{Source: "https://example.com/i.png", MIMEType: "image/png",
				Sizes: []string{"48x48"}}},
		}
		if len(tools.Tools) != 1 || !reflect.DeepEqual(tools.Tools[0], want) {
			t.Errorf("tools: %+v, want one like %+v", tools.Tools, want)
		}
		result, err := client.CallTool(t.Context(),
			&mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Aki"}})
		if err != nil {
			t.Fatal(err)
		}
		if textOf(t, result) != `{"greeting":"Hello"}` ||
			!reflect.DeepEqual(result.StructuredContent, map[string]any{"greeting": "Hello"}) {
			t.Errorf("result: %s, %+v", textOf(t, result), result)
		}
		read, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://item/7"})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "it" {
			t.Errorf("read: %+v, %v", read, err)
		}
		prompt, err := client.GetPrompt(t.Context(),
			&mcp.GetPromptParams{Name: "ask", Arguments: map[string]string{"topic": "rain"}})
		if err != nil || len(prompt.Messages) != 1 ||
			prompt.Messages[0].Content.(*mcp.TextContent).Text != `{"topic":"rain"}` {
			t.Errorf("prompt: %+v, %v", prompt, err)
		}
		completed, err := client.Complete(t.Context(), &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "ask"},
			Argument: mcp.CompleteParamsArgument{Name: "topic", Value: "r"},
		})
		if err != nil || !slices.Equal(completed.Completion.Values, []string{"rx"}) {
			t.Errorf("completion: %+v, %v", completed, err)
		}
		prompts, err := client.ListPrompts(t.Context(), nil)
		if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Arguments[0].Description != "About what." {
			t.Errorf("prompts: %+v, %v", prompts, err)
		}
		resources, err := client.ListResources(t.Context(), nil)
		if err != nil || len(resources.Resources) != 1 || resources.Resources[0].Title != "Fixed" {
			t.Errorf("resources: %+v, %v", resources, err)
		}
		templates, err := client.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 ||
			templates.ResourceTemplates[0].URITemplate != "test://item/{id}" {
			t.Errorf("templates: %+v, %v", templates, err)
		}
	})
}

// TestIntroducesItself: clients of both versions learn who the server is and what is there; other results carry no more
// than name and version.
func TestIntroducesItself(t *testing.T) {
	t.Parallel()
	options := &Options{Title: "Box", Version: "9", Website: "https://example.com/", Icon: "https://example.com/i.svg",
		Overview: true}
	want := &mcp.Implementation{Name: "hako", Title: "Box", Version: "9", WebsiteURL: "https://example.com/",
		Icons: []mcp.Icon{{Source: "https://example.com/i.svg", MIMEType: "image/svg+xml", Sizes: []string{"any"}}}}
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, offerAll(t, serveEverything, everything()), nil, options)
		said := frontend.connect(t, s, version, nil).InitializeResult()
		if !reflect.DeepEqual(said.ServerInfo, want) {
			t.Errorf("%+v, want %+v", said.ServerInfo, want)
		}
		for _, word := range []string{"- test: greet", "2 resources and templates", "Prompts: ask."} {
			if !strings.Contains(said.Instructions, word) {
				t.Errorf("%q does not say %q", said.Instructions, word)
			}
		}
	})
	s := newServer(t, offerAll(t, serveEverything, everything()), nil, options)
	w := do(s.Handler(), post(withoutSessions, message(withoutSessions, 1, "tools/list", `{}`)))
	if strings.Contains(w.Body.String(), "i.svg") || !strings.Contains(w.Body.String(), `"version":"9"`) {
		t.Errorf("%s", w.Body)
	}
	hidden := &Options{Instructions: "Be kind.", Overview: true}
	if got := connectStdio(t, newServer(t, offer(t, nil, "x"), nil, hidden), withSessions,
		nil).InitializeResult().Instructions; got != "Be kind." {
		t.Errorf("%q", got)
	}
}

func TestListsInTheLanguage(t *testing.T) {
	t.Parallel()
	s := newServer(t, offerAll(t, serveEverything, everything()), nil, &Options{Language: "ja"})
	tools, err := connectStdio(t, s, withoutSessions, nil).ListTools(t.Context(), nil)
	if err != nil || tools.Tools[0].Title != "あいさつ" || tools.Tools[0].Description != "あいさつします。" {
		t.Errorf("tools: %+v, %v", tools, err)
	}
}

// TestSchemasAreListedFlat checks that clients are shown no composition at the top of a schema, and that calls are
// checked against it all the same.
func TestSchemasAreListedFlat(t *testing.T) {
	t.Parallel()
	find := tool("find")
	find.InputSchema = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"text":{"type":"string"}},"anyOf":[{"required":["name"]},{"required":["text"]}]}`)
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, offerAll(t, serveEverything, &manifest.Manifest{Name: "test", Tools: []manifest.Tool{find}}),
			nil, nil)
		client := frontend.connect(t, s, version, nil)
		tools, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		word := map[string]any{"type": "string"}
		if want := map[string]any{"type": "object",
			"properties": map[string]any{"name": word, "text": word}}; !reflect.DeepEqual(tools.Tools[0].InputSchema,
			want) {
			t.Errorf("listed with %v, want %v", tools.Tools[0].InputSchema, want)
		}
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "find", Arguments: map[string]any{}})
		if err != nil || !result.IsError || !strings.Contains(textOf(t, result), "anyOf") &&
			!strings.Contains(textOf(t, result), "name") {
			t.Errorf("called with nothing: %+v, %v", result, err)
		}
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, offer(t, serveEverything, "c", "a", "e", "b", "d"), nil, &Options{PageSize: 2})
		client := frontend.connect(t, s, version, nil)
		var names []string
		var sizes []int
		for cursor := ""; ; {
			page, err := client.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, len(page.Tools))
			for _, tool := range page.Tools {
				names = append(names, tool.Name)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if !slices.Equal(names, []string{"a", "b", "c", "d", "e"}) || !slices.Equal(sizes, []int{2, 2, 1}) {
			t.Errorf("names %v in pages of %v", names, sizes)
		}
	})
}

// TestTellsOfChanges adds and removes plugins while clients of both versions watch.
func TestTellsOfChanges(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		c := offer(t, serveEverything, "first")
		s := newServer(t, c, nil, nil)
		options, told := watching()
		client := frontend.connect(t, s, version, options)
		// The client's stream may not stand yet, and what is missed is missed: change until told. The client keeps the
		// list that it has until then, and it may still be told of the change before.
		after := func(change func(), want ...string) {
			t.Helper()
			var names []string
			for ctx := testwait.Context(t); !slices.Equal(names, want); {
				if ctx.Err() != nil {
					t.Fatalf("tools %v, want %v", names, want)
				}
				change()
				select {
				case <-told:
				case <-time.After(50 * time.Millisecond):
					continue
				}
				tools, err := client.ListTools(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				names = nil
				for _, tool := range tools.Tools {
					names = append(names, tool.Name)
				}
			}
		}
		after(func() {
			put(t, c, serveEverything, &manifest.Manifest{Name: "other", Tools: []manifest.Tool{tool("second")}})
		}, "first", "second")
		after(func() { c.Remove("test") }, "second")
	})
}

// watching are options of a client that wants to be told of changes to tools.
func watching() (options *mcp.ClientOptions, told chan struct{}) {
	told = make(chan struct{}, 100)
	return &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} },
	}, told
}

func TestErrorsHaveCodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		code int64
		text string
		data string
	}{
		"unknown": {&pipeline.NotFoundError{Kind: "tool", Name: "x", Hint: "look again"}, -32602,
			`unknown tool "x": look again`, ""},
		"not allowed": {&pipeline.NotAllowedError{Name: "x", Reason: "run: hako plugin approve x"}, -32602,
			"x is not allowed: run: hako plugin approve x", ""},
		"invalid": {&pipeline.InvalidError{Reason: "no"}, -32602, "no", ""},
		"limit": {&limit.Error{Plugin: "p", Limit: "time", Value: "1s", Remedy: "be quick"}, -32603,
			"plugin p passed its time limit of 1s: be quick", ""},
		"guest":           {&catalog.GuestError{Plugin: "p", Reason: "stopped"}, -32603, "plugin p stopped", ""},
		"guest not found": {&abi.Error{Code: abi.CodeNotFound, Message: "gone"}, -32602, "gone", ""},
		"guest invalid":   {&abi.Error{Code: abi.CodeInvalid, Message: "bad"}, -32602, "bad", ""},
		"guest network":   {&abi.Error{Code: abi.CodeNetwork, Message: "unplugged"}, -32603, "unplugged", ""},
		"host":            {errors.New("password is hunter2"), -32603, internalText, ""},
		"host, with the call's ID": {fmt.Errorf("%w (call_1)", pipeline.ErrInternal), -32603,
			"internal error of the host: its log has the details (call_1)", ""},
		"canceled": {context.Canceled, -32603, "the request was canceled", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := caller(func(context.Context, *pipeline.Call) (*pipeline.Result, error) { return nil, test.err })
			client := connectStdio(t, newServer(t, offer(t, nil, "x"), calls, nil), withSessions, nil)
			_, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != test.code || wire.Message != test.text {
				t.Errorf("error %v, want %d %s", err, test.code, test.text)
			}
		})
	}
}

// TestUnknownNames checks that what nobody offers reaches the pipeline, which records it, and is answered as the
// protocol says.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	everyFrontend(t, func(t *testing.T, frontend frontend, version string) {
		s := newServer(t, offerAll(t, serveEverything, everything()), nil, nil)
		client := frontend.connect(t, s, version, nil)
		check := func(what string, err error, text, data string) {
			t.Helper()
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams ||
				!strings.Contains(wire.Message, text) || string(wire.Data) != data {
				t.Errorf("%s: %v, want -32602 %q with data %q", what, err, text, data)
			}
		}
		_, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "nope"})
		check("tool", err, `unknown tool "nope"`, "")
		_, err = client.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "nope"})
		check("prompt", err, `unknown prompt "nope"`, "")
		_, err = client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "nope://x"})
		check("resource", err, `unknown resource "nope://x"`, `{"uri":"nope://x"}`)
		_, err = client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://item/none"})
		check("resource of a template", err, "no such item", `{"uri":"test://item/none"}`)
		_, err = client.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "ask"})
		check("prompt without argument", err, "needs the argument topic", "")
		result, err := client.CallTool(t.Context(),
			&mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "much too long"}})
		if err != nil || !result.IsError || !strings.Contains(textOf(t, result), "arguments of greet") {
			t.Errorf("wrong arguments: %s, %v, want a tool error", textOf(t, result), err)
		}
	})
}

func TestContentOfEveryKind(t *testing.T) {
	t.Parallel()
	priority, size := 0.5, int64(3)
	response := &abi.Response{
		Replayed: true,
		IsError:  true,
		Content: []abi.Content{
			{Type: abi.Text, Text: "a <b> & c", Annotations: &abi.Annotations{Audience: []string{"user"},
				Priority: &priority, LastModified: "2026-01-02T03:04:05Z"}},
			{Type: abi.Text, Text: "t", Meta: json.RawMessage(`{"k":9007199254740993}`)},
			{Type: abi.Image, MIMEType: "image/png", Data: []byte{1, 2}},
			{Type: abi.Audio, MIMEType: "audio/wav", Data: []byte{3}},
			{Type: abi.ResourceLink, URI: "test://x", Name: "x", Title: "X", Description: "an x",
				MIMEType: "text/plain", Size: &size},
			{Type: abi.Embedded, Resource: &abi.ResourceContents{URI: "test://y", Data: []byte{},
				Meta: json.RawMessage(`{"r":1}`)}, Meta: json.RawMessage(`{"e":1}`)},
		},
		Meta: json.RawMessage(`{"ui":{"a":1},"b":2}`),
	}
	want := `{"content":[
		{"type":"text","text":"a <b> & c","annotations":{"audience":["user"],"lastModified":"2026-01-02T03:04:05Z","priority":0.5}},
		{"type":"text","text":"t","_meta":{"k":9007199254740993}},
		{"type":"image","mimeType":"image/png","data":"AQI="},
		{"type":"audio","mimeType":"audio/wav","data":"Aw=="},
		{"type":"resource_link","uri":"test://x","name":"x","title":"X","description":"an x","mimeType":"text/plain","size":3},
		{"type":"resource","resource":{"uri":"test://y","blob":"","_meta":{"r":1}},"_meta":{"e":1}}],
		"isError":true,"_meta":{"run.hako/replayed":true,"ui":{"a":1},"b":2}}`
	got, err := json.Marshal(&toolResult{reply: reply{response: response}})
	if err != nil {
		t.Fatal(err)
	}
	if !sameJSON(t, string(got), want) || !strings.Contains(string(got), "9007199254740993") {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for server, want := range map[string]string{"": `"_meta":{"b":2},`, `{"name":"s"}`: `"_meta":{"` + mcp.MetaKeyServerInfo + `":{"name":"s"},"b":2},`} {
		r := reply{response: &abi.Response{Meta: json.RawMessage(`{"b":2}`)}}
		if server != "" {
			r.server = json.RawMessage(server)
		}
		if got := string(r.appendMeta(nil)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := (&reply{response: &abi.Response{Meta: json.RawMessage(`{}`)}}).appendMeta(nil); len(got) > 0 {
		t.Errorf("without metadata: %s", got)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// TestStructuredContentThatIsNoObject: until 2026-07-28 clients refuse it.
func TestStructuredContentThatIsNoObject(t *testing.T) {
	t.Parallel()
	response := func() *abi.Response {
		return &abi.Response{StructuredContent: json.RawMessage(` [1,2]`),
			Content: []abi.Content{{Type: abi.Text, Text: "two"}}}
	}
	kept, fitted := response(), response()
	fit(kept, withoutSessions)
	fit(fitted, withSessions)
	if kept.StructuredContent == nil || len(kept.Content) != 1 {
		t.Errorf("2026: %+v", kept)
	}
	if fitted.StructuredContent != nil || len(fitted.Content) != 2 || fitted.Content[1].Text != " [1,2]" {
		t.Errorf("2025: %+v", fitted)
	}
}

func TestCallerIsFilledIn(t *testing.T) {
	t.Parallel()
	seen := make(chan pipeline.Caller, 1)
	calls := caller(func(_ context.Context, call *pipeline.Call) (*pipeline.Result, error) {
		seen <- call.Caller
		return ok(text("done"))
	})
	token, hash := bearer.New()
	opened, err := auth.New(auth.Options{Tokens: []bearer.Token{{Name: "ci", Hash: hash, User: "aki", Tenant: "acme"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, offer(t, nil, "x"), calls, &Options{Auth: opened})
	h := s.Handler()
	as := []string{"Authorization", "Bearer " + token, "Accept-Language", "ja;q=0.9, en;q=0.5"}
	from := func(c pipeline.Caller) pipeline.Caller {
		c.Token, c.Client, c.ClientVersion, c.Address, c.RequestID = "ci", "test", "1", "192.0.2.1", "1"
		return c
	}

	do(h, post(withoutSessions, message(withoutSessions, 1, "tools/call", `{"name":"x"}`), as...))
	if got, want := <-seen, from(pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: "aki", Locale: "ja"}); !reflect.DeepEqual(got, want) {
		t.Errorf("HTTP, 2026: %+v, want %+v", got, want)
	}
	id := openSession(t, h, as...)
	do(h, post(withSessions, message(withSessions, 1, "tools/call", `{"name":"x"}`),
		append(as, "Mcp-Session-Id", id)...))
	if got, want := <-seen, from(pipeline.Caller{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: "aki", Locale: "ja", Session: id[:8], SessionSecret: id}); !reflect.DeepEqual(got, want) {
		t.Errorf("HTTP, 2025: %+v, want %+v", got, want)
	}
	line := message(withoutSessions, 7, "tools/call", `{"name":"x"}`)
	if err := s.ServeStdio(t.Context(), strings.NewReader(line), io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, want := <-seen, (pipeline.Caller{Frontend: pipeline.FrontendStdio, Client: "test", ClientVersion: "1", RequestID: "7"}); !reflect.DeepEqual(got, want) {
		t.Errorf("stdio: %+v, want %+v", got, want)
	}
}

func TestLocale(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "ja": "ja", "en-GB, ja;q=0.5": "en-GB", "ja;q=0.1, de;q=0.9": "de", "*": "", "!!": "", "en;q=x": "",
		strings.Repeat("a", 1000): "",
	} {
		if got := locale(header); got != want {
			t.Errorf("locale(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestCompletionIsCut(t *testing.T) {
	t.Parallel()
	details := completion(&abi.Completion{Values: make([]string, 150)})
	if len(details.Values) != 100 || !details.HasMore || details.Total != 150 {
		t.Errorf("%d values, hasMore %v, total %d", len(details.Values), details.HasMore, details.Total)
	}
	if details := completion(nil); details.Values == nil {
		t.Error("no values are null, want an empty list")
	}
}

// TestSkipsWhatTheSDKRefuses: one odd tool must not take the others with it, nor live on as what it was before.
func TestSkipsWhatTheSDKRefuses(t *testing.T) {
	t.Parallel()
	c := offer(t, serveEverything, "a", "b", "c")
	s := newServer(t, c, nil, nil)
	client := connectStdio(t, s, withSessions, nil)
	m := &manifest.Manifest{Name: "test", Tools: []manifest.Tool{tool("a"), tool("b"), tool("c")}}
	m.Tools[1].InputSchema = json.RawMessage(`{"type":"object","properties":{"x":{"type":"object","x-mcp-header":"X"}}}`)
	put(t, c, serveEverything, m)
	tools, err := client.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 2 || tools.Tools[0].Name != "a" || tools.Tools[1].Name != "c" {
		t.Errorf("tools: %+v, %v, want a and c", tools, err)
	}
	c.Remove("test")
	if left := len(*s.catalogSync.headers.Load()); left != 0 {
		t.Errorf("%d tools are remembered after all have gone", left)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]*Options{
		"page size":        {PageSize: -1},
		"limit":            {Limits: limits.Limits{Calls: -1}},
		"origin, path":     {Origins: []string{"https://example.com/app"}},
		"origin, no host":  {Origins: []string{"https://"}},
		"origin, wildcard": {Origins: []string{"*"}},
		"host, port":       {Hosts: []string{"example.com:80"}},
		"host, URL":        {Hosts: []string{"https://example.com"}},
		"host, empty":      {Hosts: []string{""}},
	} {
		if s, err := New(new(catalog.Catalog), nil, options); err == nil {
			s.Close()
			t.Errorf("%s: no error", name)
		}
	}
}
