package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/secret"
)

// TestRequests compares the requests to the API: headers, method, address and body.
func TestRequests(t *testing.T) {
	t.Setenv("HAKO_TEST_AGENT_KEY", "key")
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		address, err := url.QueryUnescape(r.URL.String())
		if err != nil {
			t.Error(err)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, address, body)))
		for name, want := range map[string]string{"Authorization": "Bearer key", "Anthropic-Version": "2026-10-21",
			"Anthropic-Beta": "managed-agents-2026-04-01", "Anthropic-Workspace-Id": "wrkspc_1"} {
			if is := r.Header.Get(name); is != want {
				t.Errorf("%s: %s is %q, want %q", r.URL, name, is, want)
			}
		}
		if kind := r.Header.Get("Content-Type"); r.Method == http.MethodPost && kind != "application/json" {
			t.Errorf("%s: Content-Type is %q", r.URL, kind)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	c := newClient(&Spec{BaseURL: server.URL + "/anthropic", Workspace: "wrkspc_1",
		Key: secret.Source{Env: "HAKO_TEST_AGENT_KEY"}}, nil, func(string, string) {})
	ctx, value := t.Context(), "a"
	since := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", 9*60*60))
	discard := func(error) {}
	answers := &answer{Text: "晴れ", IsError: true, Images: []image{{"image/png", []byte("a picture")}}}
	for _, send := range []func() error{
		func() error { return c.list(ctx, "s1", since, func(*event) {}, discard) },
		func() error { return c.list(ctx, "s1", time.Time{}, func(*event) {}, discard) },
		func() error { return c.find(ctx, "agent_1", nil, func(listedSession) bool { return true }) },
		func() error { return c.find(ctx, "", nil, func(listedSession) bool { return true }) },
		func() error { return c.send(ctx, "s1", "call_1", answers) },
		func() error { return c.send(ctx, "s1", "call_1", &answer{}) },
		func() error { _, err := c.agent(ctx, "agent_1"); return err },
		func() error {
			_, err := c.update(ctx, &Plan{Agent: "agent_1", Version: 3,
				tools: []json.RawMessage{json.RawMessage(`{"type":"custom","name":"a"}`)}, metadata: map[string]*string{"a": &value, "b": nil}})
			return err
		},
		func() error { _, err := c.sessionTools(ctx, "s1"); return err },
		func() error {
			_, closed, err := c.stream(ctx, "s1")
			if err == nil {
				closed()
			}
			return err
		},
	} {
		if err := send(); err != nil {
			t.Error(err)
		}
	}
	const events = `/anthropic/v1/sessions/s1/events`
	types := "types[]=" + strings.Join(eventTypes, "&types[]=")
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YSBwaWN0dXJl"}}`
	want := []string{
		"GET " + events + "?created_at[gte]=2026-01-02T03:04:05+09:00&limit=1000&order=asc&" + types,
		"GET " + events + "?limit=1000&order=asc&" + types,
		"GET /anthropic/v1/sessions?agent_id=agent_1&limit=100",
		"GET /anthropic/v1/sessions?limit=100",
		"POST " + events + ` {"events":[{"type":"user.custom_tool_result","custom_tool_use_id":"call_1","is_error":true,` +
			`"content":[{"type":"text","text":"晴れ"},` + image + `]}]}`,
		"POST " + events + ` {"events":[{"type":"user.custom_tool_result","custom_tool_use_id":"call_1","is_error":false,` +
			`"content":[{"type":"text","text":"(nothing)"}]}]}`,
		"GET /anthropic/v1/agents/agent_1",
		`POST /anthropic/v1/agents/agent_1 {"version":3,"tools":[{"type":"custom","name":"a"}],"metadata":{"a":"a","b":null}}`,
		"GET /anthropic/v1/sessions/s1",
		"GET " + events + "/stream",
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestUnreadable: a member that cannot be read is an error that names it, and not taken for one that is missing. In a
// list it costs its own session alone.
func TestUnreadable(t *testing.T) {
	t.Setenv("HAKO_TEST_AGENT_KEY", "key")
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	c := newClient(&Spec{BaseURL: server.URL, Key: secret.Source{Env: "HAKO_TEST_AGENT_KEY"}}, nil, func(string, string) {})
	var seen []string
	agent := func() error { _, err := c.agent(t.Context(), "agent_1"); return err }
	find := func() error {
		return c.find(t.Context(), "", nil, func(s listedSession) bool { seen = append(seen, s.id); return true })
	}
	for _, test := range []struct {
		name, body, want string
		request          func() error
		seen             []string
	}{
		{"missing members", `{"archived_at":null}`, "", agent, nil},
		{"a version as text", `{"version":"3"}`, "version must not be of the type string", agent, nil},
		{"tools as an object", `{"tools":{}}`, "tools must not be of the type object", agent, nil},
		{"archived, but no time", `{"archived_at":"yesterday"}`, "malformed time", agent, nil},
		{"no object", `[1]`, "must not be of the type array", agent, nil},
		{"no JSON", `<html>secret`, "it is no JSON", agent, nil},
		{"a session of two", `{"data":[{"id":"s1","status":["terminated"]},{"id":"s2"}]}`,
			"status must not be of the type array", find, []string{"s2"}},
		{"a list that is none", `{"data":{}}`, "data must not be of the type object", find, nil},
		{"the next page", `{"data":[{"id":"s1"}],"next_page":7}`, "next_page must not be of the type number", find, nil},
	} {
		body, seen = test.body, nil
		err := test.request()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) ||
			!slices.Equal(seen, test.seen) {
			t.Errorf("%s: got %v and sessions %q, want %q and %q", test.name, err, seen, test.want, test.seen)
		}
	}
}
