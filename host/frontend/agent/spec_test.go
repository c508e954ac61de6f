package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/secret"
)

func TestSpec(t *testing.T) {
	t.Parallel()
	good := Spec{Key: secret.Source{Env: "KEY"}, Agents: []string{"agent_011CZkZ"}}
	with := func(change func(*Spec)) Spec {
		s := good
		change(&s)
		return s
	}
	for _, test := range []struct {
		name string
		spec Spec
		want string // "" is right
	}{
		{"the least", good, ""},
		{"this machine", with(func(s *Spec) { s.BaseURL = "http://127.0.0.1:8431/managedagents/" }), ""},
		{"this machine by name", with(func(s *Spec) { s.BaseURL = "http://localhost:8431" }), ""},
		{"a gateway", with(func(s *Spec) { s.BaseURL = "https://gateway.example/anthropic" }), ""},
		{"everything", with(func(s *Spec) {
			s.Environments, s.Sessions, s.Workspace = []string{"env_1"}, []string{"sesn_1"}, "wrkspc_1"
			s.Follow, s.Unknown = FollowPoll, UnknownLeave
		}), ""},
		{"nothing to follow", with(func(s *Spec) { s.Agents = nil }), "agent.agents"},
		{"no key", with(func(s *Spec) { s.Key = secret.Source{} }), "key"},
		{"an ID that leads elsewhere", with(func(s *Spec) { s.Sessions = []string{"../agents"} }),
			`"../agents" is not an ID`},
		{"an empty ID", with(func(s *Spec) { s.Environments = []string{""} }), "is not an ID"},
		{"a workspace", with(func(s *Spec) { s.Workspace = "x\r\ny" }), "workspace"},
		{"another way to follow", with(func(s *Spec) { s.Follow = "push" }), "follow must be stream or poll"},
		{"unknown tools", with(func(s *Spec) { s.Unknown = "guess" }), "unknownTools must be refuse or leave"},
		{"no URL", with(func(s *Spec) { s.BaseURL = "api.anthropic.com" }), "is not an http or https URL"},
		{"a user in the URL", with(func(s *Spec) { s.BaseURL = "https://me:secret@x.example" }), "has a user"},
		{"the key in the clear", with(func(s *Spec) { s.BaseURL = "http://api.example" }), "use https"},
	} {
		err := test.spec.Check()
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the password: %v", test.name, err)
		}
	}
}

// FuzzEvent checks that an event is read or refused, and that what is read of a call can be used: its ID in the path of
// a request, its input as JSON.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{
		`{"id":"sevt_1","type":"agent.custom_tool_use","name":"echo","input":{"n":1},"processed_at":"2026-11-20T10:00:00Z"}`,
		`{"type":"user.custom_tool_result","custom_tool_use_id":"sevt_1"}`,
		`{"type":"user.interrupt","processed_at":null,"session_thread_id":"sthr_1"}`,
		`{"type":"session.status_idle","stop_reason":{"type":"requires_action","event_ids":["sevt_1"]}}`,
		`{"type":"session.deleted"}`, `[]`, `null`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := parseEvent(raw)
		if err != nil {
			return
		}
		if e.Type == typeCall && (!identifier().MatchString(e.ID) || len(e.Input) > 0 && !json.Valid(e.Input)) {
			t.Errorf("%q gave %+v", raw, e)
		}
	})
}
