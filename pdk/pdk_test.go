package pdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/locale"
	"github.com/hako-run/hako/pdk/pdktest"
)

type arguments struct {
	Text string `json:"text"`
}

func init() {
	pdk.HandleTool("text", func(_ context.Context, in arguments) (string, error) { return in.Text, nil })
	pdk.HandleTool("structured", func(_ context.Context, in arguments) (arguments, error) { return in, nil })
	pdk.HandleTool("result", func(_ context.Context, in arguments) (*pdk.Result, error) {
		return pdk.Text("a").AddImage("image/png", []byte{1}).AddAudio("audio/wav", []byte{2}).AddLink("x:y", "n",
			"text/plain").
			AddResource(pdk.ResourceContents{URI: "x:y", Text: "t"}).WithStructured(in).AsError(), nil
	})
	pdk.HandleTool("nothing", func(context.Context, arguments) (*pdk.Result, error) { return nil, nil })
	pdk.HandleTool("fail", func(context.Context, arguments) (string, error) { return "", errors.New("not today") })
	closed := locale.Text{"en": "not on a %[1]s", "ja": "%[2]sは休みです"}
	pdk.HandleTool("localized", func(context.Context, arguments) (string, error) {
		return "", fmt.Errorf("look it up: %w", closed.Errorf("Monday", "月曜日"))
	})
	pdk.HandleResource("test://localized", func(context.Context, string) ([]pdk.ResourceContents, error) {
		return nil, closed.Errorf("Monday", "月曜日")
	})
	pdk.HandleTool("panic", func(context.Context, arguments) (string, error) { panic("oops") })
	pdk.HandleTool("unmarshallable", func(context.Context, arguments) (chan int, error) { return make(chan int), nil })
	pdk.HandleTool("surroundings", func(ctx context.Context, _ arguments) (string, error) {
		var config struct{ Key string }
		err := pdk.Config(ctx, &config)
		pdk.Log(ctx).With("a", 1).Info("logged", "b", 2)
		pdk.Progress(ctx, 1, 2, "half")
		return config.Key + " " + pdk.Locale(ctx), err
	})
	pdk.HandleResource("test://fixed", func(_ context.Context, uri string) ([]pdk.ResourceContents, error) {
		return []pdk.ResourceContents{{URI: uri, Text: "fixed"}}, nil
	})
	pdk.HandleResourceTemplate("test://{id}",
		func(_ context.Context, uri string, variables map[string]string) ([]pdk.ResourceContents, error) {
			return []pdk.ResourceContents{{URI: uri, Text: variables["id"]}}, nil
		})
	pdk.HandlePrompt("prompt", func(_ context.Context, arguments map[string]string) (*pdk.Prompt, error) {
		return &pdk.Prompt{Messages: []pdk.PromptMessage{{Role: "user",
			Content: pdk.Content{Type: abi.Text, Text: arguments["a"]}}}}, nil
	})
	pdk.CompletePrompt("prompt", "a", func(_ context.Context, value string, resolved map[string]string) ([]string,
		error) {
		values := make([]string, 150)
		for i := range values {
			values[i] = value + resolved["b"]
		}
		return values, nil
	})
	pdk.CompleteResource("test://{id}", "id", func(context.Context, string, map[string]string) ([]string, error) {
		return nil, errors.New("cannot")
	})
}

func TestHandle(t *testing.T) {
	for _, test := range []struct {
		name    string
		request abi.Request
		want    string // the response as JSON
	}{
		{"text", abi.Request{Method: abi.CallTool, Name: "text", Arguments: json.RawMessage(`{"text":"あ"}`)},
			`{"content":[{"type":"text","text":"あ"}]}`},
		{"no arguments", abi.Request{Method: abi.CallTool, Name: "text"}, `{"content":[{"type":"text"}]}`},
		{"wrong arguments", abi.Request{Method: abi.CallTool, Name: "text", Arguments: json.RawMessage(`{"text":1}`)},
			`{"content":[{"type":"text","text":"arguments of text: json: cannot unmarshal number into Go struct field arguments.text of type string"}],"isError":true}`},
		{"structured", abi.Request{Method: abi.CallTool, Name: "structured",
			Arguments: json.RawMessage(`{"text":"x"}`)},
			`{"structuredContent":{"text":"x"}}`},
		{"result", abi.Request{Method: abi.CallTool, Name: "result"},
			`{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png"},{"type":"audio","mimeType":"audio/wav"},` +
				`{"type":"resource_link","mimeType":"text/plain","uri":"x:y","name":"n"},{"type":"resource","resource":{"uri":"x:y","text":"t"}}],` +
				`"structuredContent":{"text":""},"isError":true}`},
		{"nil result", abi.Request{Method: abi.CallTool, Name: "nothing"}, `{}`},
		{"error", abi.Request{Method: abi.CallTool, Name: "fail"},
			`{"content":[{"type":"text","text":"not today"}],"isError":true}`},
		{"error in English", abi.Request{Method: abi.CallTool, Name: "localized", Locale: "en"},
			`{"content":[{"type":"text","text":"not on a Monday"}],"isError":true}`},
		{"error in Japanese", abi.Request{Method: abi.CallTool, Name: "localized", Locale: "ja-JP"},
			`{"content":[{"type":"text","text":"月曜日は休みです"}],"isError":true}`},
		{"error of a resource in Japanese", abi.Request{Method: abi.ReadResource, URI: "test://localized",
			Locale: "ja"}, `{"error":{"code":"internal","message":"月曜日は休みです"}}`},
		{"panic", abi.Request{Method: abi.CallTool, Name: "panic"},
			`{"content":[{"type":"text","text":"panic stopped unexpectedly: oops"}],"isError":true}`},
		{"cannot be marshalled", abi.Request{Method: abi.CallTool, Name: "unmarshallable"},
			`{"content":[{"type":"text","text":"encode the structured content: json: unsupported type: chan int"}],"isError":true}`},
		{"unknown tool", abi.Request{Method: abi.CallTool, Name: "absent"},
			`{"error":{"code":"not-found","message":"this plugin has no handler for the tool absent"}}`},
		{"unknown method", abi.Request{Method: "tools/burn"},
			`{"error":{"code":"not-found","message":"this plugin has no handler for the method tools/burn"}}`},
		{"resource", abi.Request{Method: abi.ReadResource, URI: "test://fixed"},
			`{"contents":[{"uri":"test://fixed","text":"fixed"}]}`},
		{"template", abi.Request{Method: abi.ReadResource, URI: "test://7", Template: "test://{id}",
			Variables: map[string]string{"id": "7"}},
			`{"contents":[{"uri":"test://7","text":"7"}]}`},
		{"unknown resource", abi.Request{Method: abi.ReadResource, URI: "other://"},
			`{"error":{"code":"not-found","message":"this plugin has no handler for the resource other://"}}`},
		{"prompt", abi.Request{Method: abi.GetPrompt, Name: "prompt", Arguments: json.RawMessage(`{"a":"x"}`)},
			`{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`},
		{"prompt with numbers", abi.Request{Method: abi.GetPrompt, Name: "prompt",
			Arguments: json.RawMessage(`{"a":1}`)},
			`{"error":{"code":"invalid","message":"arguments of prompt: json: cannot unmarshal number into Go value of type string"}}`},
		{"unknown prompt", abi.Request{Method: abi.GetPrompt, Name: "absent"},
			`{"error":{"code":"not-found","message":"this plugin has no handler for the prompt absent"}}`},
		{"no completer", abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "prompt"},
			Argument: &abi.Argument{Name: "z"}},
			`{"completion":{"values":[]}}`},
		{"failing completer", abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/resource", URI: "test://{id}"},
			Argument: &abi.Argument{Name: "id"}},
			`{"error":{"code":"internal","message":"cannot"}}`},
		{"completion of nothing", abi.Request{Method: abi.Complete},
			`{"error":{"code":"invalid","message":"a completion needs a ref and an argument"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := json.Marshal(pdk.Handle(t.Context(), &test.request))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestCompletionIsBounded(t *testing.T) {
	response := pdk.Handle(t.Context(), &abi.Request{
		Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "prompt"},
		Argument: &abi.Argument{Name: "a", Value: "v", Resolved: map[string]string{"b": "w"}},
	})
	c := response.Completion
	if c == nil || len(c.Values) != 100 || c.Total != 150 || !c.HasMore || c.Values[0] != "vw" {
		t.Errorf("completion = %+v", c)
	}
}

func TestListHandlers(t *testing.T) {
	h := pdk.Handle(t.Context(), &abi.Request{Method: abi.ListHandlers}).Handlers
	if h == nil || len(h.Tools) != 9 || strings.Join(h.Prompts, " ") != "prompt" || h.Resources[0] != "test://fixed" ||
		h.ResourceTemplates[0] != "test://{id}" {
		t.Errorf("handlers = %+v", h)
	}
}

func TestCallEnvironment(t *testing.T) {
	var logged bytes.Buffer
	before := log.Writer()
	log.SetOutput(&logged)
	defer log.SetOutput(before)
	response := pdktest.CallTool(t, "surroundings", arguments{},
		pdktest.Options{Config: map[string]string{"Key": "value"}, Locale: "ja"})
	if got := response.Content[0].Text; got != "value ja" {
		t.Errorf("surroundings = %q", got)
	}
	if !strings.Contains(logged.String(), "logged a=1 b=2") {
		t.Errorf("log = %q", logged.String())
	}
}

func TestContext(t *testing.T) {
	ctx := pdk.NewContext(t.Context(), &abi.Request{DeadlineMS: 60_000})
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute {
		t.Errorf("deadline = %v, %v", deadline, ok)
	}
	if _, ok := pdk.NewContext(context.Background(), &abi.Request{}).Deadline(); ok {
		t.Error("a deadline without one")
	}
	parent, cancel := context.WithCancel(t.Context())
	ctx = pdk.NewContext(parent, &abi.Request{})
	if ctx.Err() != nil {
		t.Error("canceled too early")
	}
	cancel()
	for range 2 { // Err may be called again
		if err := ctx.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("Err = %v", err)
		}
	}
	select {
	case <-ctx.Done():
	default:
		t.Error("Done is open after Err")
	}
}

// TestContextFollowsParent: in a test, Done needs no call of Err, and goroutines may call Err at once.
func TestContextFollowsParent(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	silent := pdk.NewContext(parent, &abi.Request{})
	for range 100 {
		ctx := pdk.NewContext(parent, &abi.Request{})
		defer func() {
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() { ctx.Err() })
			}
			<-ctx.Done()
			group.Wait()
		}()
	}
	cancel()
	<-silent.Done()
}

func TestFetch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Method", r.Method+" "+r.Header.Get("X-In"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("0123456789"))
	}))
	defer server.Close()
	ctx := pdktest.Context(t, pdktest.Options{})
	response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{URL: server.URL, Header: map[string]string{"x-in": "v"}})
	if err != nil || response.Status != http.StatusTeapot || response.Header["X-Method"] != "GET v" ||
		string(response.Body) != "0123456789" {
		t.Errorf("response = %+v, %v", response, err)
	}
	var wire *abi.Error
	if _, err := pdk.Fetch(ctx, &pdk.HTTPRequest{URL: server.URL, MaxBody: 5}); !errors.As(err, &wire) ||
		wire.Code != abi.CodeLimit {
		t.Errorf("a body too large: %v", err)
	}
	if _, err := pdk.Fetch(ctx, &pdk.HTTPRequest{URL: "http://127.0.0.1:1"}); !errors.As(err, &wire) ||
		wire.Code != abi.CodeNetwork {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := pdk.Fetch(ctx, &pdk.HTTPRequest{URL: "::"}); !errors.As(err, &wire) || wire.Code != abi.CodeInvalid {
		t.Errorf("no URL: %v", err)
	}
}

// TestStart checks that requests are under way at once: the server answers none before both are there.
func TestStart(t *testing.T) {
	var arrived sync.WaitGroup
	arrived.Add(2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			<-r.Context().Done()
			return
		}
		arrived.Done()
		arrived.Wait()
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	defer server.Close()
	ctx := pdktest.Context(t, pdktest.Options{})
	start := func(path string) *pdk.Pending {
		pending, err := pdk.Start(ctx, &pdk.HTTPRequest{URL: server.URL + path})
		if err != nil {
			t.Fatal(err)
		}
		return pending
	}
	one, two, held := start("/one"), start("/two"), start("/held")
	held.Cancel()
	for path, pending := range map[string]*pdk.Pending{"/one": one, "/two": two} {
		if response, err := pending.Wait(); err != nil || string(response.Body) != path {
			t.Errorf("response = %+v, %v", response, err)
		}
	}
}

func TestTwoHandlersPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a second handler was taken")
		}
	}()
	pdk.HandlePrompt("prompt", nil)
}
