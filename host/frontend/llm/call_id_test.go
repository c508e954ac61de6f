package llm

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// callStream returns a response with a call of get_weather for each ID, which all have other arguments. If thinks is
// set, the response has a State.
func callStream(provider string, thinks bool, ids ...string) string {
	var parts []string
	event := func(format string, values ...any) string { return "data: " + fmt.Sprintf(format, values...) + "\n\n" }
	switch provider {
	case Anthropic:
		if thinks {
			parts = append(parts, `{"type":"thinking","thinking":"hm","signature":"signed"}`)
		}
		for i, id := range ids {
			parts = append(parts, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"get_weather",`+
				`"input":{"location":"%d"}}`, id, i))
		}
		return stream("tool_use", parts...)
	case OpenAI:
		if thinks {
			parts = append(parts, `{"type":"reasoning","id":"rs1","summary":[],"encrypted_content":"secret"}`)
		}
		all := ""
		for i, id := range ids {
			parts = append(parts, fmt.Sprintf(`{"type":"function_call","id":"fc%s","call_id":%q,"name":"get_weather",`+
				`"arguments":"{\"location\":\"%d\"}"}`, id, id, i))
			all += event(`{"type":"response.output_item.added","item":%s}`, parts[len(parts)-1])
		}
		return all + event(`{"type":"response.completed","response":{"output":[%s]}}`, strings.Join(parts, ","))
	}
	for i, id := range ids {
		parts = append(parts, fmt.Sprintf(`{"index":%d,"id":%q,"function":{"name":"get_weather",`+
			`"arguments":"{\"location\":\"%d\"}"}}`, i, id, i))
	}
	return event(`{"choices":[{"delta":{"tool_calls":[%s]},"finish_reason":"tool_calls"}]}`, strings.Join(parts, ","))
}

// sentIDs returns the IDs of the calls and of the results in a request to any provider, in order.
func sentIDs(t *testing.T, body []byte) (calls, results []string) {
	t.Helper()
	type part struct {
		Type, ID   string
		CallID     string                `json:"call_id"`
		ToolUseID  string                `json:"tool_use_id"`
		ToolCallID string                `json:"tool_call_id"`
		ToolCalls  []struct{ ID string } `json:"tool_calls"`
		Content    json.RawMessage
	}
	var request struct{ Messages, Input []part }
	var add func(parts []part)
	add = func(parts []part) {
		for _, p := range parts {
			for _, call := range p.ToolCalls {
				calls = append(calls, call.ID)
			}
			switch {
			case p.Type == toolUse:
				calls = append(calls, p.ID)
			case p.Type == functionCall:
				calls = append(calls, p.CallID)
			case p.ToolUseID+p.ToolCallID != "" || p.Type == "function_call_output":
				results = append(results, p.ToolUseID+p.ToolCallID+p.CallID)
			}
			var content []part
			if json.Unmarshal(p.Content, &content) == nil {
				add(content)
			}
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	add(slices.Concat(request.Messages, request.Input))
	return calls, results
}

// TestModelRepeatsCallIDs: calls with one ID, or with none, within an answer or in two, each get their own result, and
// no provider is sent an ID twice.
func TestModelRepeatsCallIDs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ids    []string // of each answer
		thinks bool
	}{
		"one ID":               {[]string{"call_0", "call_0"}, false},
		"no ID":                {[]string{"", ""}, false},
		"one ID and thinking":  {[]string{"call_0", "call_0"}, true},
		"no ID and thinking":   {[]string{"", ""}, true},
		"the same in each":     {[]string{"call_0", "call_1"}, false},
		"in each and thinking": {[]string{"call_0", "call_1"}, true},
	} {
		eachProvider(t, func(t *testing.T, provider string) {
			w := newWorld(t, provider)
			answer := callStream(provider, test.thinks, test.ids...)
			w.chain = w.newChain(w.answering(answer, answer, answer), spec(t, provider))
			r := asks("天気", weatherTool)
			var before []string
			for range 3 {
				response, _ := w.must(r)
				if len(response.Calls) != 2 || response.Calls[0].ID == response.Calls[1].ID ||
					(response.State != nil) != (test.thinks && provider != OpenAICompatible) {
					t.Fatalf("%s: %+v", name, response)
				}
				message := Message{Role: RoleUser}
				for i, call := range response.Calls {
					if call.ID == "" || string(call.Arguments) != fmt.Sprintf(`{"location":"%d"}`, i) {
						t.Errorf("%s: %+v", name, call)
					}
					message.Results = append(message.Results, Result{CallID: call.ID, Text: fmt.Sprint("result ", i)})
				}
				slices.Reverse(message.Results)
				r.Messages = append(r.Messages, response.Message(), message)
				requests := w.requests.All()
				calls, results := sentIDs(t, requests[len(requests)-1].Body)
				checkSentIDs(t, calls, results, before)
				before = calls
			}
			if !test.thinks { // thoughts that the fake did not have, it rejects
				w.must(r)
			}
			sent := string(w.requests.All()[2].Body)
			first, second := strings.Index(sent, "result 0"), strings.Index(sent, "result 1")
			if first < 0 || second < first {
				t.Errorf("%s: the results are not in the order of the calls: %s", name, sent)
			}
			if len(before) != 4 || test.ids[0] != "" && before[0] != test.ids[0] {
				t.Errorf("%s: sent the IDs %q", name, before)
			}
		})
	}
}

// checkSentIDs checks that each call has an ID of its own and its result, and that the calls before have the same IDs
// as in the request before.
func checkSentIDs(t *testing.T, calls, results, before []string) {
	t.Helper()
	unique := slices.Compact(slices.Sorted(slices.Values(calls)))
	if len(unique) != len(calls) || slices.Contains(calls, "") || !slices.Equal(calls, results) ||
		!slices.Equal(calls[:len(before)], before) {
		t.Errorf("sent calls %q with results %q after %q", calls, results, before)
	}
}

// TestSetCallIDs: a model is sent the IDs that it gave, and otherwise IDs that were not sent before.
func TestSetCallIDs(t *testing.T) {
	t.Parallel()
	own, other := origin{OpenAI, "m"}, origin{Anthropic, "m"}
	call := func(id, given string) Call { return Call{ID: id, given: modelID{own, given}} }
	for name, test := range map[string]struct {
		calls [][]Call // by message
		want  []string
	}{
		"the model's":      {[][]Call{{call("A", "x"), call("B", "y")}}, []string{"x", "y"}},
		"another model's":  {[][]Call{{{ID: "A", given: modelID{other, "x"}}}}, []string{"A"}},
		"empty":            {[][]Call{{call("A", "")}}, []string{"A"}},
		"one twice":        {[][]Call{{call("A", "x"), call("B", "x")}}, []string{"x", "B"}},
		"in two messages":  {[][]Call{{call("A", "x")}, {call("B", "x")}}, []string{"x", "B"}},
		"one of ours":      {[][]Call{{{ID: "A"}}, {call("B", "A")}}, []string{"A", "B"}},
		"a caller's":       {[][]Call{{{ID: "A"}, {ID: "A"}, {}}}, []string{"A", "call00001", "call00002"}},
		"a caller's, sent": {[][]Call{{{ID: "call00001"}}, {{}}}, []string{"call00001", "call00002"}},
	} {
		var messages []Message
		for _, calls := range test.calls {
			messages = append(messages, Message{Role: RoleAssistant, Calls: calls})
		}
		messages = normalize(messages)
		ids := setCallIDs(messages, own)
		var got []string
		for i := 0; i < len(messages); i += 2 {
			for j, call := range messages[i].Calls {
				got = append(got, call.ID)
				if messages[i+1].Results[j].CallID != call.ID || !ids[call.ID] {
					t.Errorf("%s: %+v has the result %+v", name, call, messages[i+1].Results[j])
				}
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestFailoverHasOwnCallIDs: another model is not sent the IDs of the first, which its provider may reject.
func TestFailoverHasOwnCallIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Anthropic)
	first, second := spec(t, OpenAICompatible), spec(t, Anthropic)
	second.Name = "second"
	w.chain = w.newChain(w.answering(callStream(OpenAICompatible, false, "functions.get_weather:0")), first, second)
	r := asks("天気", weatherTool)
	response, _ := w.must(r)
	r.Messages = append(r.Messages, response.Message(),
		Message{Role: RoleUser, Results: []Result{{CallID: response.Calls[0].ID, Text: "晴れ"}}})
	chain, err := w.chain.First("second")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Complete(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	calls, results := sentIDs(t, w.requests.All()[1].Body)
	if want := []string{response.Calls[0].ID}; !reflect.DeepEqual(calls, want) || !reflect.DeepEqual(results, want) {
		t.Errorf("sent %q and %q", calls, results)
	}
}

// TestRepeatedSearchIDs: a search with the ID of an earlier one is not sent back, nor is its result.
func TestRepeatedSearchIDs(t *testing.T) {
	t.Parallel()
	result := `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{` +
		`"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"get_weather"}]}}`
	anonymous := func(block string) string { return strings.ReplaceAll(block, `"s1"`, `""`) }
	for name, test := range map[string]struct {
		blocks []string
		want   int // searches that are sent back
	}{
		"one":               {[]string{searchBlock, result}, 1},
		"one after another": {[]string{searchBlock, result, searchBlock, result}, 1},
		"at once":           {[]string{searchBlock, searchBlock, result, result}, 1},
		"no ID":             {[]string{anonymous(searchBlock), anonymous(result)}, 0},
	} {
		w, _ := newSearching(t)
		answer := stream("tool_use", append(test.blocks, callBlock)...)
		w.chain = w.newChain(w.answering(answer, answer, answer), deferring(spec(t, Anthropic)))
		r := asks("rain?", searchable()...)
		for range 2 {
			response, _ := w.must(r)
			r.Messages = append(r.Messages, response.Message(),
				Message{Role: RoleUser, Results: []Result{{CallID: response.Calls[0].ID, Text: "rain"}}})
		}
		w.must(r)
		sent := string(w.requests.All()[2].Body)
		if searches := strings.Count(sent, `"server_tool_use"`); searches != test.want ||
			strings.Count(sent, `"tool_search_tool_result"`) != test.want {
			t.Errorf("%s: %d searches are sent back: %s", name, searches, sent)
		}
	}
}
