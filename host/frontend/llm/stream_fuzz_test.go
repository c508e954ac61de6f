package llm

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/dev/kit/testlog"
)

// recordStream returns the stream of a fake provider.
func recordStream(f testing.TB, provider string, step script.Step) []byte {
	f.Helper()
	w := &world{t: &testing.T{}, side: providers[provider](&script.Script{Steps: []script.Step{step}}), log: &testlog.Buffer{}}
	var stream []byte
	record := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		defer func() {
			_ = recover() // a stream that is cut
			if recorder.Code == http.StatusOK {
				stream = recorder.Body.Bytes()
			}
			rw.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
			rw.WriteHeader(recorder.Code)
			_, _ = rw.Write(recorder.Body.Bytes())
		}()
		w.ServeHTTP(recorder, r)
	})
	base := map[string]string{Anthropic: "https://model.example/"}[provider]
	v := newVendor(&Spec{Provider: provider, BaseURL: cmp.Or(base, "https://model.example/v1")},
		&http.Client{Transport: inMemory{record}})
	m := newModel(Spec{Name: "m", Provider: provider, Model: "thinker", MaxTokens: 100}, v, fuzzOptions())
	x := &exchange{Request: asks("hello", weatherTool), tools: m.tools.adaptAll([]Tool{weatherTool}), spec: &m.spec,
		emit: func(string) {}, key: testKey}
	x.messages = x.Messages
	_, _ = v.send(f.Context(), x) // some are cut on purpose
	if len(stream) == 0 {
		f.Fatalf("%s streamed nothing", provider)
	}
	return stream
}

func fuzzOptions() *Options {
	chain, err := New(Options{Specs: []Spec{{Provider: OpenAICompatible, Model: "m",
		BaseURL: "https://model.example/v1"}}})
	if err != nil {
		panic(err)
	}
	return &Options{Observe: chain.models[0].observe, Logger: chain.logger}
}

// FuzzStream parses arbitrary bytes as each provider's stream.
func FuzzStream(f *testing.F) {
	all := []string{Anthropic, OpenAI, OpenAICompatible}
	for _, provider := range all {
		for _, step := range []script.Step{
			{Say: "こんにちは"}, {Think: "hm", Say: "x",
				Call: []script.Call{{Tool: "get_weather", Arguments: `{"location":"東京"}`}}},
			{Say: "I will not.", Stop: script.Refusal}, {Say: "cut",
				Cut: true}, {Fail: &script.Failure{Kind: "overloaded", Streamed: true}},
		} {
			f.Add(recordStream(f, provider, step))
		}
	}
	for _, block := range []string{``, `,"content_block":null`, `,"content_block":{}`} {
		f.Add([]byte(`data: {"type":"content_block_start","index":0` + block + `}

data: {"type":"content_block_delta","index":0,"delta":{"text":"x","partial_json":"{}"}}

data: {"type":"message_stop"}

`))
	}
	f.Add([]byte(stream("pause_turn", searchBlock,
		`{"type":"tool_search_tool_result","tool_use_id":"s1","content":[]}`)))
	for _, stream := range oddUsage {
		f.Add([]byte(stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, provider := range all {
			readStream(t, provider, stream)
		}
	})
}

// oddUsage are streams, by provider, whose usage no response can have.
var oddUsage = map[string]string{
	Anthropic: `data: {"type":"message_start","message":{"usage":{"input_tokens":-5,"output_tokens":9000000000000000000}}}

data: {"type":"message_stop"}

`,
	OpenAICompatible: `data: {"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":-5,"completion_tokens":9000000000000000000}}

`,
	OpenAI: `data: {"type":"response.completed","response":{"usage":{"input_tokens":-5,"output_tokens":9000000000000000000}}}

`,
}

// TestUsageIsBounded: metrics panic if a count is negative, and budgets overflow if it is huge.
func TestUsageIsBounded(t *testing.T) {
	t.Parallel()
	for provider, stream := range oddUsage {
		response, _, err := completeStream(t, provider, []byte(stream), func(Delta) {})
		if err != nil || response.Usage != (Usage{Output: math.MaxInt32}) {
			t.Errorf("%s: %+v, %v", provider, response, err)
		}
	}
}

// completeStream sends a request to a provider that answers with stream.
func completeStream(t *testing.T, provider string, stream []byte, emit func(Delta)) (*Response, bool, error) {
	t.Helper()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.Copy(w, bytes.NewReader(stream))
	})
	s := Spec{Name: "m", Provider: provider, Model: "m", Retries: -1, Timeout: DefaultTimeout}.withDefaults()
	s.BaseURL = "https://model.example/v1"
	m := newModel(s, newVendor(&s, &http.Client{Transport: &transport{inMemory{answer}, s.Timeout}}), fuzzOptions())
	return m.complete(t.Context(), asks("hello", weatherTool), emit)
}

func readStream(t *testing.T, provider string, stream []byte) {
	t.Helper()
	response, _, err := completeStream(t, provider, stream, func(Delta) {})
	var e *Error
	switch {
	case err != nil && (!errors.As(err, &e) || texts[e.Kind] == ""):
		t.Errorf("%s: error %v", provider, err)
	case err == nil && (response.Stop == "" || response.Name != "m" || response.Usage != response.Usage.bounded()):
		t.Errorf("%s: %+v", provider, response)
	}
	if err != nil {
		return
	}
	for _, call := range response.Calls {
		if fresh := newCall(call.ID, call.Name, string(call.Arguments)); fresh.Invalid != "" {
			t.Errorf("%s: call %+v", provider, call)
		}
	}
}
