package anthropic

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func post(t *testing.T, s *Server, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/messages", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2026-10-21")
	r.Header.Set("Authorization", "Bearer key")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// body is a request with these members besides the required ones. Empty messages are one text.
func body(members, messages string) string {
	if messages == "" {
		messages = `[{"role":"user","content":"hello"}]`
	}
	return `{"model":"m","max_tokens":10` + members + `,"messages":` + messages + `}`
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tool := func(name, schema string) string {
		return `,"tools":[{"name":"` + name + `","input_schema":` + schema + `}]`
	}
	const searching = `{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}`
	const call = `{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}`
	for _, test := range []struct {
		name, body, want string
		status           int
	}{
		{"valid", body("", ""), `"text":"hello"`, 200},
		{"no JSON", `{`, "not valid JSON", 400},
		{"no model", `{"max_tokens":1}`, "model: Field required", 400},
		{"a temperature", body(`,"temperature":1`, ""), "temperature: Extra inputs", 400},
		{"another model", strings.Replace(body("", ""), `"m"`, `"n"`, 1), "not_found_error", 404},
		{"no tokens", `{"model":"m","messages":[]}`, "max_tokens", 400},
		{"no messages", body("", `[]`), "at least one message", 400},
		{"a bad name", body(tool("a.b", `{"type":"object"}`), ""), "tools.0.custom.name", 400},
		{"no object", body(tool("a", `{"type":"string"}`), ""), "input_schema.type", 400},
		{"alternatives", body(tool("a", `{"type":"object","anyOf":[]}`), ""), "at the top level", 400},
		{"a key", body(tool("a", `{"type":"object","properties":{"場所":{}}}`), ""), "Property keys", 400},
		{"a choice without tools", body(`,"tool_choice":{"type":"none"}`, ""), "tool_choice", 400},
		{"the model first", body("", `[{"role":"assistant","content":"a"}]`), "first message", 400},
		{"the model last", body("", `[{"role":"user","content":"a"},{"role":"assistant","content":"a"}]`),
			"must end with", 400},
		{"no turns", body("", `[{"role":"user","content":"a"},{"role":"user","content":"a"}]`), "alternate", 400},
		{"a blank text", body("", `[{"role":"user","content":" "}]`), "non-whitespace", 400},
		{"no content", body("", `[{"role":"user","content":[]}]`), "non-empty content", 400},
		{"an open call", body("", `[`+call+`,{"role":"user","content":"b"}]`), "without `tool_result` blocks", 400},
		{"two calls with one ID", body("", `[`+strings.Replace(call, "]}",
			`,{"type":"tool_use","id":"t1","name":"a","input":{}}]}`, 1)+`,{"role":"user","content":"b"}]`),
			"ids must be unique", 400},
		{"a result of nothing", body("", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}]`),
			"unexpected `tool_use_id`", 400},
		{"a thought of another's", body("",
			`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]},{"role":"user","content":"b"}]`), "Invalid `signature`", 400},
		{"all tools deferred", body(
			`,"tools":[{"name":"a","input_schema":{"type":"object"},"defer_loading":true}]`, ""),
			"All tools have defer_loading set", 400},
		{"a cached deferred tool", body(`,"tools":[{"name":"a","input_schema":{"type":"object"},"defer_loading":true,`+
			`"cache_control":{"type":"ephemeral"}},`+searching+`]`, ""), "both defer_loading=true and cache_control", 400},
		{"a search by another name", body(`,"tools":[{"type":"tool_search_tool_bm25_20251119","name":"a"}]`, ""),
			"tools.0: Input tag", 400},
		{"a search that was not made", body(`,"tools":[`+searching+`]`, `[{"role":"user","content":"a"},`+
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"tool_search_tool_bm25","input":{}}]},`+
			`{"role":"user","content":"b"}]`), "server_tool_use: name, id or input is invalid", 400},
		{"a search that found no tool", body(`,"tools":[`+searching+`]`, `[{"role":"user","content":"a"},`+
			`{"role":"assistant","content":[{"type":"tool_search_tool_result","tool_use_id":"s1",`+
			`"content":{"tool_references":[{"tool_name":"x"}]}}]},`+
			`{"role":"user","content":"b"}]`), "Tool reference 'x' has no corresponding tool definition", 400},
		{"too much", body("", `[{"role":"user","content":"`+strings.Repeat("long ", 2000)+`"}]`), "prompt is too long",
			400},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := post(t, &Server{Key: "key", Models: []string{"m"}, Window: 1000}, test.body)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, test.status, test.want)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]string{
		"authentication_error":      {"Anthropic-Version", "2026-10-21", "X-Api-Key", "another"},
		"anthropic-version: header": {"X-Api-Key", "key"},
		"is not a version":          {"X-Api-Key", "key", "Anthropic-Version", "2020-01-01"},
		"content-type":              {"X-Api-Key", "key", "Anthropic-Version", "2026-10-21"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/messages", strings.NewReader("{}"))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		(&Server{Key: "key"}).ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), name) {
			t.Errorf("%v: %d %s", headers, w.Code, w.Body)
		}
	}
}
