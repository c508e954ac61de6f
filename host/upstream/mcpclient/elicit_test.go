package mcpclient_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

func init() {
	serverKinds["asking"] = func(ctx context.Context) error { return askingServer().Run(ctx, &mcp.StdioTransport{}) }
	serverKinds["unasked"] = unaskedServer
}

// schemas are forms of hostile servers, by name.
var schemas = map[string]func() string{
	"nested": func() string {
		return `{"type":"object","properties":{"x":{"type":"object","properties":{"y":{"type":"string"}}}}}`
	},
	"huge": func() string {
		return `{"type":"object","properties":{"x":{"type":"string","description":"` + strings.Repeat("x", 5<<20) +
			`"}}}`
	},
	"secret": func() string {
		return `{"type":"object","properties":{"apiKey":{"type":"string"}},"required":["apiKey"]}`
	},
	"name": func() string {
		return `{"type":"object","properties":{"name":{"type":"string","maxLength":10}},"required":["name"]}`
	},
}

// askingServer asks in the middle of calls, in whatever way the version of the connection has: the SDK sees to that.
func askingServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	var calls atomic.Int32
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				calls.Add(1)
				defer calls.Add(-1)
			}
			return next(ctx, method, req)
		}
	})
	said := func(format string, args ...any) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
	}
	s.AddTool(&mcp.Tool{Name: "ask", Description: "Asks.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var a struct{ Schema, URL, Message string }
			if err := json.Unmarshal(req.Params.Arguments, &a); err != nil {
				return nil, err
			}
			if c := req.ClientCapabilities(); c == nil || c.Elicitation == nil {
				return said("cannot ask"), nil
			}
			if answer, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
				return said("%s %v", answer.Action, answer.Content["name"]), nil
			}
			p := &mcp.ElicitParams{Message: a.Message, URL: a.URL}
			if a.URL != "" {
				p.ElicitationID = "e1"
			} else {
				p.RequestedSchema = json.RawMessage(schemas[a.Schema]())
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": p}, RequestState: "s"}, nil
		})
	s.AddTool(&mcp.Tool{Name: "calls", Description: "Counts calls under way.",
		InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return said("%d", calls.Load()), nil
		})
	// flood asks many times at once, up to 2025-11-25.
	s.AddTool(&mcp.Tool{Name: "flood", Description: "Asks much.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var group sync.WaitGroup
			var mu sync.Mutex
			accepted, failed := 0, 0
			for range 200 {
				group.Go(func() {
					answer, err := req.Session.Elicit(ctx,
						&mcp.ElicitParams{Message: "again?", RequestedSchema: json.RawMessage(schemas["name"]())})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						failed++
					} else if answer.Action == "accept" {
						accepted++
					}
				})
			}
			group.Wait()
			return said("%d accepted, %d failed", accepted, failed), nil
		})
	s.AddTool(&mcp.Tool{Name: "rounds", Description: "Asks without end.",
		InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "again?",
				RequestedSchema: json.RawMessage(schemas["name"]())}}}, nil
		})
	return s
}

// unaskedServer asks before any call, and right after the answer to each.
func unaskedServer(context.Context) error {
	const question = `{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"mode":"form","message":"name?","requestedSchema":{"type":"object"}}}`
	results := map[string]any{
		"initialize": initialized(), "tools/list": map[string]any{"tools": []any{toolNamed("x")}},
		"tools/call": map[string]any{"content": []any{map[string]any{"type": "text", "text": "done"}}},
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var message struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(in.Bytes(), &message); err != nil {
			return err
		}
		if message.Method == "" {
			fmt.Fprintln(os.Stderr, "the question was answered")
		}
		if message.Method == "tools/list" {
			fmt.Println(question)
		}
		if result, ok := results[message.Method]; ok {
			reply, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": message.ID, "result": result})
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", reply)
		}
		if message.Method == "tools/call" {
			fmt.Println(question)
		}
	}
	return in.Err()
}

// inModes runs a test with a server that asks, over both transports and in both modes.
func inModes(t *testing.T, run func(t *testing.T, spec mcpclient.Spec)) {
	t.Helper()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("stdio "+version, func(t *testing.T) {
			t.Parallel()
			spec := child("up", "asking")
			spec.ProtocolVersion = version
			run(t, spec)
		})
		t.Run("HTTP "+version, func(t *testing.T) {
			t.Parallel()
			w := &web{stateless: version == "2026-07-28"}
			w.serve(askingServer())
			w.Server = httptest.NewServer(w)
			t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
			run(t, mcpclient.Spec{Name: "up", URL: w.URL, ProtocolVersion: version})
		})
	}
}

// filling is a person at a frontend who answers.
type filling func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error)

func accepting(content map[string]any) filling {
	return func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
		return elicitation.Answer{Action: elicitation.Accept, Content: content}, nil
	}
}

// ask makes a call as somebody who can be asked; fill may be nil.
func (r *rig) ask(ctx context.Context, user, tool, arguments string, fill filling) (*pipeline.Result, error) {
	return r.pipeline.Call(ctx, &pipeline.Call{
		Caller:   pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: user, Session: "s"},
		Request:  abi.Request{Method: abi.CallTool, Name: tool, Arguments: json.RawMessage(arguments)},
		Prompter: approval.Prompter{Fill: fill},
	})
}

// TestQuestion: what a server asks in the middle of a call is put to whoever made it, and the answer goes back.
func TestQuestion(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, spec mcpclient.Spec) {
		r := newRig(t, spec)
		aki := map[string]any{"name": "Aki"}
		for name, test := range map[string]struct {
			arguments string
			fill      filling
			want      string
		}{
			"accepted": {`{"schema":"name","message":"your name?"}`, accepting(aki), "accept Aki"},
			"declined": {`{"schema":"name"}`,
				filling(func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
					return elicitation.Answer{Action: "decline"}, nil
				}), "decline <nil>"},
			"dismissed": {`{"schema":"name"}`,
				filling(func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
					return elicitation.Answer{Action: "cancel"}, nil
				}), "cancel <nil>"},
			"does not fit": {`{"schema":"name"}`, accepting(map[string]any{"name": "longer than ten characters"}),
				"got no answer: the answer does not match"},
			"more": {`{"schema":"name"}`, accepting(map[string]any{"name": "Aki", "more": 1}),
				"got no answer: the answer does not match"},
			"cannot show": {`{"schema":"name"}`, func(context.Context, *elicitation.Question) (elicitation.Answer,
				error) {
				return elicitation.Answer{}, errors.New("gone")
			}, "cannot ask anybody"},
			"URL":       {`{"url":"https://example.com/sign-in"}`, accepting(nil), "accept <nil>"},
			"plain URL": {`{"url":"http://example.com/"}`, accepting(nil), "must begin with https"},
			"nested":    {`{"schema":"nested"}`, accepting(aki), "x"},
			"secret":    {`{"schema":"secret"}`, accepting(aki), "asks for a secret"},
			"message":   {`{"schema":"name","message":"Your password?"}`, accepting(aki), "asks for a secret"},
		} {
			t.Run(name, func(t *testing.T) {
				var asked *elicitation.Question
				result, err := r.ask(t.Context(), "aki", "up_ask", test.arguments,
					func(ctx context.Context, q *elicitation.Question) (elicitation.Answer, error) {
						asked = q
						return test.fill(ctx, q)
					})
				if err != nil {
					t.Fatal(err)
				}
				if got := text(result); !strings.Contains(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
				refused := slices.Contains([]string{"plain URL", "nested", "secret", "message"}, name)
				if (asked == nil) != refused || asked != nil && (asked.Server != "up" || asked.Tool != "up_ask") {
					t.Errorf("asked %+v", asked)
				}
			})
		}
	})
}

// TestNobodyToAsk: where nobody can be asked the server learns that, before the call begins if it speaks the newest
// version, and the caller too.
func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, spec mcpclient.Spec) {
		r := newRig(t, spec)
		result, err := r.ask(t.Context(), "aki", "up_ask", `{"schema":"name"}`, nil)
		want := "decline <nil>|Note: the server up asked something in the middle of this call, and got no answer: the caller's frontend cannot ask anybody."
		if spec.ProtocolVersion == "2026-07-28" {
			want = "cannot ask"
		}
		if err != nil || text(result) != want {
			t.Errorf("%v, %v", text(result), err)
		}
	})
}

// TestQuestionsDeclined: the operator can keep a server from asking.
func TestQuestionsDeclined(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, spec mcpclient.Spec) {
		spec.Elicitation = mcpclient.ElicitationDecline
		r := newRig(t, spec)
		result, err := r.ask(t.Context(), "aki", "up_ask", `{"schema":"name"}`, accepting(nil))
		if err != nil || text(result) != "cannot ask" {
			t.Errorf("%v, %v", result, err)
		}
		if tool, _ := r.catalog.View().Tool("up_ask"); tool.Source.Asks {
			t.Error("its tools may still ask")
		}
	})
}

// TestHugeForm: a form of 5 MB is refused, whether the connection takes it or not, and the server goes on.
func TestHugeForm(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			spec := child("up", "asking")
			spec.ProtocolVersion = version
			r := newRig(t, spec)
			result, err := r.ask(t.Context(), "aki", "up_ask", `{"schema":"huge"}`,
				func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
					t.Error("it was shown")
					return elicitation.Answer{}, nil
				})
			if err != nil || !strings.Contains(text(result), "larger than 64 KiB") {
				t.Errorf("%.300v, %v", result, err)
			}
			if result, err = r.ask(t.Context(), "aki", "up_ask", `{"schema":"name"}`, accepting(map[string]any{"name": "x"})); err != nil || text(result) != "accept x" {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
}

// TestFloodOfQuestions: a person sees ten questions of a call, one at a time, and no more. The log does not grow with
// the others.
func TestFloodOfQuestions(t *testing.T) {
	t.Parallel()
	began := time.Now()
	spec := child("up", "asking")
	spec.ProtocolVersion = "2025-11-25"
	r := newRig(t, spec)
	var mu sync.Mutex
	shown, at := 0, 0
	result, err := r.ask(t.Context(), "aki", "up_flood", `{}`,
		func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
			mu.Lock()
			shown, at = shown+1, at+1
			if at > 1 {
				t.Error("two at a time")
			}
			mu.Unlock()
			defer func() { mu.Lock(); at--; mu.Unlock() }()
			return elicitation.Answer{Action: "accept", Content: map[string]any{"name": "x"}}, nil
		})
	if err != nil || !strings.HasPrefix(text(result), "10 accepted, 190 failed") || shown != 10 {
		t.Errorf("%v, %v, %d shown", text(result), err, shown)
	}
	n := strings.Count(r.log.String(), "was not answered")
	if most := mcpclient.LogBurst + mcpclient.LogRate*(1+time.Since(began).Seconds()); n == 0 || float64(n) > most {
		t.Errorf("%d lines in the log, want %.0f at most", n, most)
	}
}

// TestRoundsWithoutEnd: a server that only ever asks is given up.
func TestRoundsWithoutEnd(t *testing.T) {
	t.Parallel()
	spec := child("up", "asking")
	spec.ProtocolVersion = "2026-07-28"
	r := newRig(t, spec)
	result, err := r.ask(t.Context(), "aki", "up_rounds", `{}`, accepting(map[string]any{"name": "x"}))
	if err != nil || !result.Response.IsError || !strings.Contains(text(result), "asked for input 10 times") {
		t.Errorf("%v, %v", result, err)
	}
}

// TestUnasked: a question without a call reaches nobody, and is answered with an error. One that comes with the end of
// a call ends with it.
func TestUnasked(t *testing.T) {
	t.Parallel()
	spec := child("up", "unasked")
	spec.ProtocolVersion = "2025-11-25"
	r := newRig(t, spec)
	answered := func() int { return strings.Count(r.log.String(), "the question was answered") }
	r.eventually("an answer to the first question", func() bool { return answered() >= 1 })
	if !strings.Contains(r.log.String(), "no running call") {
		t.Error("the log does not say so")
	}
	before := answered()
	result, err := r.ask(t.Context(), "aki", "up_x", `{}`,
		func(ctx context.Context, _ *elicitation.Question) (elicitation.Answer, error) {
			<-ctx.Done()
			return elicitation.Answer{}, ctx.Err()
		})
	if err != nil || text(result) != "done" {
		t.Errorf("%v, %v", result, err)
	}
	r.eventually("an answer to the next question", func() bool { return answered() > before })
}

// TestWhoseQuestion: while calls of several callers are under way, only a server that says for which it asks gets an
// answer.
func TestWhoseQuestion(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, spec mcpclient.Spec) {
		r := newRig(t, spec)
		told, asked := make(chan struct{}), make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			_, err := r.ask(t.Context(), "aki", "up_ask", `{"schema":"name"}`,
				func(context.Context, *elicitation.Question) (elicitation.Answer, error) {
					close(asked)
					<-told
					return elicitation.Answer{Action: "cancel"}, nil
				})
			if err != nil {
				t.Error(err)
			}
		})
		<-asked
		ken := accepting(map[string]any{"name": "Ken"})
		result, err := r.ask(t.Context(), "ken", "up_ask", `{"schema":"name"}`, ken)
		close(told)
		group.Wait()
		unclear := spec.URL == "" && spec.ProtocolVersion == "2025-11-25"
		if got := text(result); err != nil || (got == "accept Ken") == unclear || unclear &&
			!strings.Contains(got, "does not say which") {
			t.Errorf("%q, %v", got, err)
		}
		if result, err = r.ask(t.Context(), "ken", "up_ask", `{"schema":"name"}`, ken); err != nil ||
			text(result) != "accept Ken" {
			t.Errorf("alone: %v, %v", result, err)
		}
	})
}

// TestQuestionEndsWithCall: a question is taken back when the call is cancelled.
func TestQuestionEndsWithCall(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, spec mcpclient.Spec) {
		r := newRig(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		_, err := r.ask(ctx, "aki", "up_ask", `{"schema":"name"}`,
			func(ctx context.Context, _ *elicitation.Question) (elicitation.Answer, error) {
				cancel()
				<-ctx.Done()
				ended = true
				return elicitation.Answer{}, ctx.Err()
			})
		if !errors.Is(err, context.Canceled) || !ended {
			t.Errorf("%v, %v", err, ended)
		}
		r.eventually("end of the call at the server", func() bool { return text(r.call("up_calls", "{}")) == "1" })
	})
}
