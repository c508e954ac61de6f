package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// messages are events of a stream of the Messages API: an answer with a call. The text, the arguments and the tokens are
// replaced by tests.
const messagesForm = `data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":TOKENS}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":TEXT}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"get_weather","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":ARGUMENTS}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

`

var forms = map[string]string{
	Anthropic: messagesForm,
	OpenAI: `data: {"type":"response.output_text.delta","delta":TEXT}

data: {"type":"response.completed","response":{"model":"m","usage":{"input_tokens":TOKENS},"output":[` +
		`{"type":"message","content":[{"type":"output_text","text":TEXT}]},` +
		`{"type":"function_call","call_id":"c","name":"get_weather","arguments":ARGUMENTS},` +
		`{"type":"odd","content":7,"arguments":[],"call_id":{}}]}}

`,
	OpenAICompatible: `data: {"model":"m","choices":[{"delta":{"content":TEXT}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"get_weather","arguments":ARGUMENTS}}]}}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":TOKENS}}

`,
}

// TestForms: a member of another type than documented is read where its meaning is certain. Otherwise the error names
// it: it is not taken for a missing one.
func TestForms(t *testing.T) {
	t.Parallel()
	const object, quoted = `{"location":"東京"}`, `"{\"location\":\"東京\"}"`
	type form struct {
		text, arguments, tokens string
		// failed are the members that the error names, of each provider.
		failed map[string]string
	}
	tests := map[string]form{
		"as documented":         {`"yes"`, quoted, "5000", nil},
		"arguments: an object":  {`"yes"`, object, "5000", nil},
		"tokens: text":          {`"yes"`, quoted, `"5000"`, nil},
		"tokens: a fraction":    {`"yes"`, quoted, "5000.0", nil},
		"tokens: an exponent":   {`"yes"`, quoted, "5e3", nil},
		"tokens: text and both": {`"yes"`, quoted, `" 5000.0 "`, nil},
		"tokens: words": {`"yes"`, quoted, `"many"`, map[string]string{Anthropic: "message.usage.input_tokens",
			OpenAI: "response.usage.input_tokens", OpenAICompatible: "usage.prompt_tokens"}},
		"tokens: an object": {`"yes"`, quoted, `{"n":5}`, map[string]string{Anthropic: "message.usage.input_tokens",
			OpenAI: "response.usage.input_tokens", OpenAICompatible: "usage.prompt_tokens"}},
		"tokens: a part of one": {`"yes"`, quoted, "0.5", map[string]string{Anthropic: "message.usage.input_tokens",
			OpenAI: "response.usage.input_tokens", OpenAICompatible: "usage.prompt_tokens"}},
		"text: a bool": {`true`, quoted, "5000", map[string]string{Anthropic: "delta.text", OpenAI: "delta",
			OpenAICompatible: "choices.delta.content"}},
	}
	lists := map[string]form{
		"text: a list":   {`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"ye"},"s"]`, quoted, "5000", nil},
		"text: a part":   {`{"type":"text","text":"yes"}`, quoted, "5000", nil},
		"text: bad part": {`[{"type":"text","text":[]}]`, quoted, "5000", map[string]string{OpenAI: "delta", OpenAICompatible: "choices.delta.content"}},
	}
	run := func(name, provider string, test form) {
		w := newWorld(t, provider)
		s := spec(t, provider)
		s.Retries = -1
		w.chain = w.newChain(w.answering(strings.NewReplacer("TEXT", test.text, "ARGUMENTS", test.arguments,
			"TOKENS", test.tokens).Replace(forms[provider])), s)
		response, deltas, err := w.complete(asks("hello", weatherTool))
		if member := test.failed[provider]; member != "" {
			if !errors.Is(err, Unavailable) || !strings.Contains(err.Error(), "violates the API: "+member) {
				t.Errorf("%s, %s: %v, want one that names %s", provider, name, err, member)
			}
			return
		}
		if err != nil || response.Text != "yes" || streamed(deltas) != "yes" || len(response.Calls) != 1 ||
			string(response.Calls[0].Arguments) != object || response.Usage.Input != 5000 {
			t.Errorf("%s, %s: %+v, %v", provider, name, response, err)
		}
	}
	for _, provider := range []string{Anthropic, OpenAI, OpenAICompatible} {
		for name, test := range tests {
			run(name, provider, test)
		}
		for name, test := range lists {
			if provider != Anthropic {
				run(name, provider, test)
			}
		}
	}
}

// TestEndsOfStreams: a stream that ends with "[DONE]" is whole without a finish reason, and an event without the blank
// line after it is read if it is whole.
func TestEndsOfStreams(t *testing.T) {
	t.Parallel()
	const text, finish = `data: {"choices":[{"delta":{"content":"yes"}}]}`, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for stream, whole := range map[string]bool{
		text + "\n\n" + finish + "\n\ndata: [DONE]\n\n": true,
		text + "\n\n" + finish + "\n\n":                 true,
		text + "\n\n" + finish + "\n":                   true,
		text + "\n\n" + finish:                          true,
		text + "\n\ndata: [DONE]\n\n":                   true,
		text + "\n\ndata: [DONE]":                       true,
		text + "\n\n":                                   false,
		text:                                            false,
		text + "\n\n" + finish[:40]:                     false,
		text + "\n\ndata: [DON":                         false,
		"data: [DONE]\n\n":                              false,
	} {
		response, _, err := completeStream(t, OpenAICompatible, []byte(stream), func(Delta) {})
		if whole && (err != nil || response.Text != "yes" || response.Stop != StopEnd) ||
			!whole && !strings.Contains(fmt.Sprint(err), "broke off") {
			t.Errorf("%q: %+v, %v", stream, response, err)
		}
	}
}

// TestCallOfNothing: a call without name and arguments beside an answer is none.
func TestCallOfNothing(t *testing.T) {
	t.Parallel()
	stream := `data: {"choices":[{"delta":{"content":"The answer is 42."}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","type":"function"}]},"finish_reason":"tool_calls"}]}

`
	response, _, err := completeStream(t, OpenAICompatible, []byte(stream), func(Delta) {})
	if err != nil || response.Text != "The answer is 42." || response.Calls != nil || response.Stop != StopEnd {
		t.Errorf("%+v, %v", response, err)
	}
}

// TestRejections: a request is sent again without what the provider rejects in words.
func TestRejections(t *testing.T) {
	t.Parallel()
	tools := []Tool{weatherTool, {Name: "odd", Schema: json.RawMessage(`{"type":"object","additionalProperties":false,` +
		`"properties":{"additionalProperties":{"type":"string","const":"a"}}}`)}}
	for name, test := range map[string]struct {
		rejects, says string
		// lost is what is not sent any more, kept what is.
		lost, kept []string
		fails      string
	}{
		"a parameter": {`"stream_options"`, `{"message":"Unrecognized request argument supplied: stream_options","param":null}`,
			[]string{"stream_options"}, []string{"get_weather", "odd"}, ""},
		"a keyword": {`"additionalProperties":false`, `{"code":400,"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[1].parameters': Cannot find field.","status":"INVALID_ARGUMENT"}`,
			[]string{`"additionalProperties":false`}, []string{"get_weather", "odd", `"additionalProperties":{`}, ""},
		"a function by index": {`"odd"`, `{"message":"GenerateContentRequest.tools[0].function_declarations[1].name: no"}`,
			[]string{`"odd"`}, []string{"get_weather"}, ""},
		"a function by name": {`"odd"`, `{"message":"Invalid schema for function 'odd': const is not permitted."}`,
			[]string{`"odd"`}, []string{"get_weather"}, ""},
		"a tool by index": {`"odd"`, `{"message":"tools.1.custom.input_schema: no"}`, []string{`"odd"`}, []string{"get_weather"}, ""},
		"all tools": {`"tools"`, `{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error"}`,
			nil, nil, "does not support tools"},
		"what is not known": {`"model"`, `{"message":"the planets do not align"}`, nil, nil, "at level debug"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, OpenAICompatible)
			var last string
			w.chain = w.newChain(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if last = string(body); strings.Contains(last, test.rejects) {
					rw.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(rw, `[{"error":`+test.says+`}]`)
					return
				}
				rw.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(rw, `data: {"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}`+"\n\n")
			}), spec(t, OpenAICompatible))
			response, _, err := w.complete(asks("hello", tools...))
			var said apiError
			if e := json.Unmarshal([]byte(test.says), &said); e != nil {
				t.Fatal(e)
			}
			if logged := fmt.Sprintf("%q", said.Message); !strings.Contains(w.log.String(), logged[1:20]) {
				t.Errorf("the log does not have the provider's words: %s", w.log.String())
			}
			if test.fails != "" {
				if !errors.Is(err, Invalid) || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%v", err)
				}
				return
			}
			has := func(part string) bool { return strings.Contains(last, part) }
			if err != nil || response.Text != "yes" || slices.ContainsFunc(test.lost, has) ||
				!has(test.kept[0]) || !has(test.kept[len(test.kept)-1]) {
				t.Errorf("%v after %s", err, last)
			}
		})
	}
}

// FuzzDecode: every value is read as a type or refused, and never read as missing unless it is null or blank.
func FuzzDecode(f *testing.F) {
	for _, value := range []string{"null", `""`, `"a"`, "5000.0", `"5000"`, "1e400", "-0", `"inf"`, `{"type":"text","text":"a"}`,
		`[[],"a"]`, "true", `[{"text":null}]`} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !json.Valid([]byte(value)) {
			return
		}
		var one struct {
			Text      jsonText
			Count     jsonCount
			Arguments jsonArguments
			Content   jsonContent
			Words     words
		}
		for _, member := range []string{"Text", "Count", "Arguments", "Content", "Words"} {
			err := decodeEvent([]byte(`{"`+member+`":`+value+`}`), &one)
			var misfit *misfitError
			if err != nil && (!errors.As(err, &misfit) || misfit.member != member) {
				t.Errorf("%s as %s: %v", value, member, err)
			}
		}
		if blank := strings.TrimSpace(value); one.Arguments == "" && blank != "null" && blank != `""` {
			t.Errorf("%s has no arguments", value)
		}
	})
}
