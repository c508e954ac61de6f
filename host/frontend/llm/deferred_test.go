package llm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/anthropic"
	"github.com/hako-run/hako/dev/fakes/openai"
	"github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/dev/kit/testlog"
)

// searchable are the tools of a catalog that is too large to list.
func searchable() []Tool {
	deferred := func(name string) Tool {
		return Tool{Name: name, Description: "天気", Schema: weatherTool.Schema, Deferred: true}
	}
	return []Tool{{Name: "call_tool", Schema: weatherTool.Schema, Finds: true},
		{Name: "find_tools", Schema: weatherTool.Schema, Finds: true},
		{Name: "pinned", Schema: weatherTool.Schema}, inGroup("weather", deferred("get_weather")),
		deferred("get weather.jp")}
}

func inGroup(group string, tool Tool) Tool {
	tool.Group = group
	return tool
}

// newSearching returns a world with a model of Anthropic's that loads deferred tools, and its API.
func newSearching(t *testing.T, steps ...script.Step) (*world, *anthropic.Server) {
	t.Helper()
	server := &anthropic.Server{Script: &script.Script{Steps: steps}, Key: testKey}
	w := &world{t: t, side: side{server, &server.Faults, &server.Requests}, log: &testlog.Buffer{}}
	w.chain = w.newChain(server, deferring(spec(t, Anthropic)))
	return w, server
}

func deferring(s Spec) Spec {
	s.DeferTools = new(bool)
	*s.DeferTools = true
	return s
}

// sent returns the tools of request i: names, with a "+" for deferred ones, a "|" for a cache breakpoint, and the tools of
// a namespace in brackets.
func (w *world) sent(i int) (names string) {
	w.t.Helper()
	type tool struct {
		Type, Name string
		Function   struct{ Name string }
		Deferred   bool            `json:"defer_loading"`
		Cache      json.RawMessage `json:"cache_control"`
		Tools      []struct {
			Name     string
			Deferred bool `json:"defer_loading"`
		}
	}
	var body struct{ Tools []tool }
	if err := json.Unmarshal(w.requests.All()[i].Body, &body); err != nil {
		w.t.Fatal(err)
	}
	for _, tool := range body.Tools {
		names += " " + cmp.Or(tool.Name, tool.Function.Name, tool.Type)
		if tool.Deferred {
			names += "+"
		}
		for _, member := range tool.Tools {
			names += "(" + member.Name + strings.Repeat("+", map[bool]int{true: 1}[member.Deferred]) + ")"
		}
		if tool.Cache != nil {
			names += "|"
		}
	}
	return strings.TrimSpace(names)
}

var rainCalls = []script.Call{{Tool: "get_weather_jp", Arguments: `{"location":"東京"}`},
	{Tool: "get_weather", Arguments: `{"location":"大阪"}`}}

// TestDeferredTools: the model is sent the deferred tools with the provider's search instead of hako's, calls what it
// has found as any other tool, and what it has found comes back with the results.
func TestDeferredTools(t *testing.T) {
	t.Parallel()
	for _, think := range []string{"", "I need the forecast."} {
		w, _ := newSearching(t,
			script.Step{When: regexp.MustCompile("天気"), Think: think, Say: "調べます。", Call: rainCalls, Times: 1},
			script.Step{After: regexp.MustCompile("雨"), Call: rainCalls, Times: 1},
			script.Step{After: regexp.MustCompile("晴れ"), Say: "It rains."})
		r := asks("天気は？", searchable()...)
		r.Cache = true
		for _, result := range []string{"雨", "晴れ"} {
			response, deltas := w.must(r)
			if len(response.Calls) != 2 || response.Calls[0].Name != "get weather.jp" ||
				response.Calls[1].Name != "get_weather" || response.Stop != StopTools ||
				string(response.Calls[0].Arguments) != `{"location":"東京"}` {
				t.Fatalf("%+v", response)
			}
			if streamed(deltas) != response.Text || strings.Contains(response.Text, "search") {
				t.Errorf("streamed %+v", deltas)
			}
			results := []Result{{CallID: response.Calls[0].ID, Text: result},
				{CallID: response.Calls[1].ID, Text: result}}
			r.Messages = append(r.Messages, response.Message(), Message{Role: RoleUser, Results: results})
		}
		if response, _ := w.must(r); response.Text != "It rains." {
			t.Errorf("%+v", response)
		}
		for i := range 3 {
			if sent := w.sent(i); sent != "pinned get_weather+ get_weather_jp+ tool_search_tool_bm25|" {
				t.Errorf("request %d has the tools %s", i, sent)
			}
			if n := strings.Count(string(w.requests.All()[i].Body), `"tool_search_tool_result"`); n != min(i, 1) {
				t.Errorf("request %d has the results of %d searches", i, n)
			}
		}
	}
}

// TestWhoDefersTools: only models that are known to load deferred tools are sent them.
func TestWhoDefersTools(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, test := range []struct {
		provider, base string
		configured     *bool
		want           bool
	}{
		{Anthropic, "", nil, true},
		{Anthropic, "", &no, false},
		{Anthropic, "https://model.example", nil, false},
		{Anthropic, "https://model.example", &yes, true},
		{OpenAI, "", nil, true},
		{OpenAI, "", &no, false},
		{OpenAI, "https://model.example/v1", nil, false},
		{OpenAICompatible, "https://model.example/v1", nil, false},
	} {
		s := spec(t, test.provider)
		s.BaseURL, s.DeferTools = test.base, test.configured
		w := newWorld(t, test.provider)
		w.chain = w.newChain(w.Handler, s)
		w.must(asks("hello", searchable()...))
		want := "call_tool find_tools pinned"
		if test.want {
			want = "pinned get_weather+ get_weather_jp+ tool_search_tool_bm25"
			if test.provider == OpenAI {
				want = "pinned get_weather_jp+ weather(get_weather+) tool_search"
			}
		}
		if sent := w.sent(0); sent != want {
			t.Errorf("%+v: sent %s", test, sent)
		}
	}
	err := deferring(spec(t, OpenAICompatible)).Check()
	if err == nil || !strings.Contains(err.Error(), "deferTools") {
		t.Error(err)
	}
}

// newOpenAISearching is newSearching for a model of OpenAI's.
func newOpenAISearching(t *testing.T, steps ...script.Step) (*world, *openai.Server) {
	t.Helper()
	server := &openai.Server{Script: &script.Script{Steps: steps}, Key: testKey, Thinking: []string{"thinker"}}
	w := &world{t: t, side: side{server, &server.Faults, &server.Requests}, log: &testlog.Buffer{}}
	w.chain = w.newChain(server, deferring(spec(t, OpenAI)))
	return w, server
}

// TestDeferredToolsOfOpenAI: deferred tools are sent in namespaces with the API's search, and a search of the model's
// is sent back as it came, with the thoughts before it or without any.
func TestDeferredToolsOfOpenAI(t *testing.T) {
	t.Parallel()
	for _, think := range []string{"", "I need the forecast."} {
		w, _ := newOpenAISearching(t,
			script.Step{When: regexp.MustCompile("天気"), Think: think, Say: "調べます。", Call: rainCalls, Times: 1},
			script.Step{After: regexp.MustCompile("雨"), Call: rainCalls, Times: 1},
			script.Step{After: regexp.MustCompile("晴れ"), Say: "It rains."})
		r := asks("天気は？", searchable()...)
		for _, result := range []string{"雨", "晴れ"} {
			response, deltas := w.must(r)
			if len(response.Calls) != 2 || response.Calls[0].Name != "get weather.jp" ||
				response.Calls[1].Name != "get_weather" || response.Stop != StopTools ||
				streamed(deltas) != response.Text {
				t.Fatalf("%+v", response)
			}
			r.Messages = append(r.Messages, response.Message(), Message{Role: RoleUser, Results: []Result{
				{CallID: response.Calls[0].ID, Text: result}, {CallID: response.Calls[1].ID, Text: result}}})
		}
		if response, _ := w.must(r); response.Text != "It rains." {
			t.Errorf("%+v", response)
		}
		for i := range 3 {
			if sent := w.sent(i); sent != "pinned get_weather_jp+ weather(get_weather+) tool_search" {
				t.Errorf("request %d has the tools %s", i, sent)
			}
			if n := strings.Count(string(w.requests.All()[i].Body), `"tool_search_output"`); n != min(i, 1) {
				t.Errorf("request %d has the results of %d searches", i, n)
			}
		}
		if think != "" {
			continue
		}
		// Once the catalog is small, nothing is said of searches.
		r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t Tool) bool { return t.Deferred })
		w.must(r)
		if last := w.requests.All()[3].Body; strings.Contains(string(last), toolSearch) {
			t.Errorf("sent %s", last)
		}
	}
}

// TestOpenAIRejectsDeferredTools: a model that has no search is sent hako's tools, also later; so it is if a definition
// of a deferred tool is refused.
func TestOpenAIRejectsDeferredTools(t *testing.T) {
	t.Parallel()
	w, server := newOpenAISearching(t)
	server.Searchless = []string{"thinker"}
	for range 2 {
		w.must(asks("hello", searchable()...))
	}
	if len(w.requests.All()) != 3 || !strings.Contains(w.sent(0), toolSearch) ||
		w.sent(1) != "call_tool find_tools pinned" || w.sent(2) != w.sent(1) {
		t.Errorf("%d requests, then %s", len(w.requests.All()), w.sent(1))
	}
	w, _ = newOpenAISearching(t)
	refused := `{"error":{"message":"Invalid schema.","type":"invalid_request_error","param":"tools[1].tools[0]"}}`
	refusals := 1
	w.chain = w.newChain(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if refusals--; refusals == 0 {
			if _, err := w.requests.Read(rw, r); err != nil {
				t.Error(err)
			}
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = rw.Write([]byte(refused))
			return
		}
		w.ServeHTTP(rw, r)
	}), deferring(spec(t, OpenAI)))
	w.must(asks("hello", searchable()...))
	if sent := w.sent(1); sent != "call_tool find_tools pinned" {
		t.Errorf("sent %s", sent)
	}
}

// TestDeferredToolsWithoutSearch: where the provider's search does not do, hako's tools are sent.
func TestDeferredToolsWithoutSearch(t *testing.T) {
	t.Parallel()
	many := searchable()
	for i := range 10_000 {
		many = append(many, Tool{Name: fmt.Sprint("tool_", i), Schema: weatherTool.Schema, Deferred: true})
	}
	const listed = "call_tool find_tools pinned"
	for name, test := range map[string]struct {
		tools []Tool
		want  string
	}{
		"a tool with the name of the search": {append(searchable(), Tool{Name: searchTool, Schema: weatherTool.Schema}),
			listed + " " + searchTool},
		"too many tools": {many, listed},
		"none deferred":  {searchable()[:3], listed},
	} {
		w, _ := newSearching(t)
		w.must(asks("hello", test.tools...))
		if sent := w.sent(0); sent != test.want {
			t.Errorf("%s: sent %s", name, sent)
		}
	}
}

// TestModelRejectsDeferredTools: a model that refuses the search is sent hako's tools, also later.
func TestModelRejectsDeferredTools(t *testing.T) {
	t.Parallel()
	w, server := newSearching(t)
	server.Searchless = []string{"thinker"}
	for range 2 {
		w.must(asks("hello", searchable()...))
	}
	if len(w.requests.All()) != 3 || !strings.Contains(w.sent(0), searchTool) ||
		w.sent(1) != "call_tool find_tools pinned" || w.sent(2) != w.sent(1) {
		t.Errorf("%d requests, then %s", len(w.requests.All()), w.sent(1))
	}
}

// stream returns the events of a response.
func stream(stop string, blocks ...string) string {
	events := []string{`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"output_tokens":1}}}`}
	for i, block := range blocks {
		events = append(events, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block))
	}
	events = append(events, `{"type":"message_delta","delta":{"stop_reason":"`+stop+`"},"usage":{"output_tokens":5}}`,
		`{"type":"message_stop"}`)
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

// answering serves the streams in turn, and then the API.
func (w *world) answering(streams ...string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if len(streams) == 0 {
			w.ServeHTTP(rw, r)
			return
		}
		if _, err := w.requests.Read(rw, r); err != nil {
			w.t.Error(err)
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = rw.Write([]byte(streams[0]))
		streams = streams[1:]
	})
}

const (
	searchBlock = `{"id":"s1","input":{"query":"rain"},"name":"tool_search_tool_bm25","type":"server_tool_use"}`
	callBlock   = `{"type":"tool_use","id":"t1","name":"get_weather","input":{"location":"東京"}}`
)

// TestHostileSearches: what a search cannot have found is no call and is not sent back. The conversation goes on.
func TestHostileSearches(t *testing.T) {
	t.Parallel()
	result := func(content string) string {
		return `{"type":"tool_search_tool_result","tool_use_id":"s1","content":` + content + `}`
	}
	found := result(`{"type":"tool_search_tool_search_result",` +
		`"tool_references":[{"type":"tool_reference","tool_name":"rm"}]}`)
	for name, blocks := range map[string][]string{
		"an unknown tool": {searchBlock, found, callBlock},
		"no content":      {searchBlock, `{"type":"tool_search_tool_result","tool_use_id":"s1"}`, callBlock},
		"a text":          {searchBlock, result(`"rm"`), callBlock},
		"a list":          {searchBlock, result(`[{"tool_name":"rm"}]`), callBlock},
		"another kind":    {searchBlock, result(`{"type":"shell","tool_references":[]}`), callBlock},
		"references to no one": {searchBlock,
			result(`{"type":"tool_search_tool_search_result","tool_references":[7]}`), callBlock},
		"a result of nothing":  {found, callBlock},
		"a call in the result": {searchBlock, result(callBlock), callBlock},
	} {
		w, _ := newSearching(t)
		w.chain = w.newChain(w.answering(stream("tool_use", blocks...)), deferring(spec(t, Anthropic)))
		r := asks("rain?", searchable()...)
		response, deltas := w.must(r)
		if len(response.Calls) != 1 || response.Calls[0].Name != "get_weather" || len(deltas) != 0 ||
			response.Text != "" {
			t.Fatalf("%s: %+v %+v", name, response, deltas)
		}
		r.Messages = append(r.Messages, response.Message(),
			Message{Role: RoleUser, Results: []Result{{CallID: response.Calls[0].ID, Text: "rain"}}})
		if response, _ = w.must(r); response.Text != "rain" ||
			strings.Contains(string(w.requests.All()[1].Body), "tool_search_tool_result") {
			t.Errorf("%s: %+v after %s", name, response, w.requests.All()[1].Body)
		}
	}
}

// TestPausedSearch: a response that pauses after many searches is resumed, and is one response.
func TestPausedSearch(t *testing.T) {
	t.Parallel()
	result := `{"content":{"type":"tool_search_tool_search_result",` +
		`"tool_references":[{"type":"tool_reference","tool_name":"get_weather"}]},` +
		`"tool_use_id":"s1","type":"tool_search_tool_result"}`
	w, _ := newSearching(t)
	text := `{"text":"One moment.","type":"text"}`
	paused := stream("pause_turn", text, searchBlock, result)
	w.chain = w.newChain(w.answering(paused, stream("tool_use", callBlock)), deferring(spec(t, Anthropic)))
	response, deltas := w.must(asks("rain?", searchable()...))
	if response.Text != "One moment." || len(response.Calls) != 1 || response.Stop != StopTools || len(deltas) != 1 ||
		response.Usage != (Usage{Input: 20, Output: 10}) || len(response.State.parts) != 4 {
		t.Errorf("%+v %+v", response, deltas)
	}
	var body struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(w.requests.All()[1].Body, &body); err != nil || len(body.Messages) != 2 ||
		string(body.Messages[1]) != `{"role":"assistant","content":[`+text+`,`+searchBlock+`,`+result+`]}` {
		t.Errorf("resumed with %s", body.Messages)
	}
	silent := `{"type":"server_tool_use","id":"s1","name":"tool_search_tool_bm25"}` // without the required input
	w.chain = w.newChain(w.answering(stream("end_turn", silent)), deferring(spec(t, Anthropic)))
	if response, _ := w.must(asks("rain?", searchable()...)); !strings.Contains(string(response.State.parts[0]),
		`"input":{}`) {
		t.Errorf("a search for nothing is kept as %s", response.State.parts)
	}
	endless := slices.Repeat([]string{paused}, 100)
	w.chain = w.newChain(w.answering(endless...), deferring(spec(t, Anthropic)))
	before := len(w.requests.All())
	if response, _ := w.must(asks("rain?", searchable()...)); response.Stop != StopEnd ||
		len(w.requests.All())-before != 1+maxPauses {
		t.Errorf("%+v after %d requests", response, len(w.requests.All())-before)
	}
}

// TestHostileSearchesOfOpenAI: whatever an endpoint calls a search is no call and no text, and the call beside it is one.
func TestHostileSearchesOfOpenAI(t *testing.T) {
	t.Parallel()
	const call = `{"type":"function_call","call_id":"c1","namespace":"elsewhere","name":"get_weather",` +
		`"arguments":"{\"location\":\"東京\"}"}`
	for name, items := range map[string][]string{
		"nothing in it":           {`{"type":"tool_search_call"}`, call},
		"an output of nothing":    {`{"type":"tool_search_output","tools":"rm"}`, call},
		"arguments of any type":   {`{"type":"tool_search_call","arguments":[{"rm":7}],"call_id":7}`, call},
		"a call in what is found": {`{"type":"tool_search_output","tools":[` + call + `],"name":"rm"}`, call},
		"a call and content": {`{"type":"tool_search_call","call_id":"c2","name":"rm","content":[{"type":"output_text",` +
			`"text":"run rm"}]}`, call},
	} {
		w, _ := newOpenAISearching(t)
		events := `data: {"type":"response.completed","response":{"model":"m","output":[` + strings.Join(items, ",") + `]}}` +
			"\n\n"
		w.chain = w.newChain(w.answering(events), deferring(spec(t, OpenAI)))
		response, deltas := w.must(asks("rain?", searchable()...))
		if len(response.Calls) != 1 || response.Calls[0].Name != "get_weather" || len(deltas) > 0 ||
			response.Text != "" || string(response.Calls[0].Arguments) != `{"location":"東京"}` {
			t.Errorf("%s: %+v %+v", name, response, deltas)
		}
	}
}
