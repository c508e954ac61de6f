package openai

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

func post(t *testing.T, s *Server, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer key")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const chat, responses = "chat/completions", "responses"
	messages := func(model, members, messages string) string {
		return fmt.Sprintf(`{"model":%q,"stream":true%s,"messages":[%s]}`, model, members, messages)
	}
	input := func(model, members, input string) string {
		return fmt.Sprintf(`{"model":%q,"stream":true%s,"input":[%s]}`, model, members, input)
	}
	const user, call = `{"role":"user","content":"a"}`,
		`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	chatTool := func(parameters string) string {
		return `,"tools":[{"type":"function","function":{"name":"f","parameters":` + parameters + `}}]`
	}
	many := `,"tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"function","name":"f","parameters":{"type":"object","properties":{}}},`, 129), ",") + `]`
	for _, test := range []struct {
		name, path, body, want string
	}{
		{"valid", chat, messages("m", "", user), "data: [DONE]"},
		{"valid too", responses, input("m", "", user), "response.completed"},
		{"no JSON", chat, `{`, "could not parse"},
		{"an unknown parameter", responses, input("m", `,"odd":1`, user), "unknown_parameter"},
		{"another model", chat, messages("n", "", user), "model_not_found"},
		{"a temperature", chat, messages("thinker", `,"temperature":1`, user), `"param":"temperature"`},
		{"a temperature too", responses, input("thinker", `,"temperature":1`, user), `"param":"temperature"`},
		{"tools of one that thinks", chat, messages("thinker", chatTool(`{"type":"object","properties":{}}`), user),
			"not supported for thinker"},
		{"the other limit", chat, messages("thinker", `,"max_tokens":10`, user), "max_completion_tokens"},
		{"thoughts of one that does not", responses, input("m", `,"include":["reasoning.encrypted_content"]`, user),
			`"param":"include"`},
		{"no properties", chat, messages("m", chatTool(`{"type":"object"}`), user), "tools[0].function.parameters"},
		{"alternatives", chat, messages("m", chatTool(`{"type":"object","properties":{},"oneOf":[]}`), user),
			"at the top level"},
		{"an array of nothing", chat, messages("m", chatTool(`{"type":"object","properties":{"a":{"type":"array"}}}`),
			user), "missing items"},
		{"too many tools", responses, input("m", many, user), "array too long"},
		{"an open call", chat, messages("m", "", user+","+call+","+user), "must be followed by tool messages"},
		{"a result of nothing", chat, messages("m", "", user+`,{"role":"tool","tool_call_id":"c9","content":"r"}`),
			"must be a response"},
		{"no turns", chat, messages("m", "", user+","+user), "alternate"},
		{"an open call too", responses,
			input("m", "", user+`,{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`),
			"No tool output found"},
		{"a result of nothing too", responses,
			input("m", "", user+`,{"type":"function_call_output","call_id":"c1","output":"r"}`), "No tool call found"},
		{"too much", responses, input("m", "", `{"role":"user","content":"`+strings.Repeat("long ", 20_000)+`"}`),
			"context_length_exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &Server{Key: "key", Models: []string{"m", "thinker"}, Thinking: []string{"thinker"}, Window: 20_000}
			w := post(t, s, test.path, test.body)
			if !strings.Contains(w.Body.String(), test.want) ||
				(w.Code == 200) != strings.HasPrefix(test.name, "valid") {
				t.Errorf("%d %s, want %s", w.Code, w.Body, test.want)
			}
		})
	}
	if w := post(t, &Server{Compatible: true}, responses, input("m", "", user)); w.Code != 404 {
		t.Errorf("a local server has responses: %d", w.Code)
	}
	if w := post(t, &Server{Key: "another"}, chat, messages("m", "", user)); w.Code != 401 {
		t.Errorf("with another key: %d", w.Code)
	}
}
