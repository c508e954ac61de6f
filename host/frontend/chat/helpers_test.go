package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/abi"
)

// step is one answer of a scripted model, made from the request.
type step func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error)

// model is a scripted llm.Provider that records requests. It repeats the last step.
type model struct {
	mu       sync.Mutex
	steps    []step
	requests []llm.Request
}

func (m *model) Name() string { return "scripted" }

func (m *model) Complete(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
	m.mu.Lock()
	kept := *r
	kept.Messages = append([]llm.Message{}, r.Messages...)
	m.requests = append(m.requests, kept)
	next := m.steps[min(len(m.requests), len(m.steps))-1]
	m.mu.Unlock()
	return next(ctx, r, stream)
}

// asked returns the i-th request.
func (m *model) asked(t *testing.T, i int) llm.Request {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if i >= len(m.requests) {
		t.Fatalf("the model was asked %d times, want more than %d", len(m.requests), i)
	}
	return m.requests[i]
}

func (m *model) times() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// says answers with text, in two pieces.
func says(text string) step {
	return func(_ context.Context, _ *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		half := len([]rune(text)) / 2
		if stream != nil {
			stream(llm.Delta{Text: string([]rune(text)[:half])})
			stream(llm.Delta{Text: string([]rune(text)[half:])})
		}
		return &llm.Response{Text: text, Stop: llm.StopEnd, Model: "scripted-1",
			Usage: llm.Usage{Input: 10, Output: 5}, Cost: 0.01}, nil
	}
}

// calls asks for tools: pairs of a name and arguments.
func calls(pairs ...string) step {
	return func(_ context.Context, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		response := &llm.Response{Stop: llm.StopTools, Model: "scripted-1",
			Usage: llm.Usage{Input: 10, Output: 5}, Cost: 0.01}
		for i := 0; i < len(pairs); i += 2 {
			response.Calls = append(response.Calls, llm.Call{
				ID: "call_" + string(rune('a'+len(r.Messages))) + string(rune('0'+i/2)), Name: pairs[i],
				Arguments: json.RawMessage(pairs[i+1]),
			})
		}
		return response, nil
	}
}

// fails answers with an error.
func fails(err error) step {
	return func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) { return nil, err }
}

// toolsManifest is the manifest of the scripted tools.
const toolsManifest = `
name: test
version: 1.0.0
description: d
tools:
  - name: get_weather
    title: {en: Weather, ja: 天気予報}
    description: {en: The weather of a place., ja: 場所の天気。}
    annotations: {readOnlyHint: true, openWorldHint: false}
    inputSchema: {type: object, properties: {location: {type: string}}, required: [location], additionalProperties: false}
  - name: delete_file
    title: {en: Delete a file, ja: ファイルの削除}
    description: Deletes a file.
    inputSchema: {type: object, properties: {path: {type: string}}, required: [path]}
`

// backend answers tool calls with a function, by name.
type backend map[string]func(ctx context.Context, r *abi.Request) (*abi.Response, error)

func (b backend) Call(ctx context.Context, i *catalog.Invocation) (*abi.Response, error) {
	if answer, ok := b[i.Request.Name]; ok {
		return answer(ctx, i.Request)
	}
	return nil, errors.New("no such tool in the test")
}

// gives answers with text.
func gives(text string) func(context.Context, *abi.Request) (*abi.Response, error) {
	return func(context.Context, *abi.Request) (*abi.Response, error) {
		return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: text}}}, nil
	}
}

// bench is an Engine with its dependencies.
type bench struct {
	*chat.Engine
	model *model
	store *store.Store
}

// setup makes an Engine whose tools are b's, behind a pipeline. change may be nil.
func setup(t *testing.T, m *model, b backend, governance *pipeline.Governance, change func(*chat.Options)) *bench {
	t.Helper()
	s := storetest.Open(t, storetest.Where(t))
	return setupOn(t, s, m, b, governance, change)
}

func setupOn(t *testing.T, s *store.Store, m *model, b backend, governance *pipeline.Governance,
	change func(*chat.Options)) *bench {
	t.Helper()
	parsed, err := manifest.Parse([]byte(toolsManifest))
	if err != nil {
		t.Fatal(err)
	}
	c := new(catalog.Catalog)
	if err := c.Put(catalog.Source{Name: "test", Backend: b}, parsed); err != nil {
		t.Fatal(err)
	}
	piped := &pipeline.Options{}
	if governance != nil {
		piped.Governance = *governance
	}
	p := pipeline.New(c, piped)
	options := &chat.Options{
		Provider: m, Store: s, Call: p.Call, MayAsk: p.MayAsk, Locale: "en", Zone: time.UTC,
		Tools: func(caller pipeline.Caller) (list []*catalog.Tool) {
			for _, tool := range c.View().Tools {
				if p.Visible(caller, tool) {
					list = append(list, tool)
				}
			}
			return list
		},
	}
	if change != nil {
		change(options)
	}
	e, err := chat.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return &bench{e, m, s}
}

var aki = pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki"}

// say runs a turn of the user aki.
func (b *bench) say(t *testing.T, conversation, text string) (*chat.Answer, *surface, error) {
	t.Helper()
	s := new(surface)
	answer, err := b.Turn(t.Context(), &chat.Turn{Conversation: conversation, Caller: aki, Text: text, Surface: s})
	return answer, s, err
}

// surface records the calls of its methods.
type surface struct {
	text    strings.Builder
	events  []string
	notices []chat.Notice
	ask     func(context.Context, *approval.Question) (bool, error)
}

func (s *surface) Text(delta string) { s.text.WriteString(delta) }

func (s *surface) ToolStarted(_, name, title string) {
	s.events = append(s.events, "started "+name+" "+title)
}

func (s *surface) ToolEnded(_ string, outcome pipeline.Outcome, short string) {
	s.events = append(s.events, "ended "+string(outcome)+" "+short)
}

func (s *surface) Notice(kind chat.Notice, text string) {
	s.notices = append(s.notices, kind)
	s.events = append(s.events, "notice "+text)
}

func (s *surface) Prompter(chat.ToolCall) approval.Prompter { return approval.Prompter{Ask: s.ask} }

// results are the tool results that the model was given with the request.
func results(r llm.Request) []llm.Result {
	var list []llm.Result
	for _, m := range r.Messages {
		list = append(list, m.Results...)
	}
	return list
}
