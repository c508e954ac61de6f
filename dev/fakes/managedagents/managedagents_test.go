package managedagents

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/script"
)

// web has connections of its own: httptest.Server.Close closes those of http.DefaultTransport, also under the requests
// of other tests.
var web = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// ask makes a request with the headers that the API wants.
func ask(t *testing.T, s *Server, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set("Anthropic-Version", version)
	r.Header.Set("Anthropic-Beta", beta)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// types are those of a session's events.
func types(s *Server, session string) string {
	events, _ := s.Events(session)
	var list []string
	for _, e := range events {
		list = append(list, e.text("type"))
	}
	return strings.Join(list, " ")
}

func TestTurn(t *testing.T) {
	t.Parallel()
	steps, err := script.Parse([]byte("steps:\n  - {when: weather, call: [{tool: a, arguments: {n: 1}}, {tool: b}]}\n  - {when: weather, after: sun, say: \"Good: ${result}\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Key: "key", Script: steps}
	code, body := ask(t, s, "POST", "/v1/sessions",
		`{"agent":"`+DefaultAgent+`","environment_id":"env_1","initial_events":[{"type":"user.message","content":[{"type":"text","text":"the weather"}]}]}`)
	var session struct{ ID, Status string }
	if err := json.Unmarshal([]byte(body), &session); err != nil || code != 200 || session.Status != "idle" {
		t.Fatalf("%d %s", code, body)
	}
	events, _ := s.Events(session.ID)
	calls := []string{events[2].text("id"), events[3].text("id")}
	answer := func(id, text string) (int, string) {
		return ask(t, s, "POST", "/v1/sessions/"+session.ID+"/events",
			fmt.Sprintf(`{"events":[{"type":"user.custom_tool_result","custom_tool_use_id":%q,"content":[{"type":"text","text":%q}]}]}`, id, text))
	}
	if code, body := answer(calls[0], "sun"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := answer(calls[0], "sun"); code != 400 || !strings.Contains(body, "has a result already") {
		t.Errorf("a second result got %d %s", code, body)
	}
	if code, body := answer("sevt_9", "sun"); code != 400 || !strings.Contains(body, "is not a pending call") {
		t.Errorf("a result for nothing got %d %s", code, body)
	}
	if code, body := answer(calls[1], " "); code != 400 || !strings.Contains(body, "non-whitespace") {
		t.Errorf("a blank result got %d %s", code, body)
	}
	if code, _ := answer(calls[1], "and sun"); code != 200 {
		t.Error("the second result was refused")
	}
	want := "user.message session.status_running agent.custom_tool_use agent.custom_tool_use session.status_idle user.custom_tool_result session.status_idle " +
		"user.custom_tool_result session.status_running agent.message session.status_idle"
	if got := types(s, session.ID); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if code, body := ask(t, s, "GET", "/v1/sessions/"+session.ID+"/events?types[]=agent.message&limit=10&order=desc", ""); code != 200 || !strings.Contains(body, "Good: sun") || strings.Contains(body, "status") {
		t.Errorf("%d %s", code, body)
	}
}

func TestInterruptedCallsTakeNoResult(t *testing.T) {
	t.Parallel()
	s := new(Server)
	session := s.NewSession()
	ids := s.Call(session, "", Call{"a", map[string]any{}})
	s.Interrupt(session)
	code, body := ask(t, s, "POST", "/v1/sessions/"+session+"/events",
		`{"events":[{"type":"user.custom_tool_result","custom_tool_use_id":"`+ids[0]+
			`","content":[{"type":"text","text":"x"}]}]}`)
	if code != 400 || !strings.Contains(body, "interrupted") {
		t.Errorf("%d %s", code, body)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := &Server{Key: "key"}
	session := s.NewSession()
	tool := func(text string) string { return `{"name":"x","model":"m","tools":[` + text + `]}` }
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"no such path", "GET", "/v1/else", "", 404, "not_found_error"},
		{"no such session", "GET", "/v1/sessions/sesn_9", "", 404, "session not found"},
		{"no such agent", "POST", "/v1/sessions", `{"agent":"agent_9","environment_id":"e"}`, 404, "agent not found"},
		{"no environment", "POST", "/v1/sessions", `{"agent":{"type":"agent","id":"` + DefaultAgent + `"}}`, 400,
			"environment_id"},
		{"no JSON", "POST", "/v1/sessions", `{`, 400, "not valid"},
		{"another event", "POST", "/v1/sessions/" + session + "/events", `{"events":[{"type":"agent.message"}]}`, 400,
			"is not supported by the fake"},
		{"an empty message", "POST", "/v1/sessions/" + session + "/events",
			`{"events":[{"type":"user.message","content":[]}]}`, 400, "at least one block"},
		{"a limit", "GET", "/v1/sessions?limit=0", "", 400, "limit"},
		{"a page", "GET", "/v1/sessions?page=x", "", 400, "page"},
		{"a name", "POST", "/v1/agents",
			tool(`{"type":"custom","name":"a.b","description":"d","input_schema":{"type":"object"}}`), 400,
			"tools.0.name"},
		{"no description", "POST", "/v1/agents", tool(`{"type":"custom","name":"a","input_schema":{"type":"object"}}`),
			400, "description"},
		{"no object", "POST", "/v1/agents",
			tool(`{"type":"custom","name":"a","description":"d","input_schema":{"type":"string"}}`), 400,
			"must be object"},
		{"a key", "POST", "/v1/agents",
			tool(`{"type":"custom","name":"a","description":"d","input_schema":{"type":"object","properties":{"場所":{}}}}`), 400, "Property keys"},
		{"alternatives", "POST", "/v1/agents",
			tool(`{"type":"custom","name":"a","description":"d","input_schema":{"type":"object","anyOf":[]}}`), 400,
			"at the top level"},
		{"a tool", "POST", "/v1/agents",
			tool(`{"type":"custom","name":"a","description":"d","input_schema":{"type":"object"}}`), 200, "agent_"},
		{"no model", "POST", "/v1/agents", `{"name":"x"}`, 400, "model"},
		{"another type", "POST", "/v1/agents", tool(`{"type":"other"}`), 400, "not a tool type"},
		{"no such server", "POST", "/v1/agents", tool(`{"type":"mcp_toolset","mcp_server_name":"a"}`), 400,
			"no server"},
		{"much metadata", "POST", "/v1/agents/" + DefaultAgent, `{"metadata":{"a":"` + strings.Repeat("x", 513) + `"}}`,
			400, "metadata"},
		{"a version that is none", "POST", "/v1/agents/" + DefaultAgent, `{"version":0}`, 400, "at least 1"},
		{"a version that is not there", "GET", "/v1/agents/" + DefaultAgent + "?version=7", "", 404, "agent not found"},
		{"an old version", "POST", "/v1/agents/" + DefaultAgent, `{"version":9}`, 409, "version"},
	} {
		if code, body := ask(t, s, test.method, test.path, test.body); code != test.status ||
			!strings.Contains(body, test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.name, code, body, test.status, test.want)
		}
	}
}

// TestVersions changes an agent: what is left out stays, nothing changed makes no version, and a session keeps the one
// it began with.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := new(Server)
	update := func(body string) (int, string) { return ask(t, s, "POST", "/v1/agents/"+DefaultAgent, body) }
	session := s.NewSession()
	if code, body := update(`{"version":1,"system":"s","metadata":{"a":"1","b":"2"},"tools":[{"type":"agent_toolset_20260401"}]}`); code != 200 || !strings.Contains(body, `"version":2`) {
		t.Fatalf("%d %s", code, body)
	}
	for range 2 {
		if code, body := update(`{"version":2,"metadata":{"a":"1"}}`); code != 200 ||
			!strings.Contains(body, `"version":2`) {
			t.Errorf("no change got %d %s", code, body)
		}
	}
	code, body := update(`{"metadata":{"a":null}}`)
	for _, want := range []string{`"version":3`, `"system":"s"`, `"metadata":{"b":"2"}`, `"permission_policy":{"type":"always_allow"}`} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%d %s has no %s", code, body, want)
		}
	}
	if _, body := ask(t, s, "GET", "/v1/sessions/"+session, ""); !strings.Contains(body, `"version":1`) ||
		strings.Contains(body, "toolset") {
		t.Errorf("the session shows %s", body)
	}
	if _, body := ask(t, s, "GET", "/v1/agents/"+DefaultAgent+"?version=1", ""); !strings.Contains(body, `"version":1`) {
		t.Errorf("the first version is %s", body)
	}
	if _, body := ask(t, s, "GET", "/v1/agents/"+DefaultAgent+"/versions?limit=1", ""); !strings.Contains(body, `"version":3`) || !strings.Contains(body, `"next_page":"1"`) {
		t.Errorf("the versions are %s", body)
	}
	if code, _ := ask(t, s, "POST", "/v1/agents/"+DefaultAgent+"/archive", ""); code != 200 {
		t.Error("the agent cannot be archived")
	}
	if code, body := update(`{"name":"n"}`); code != 400 || !strings.Contains(body, "archived") {
		t.Errorf("an archived agent got %d %s", code, body)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for want, headers := range map[string][]string{
		"authentication_error":  {"Anthropic-Version", version, "Anthropic-Beta", beta, "X-Api-Key", "another"},
		"anthropic-version":     {"Anthropic-Beta", beta, "X-Api-Key", "key"},
		"anthropic-beta":        {"Anthropic-Version", version, "X-Api-Key", "key"},
		`"data":[],"next_page"`: {"Anthropic-Version", version, "Anthropic-Beta", "x," + beta, "X-Api-Key", "key"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/sessions", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		(&Server{Key: "key"}).ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%v: %d %s, want %s", headers, w.Code, w.Body, want)
		}
	}
}

// TestStream sends what happens from now on, and ends with the session.
func TestStream(t *testing.T) {
	t.Parallel()
	s := new(Server)
	server := httptest.NewServer(s)
	defer server.Close()
	session := s.NewSession()
	s.Call(session, "", Call{"before", nil})
	r, err := http.NewRequestWithContext(context.Background(), "GET", server.URL+"/v1/sessions/"+session+
		"/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Anthropic-Version", version)
	r.Header.Set("Anthropic-Beta", beta)
	answer, err := web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	s.Call(session, "sthr_1", Call{"after", nil})
	s.Delete(session)
	text := ""
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		text += lines.Text() + "\n"
	}
	if strings.Contains(text, "before") || !strings.Contains(text, "after") || !strings.Contains(text, "sthr_1") ||
		!strings.Contains(text, "session.deleted") {
		t.Error(text)
	}
	if code, _ := ask(t, s, "GET", "/v1/sessions/"+session+"/events", ""); code != 404 {
		t.Errorf("a session that was deleted: %d", code)
	}
}
