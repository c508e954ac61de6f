package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/managedagents"
)

const deniesFail = "version: 1\nrules:\n  - {name: no failing, action: deny, tools: [probe_fail], frontends: [agent]}\n"

// agentHas reports the names of an agent's custom tools.
func agentHas(fake *managedagents.Server) string {
	var names []string
	for _, tool := range fake.Agent(managedagents.DefaultAgent)["tools"].([]any) {
		name, _ := tool.(map[string]any)["name"].(string)
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestAgentApply goes through what an operator does: look, agree, change the policy, look again.
func TestAgentApply(t *testing.T) {
	t.Parallel()
	dir, fake := agentPlace(t)
	const id = managedagents.DefaultAgent
	policy := filepath.Join(dir, "hako.policy.yaml")
	put(t, policy, []byte(deniesFail))
	invoke(t, dir, "agent", "apply", id, "--dry-run").want(t, exitOK, "Agent "+id+" (Fake), version 1",
		"  + probe_echo\n")
	invoke(t, dir, "agent", "apply", id).want(t, exitFailed, "  + probe_echo\n", "Apply? [y/N]", "nothing was changed")
	if got := agentHas(fake); got != "" {
		t.Errorf("without a yes the agent has %s", got)
	}
	invokeWith(t, dir, "yes\n", "agent", "apply", id).want(t, exitOK, "now has version 2")
	if got := agentHas(fake); !strings.Contains(got, "probe_echo") || strings.Contains(got, "probe_fail") {
		t.Errorf("the agent has %s", got)
	}
	put(t, policy, []byte("version: 1\nrules:\n  - {name: no echo, action: deny, tools: [probe_echo], frontends: [agent]}\n"))
	invoke(t, dir, "agent", "apply", id, "--yes").want(t, exitOK, "  - probe_echo\n  + probe_fail\n",
		"now has version 3")
	o := invoke(t, dir, "agent", "apply", id)
	o.want(t, exitOK, "version 3", "has the tools as they are")
	if strings.Contains(o.stdout+o.stderr, "Apply?") || strings.Contains(o.stdout+o.stderr, "secret") {
		t.Errorf("with nothing to do: %s", o)
	}
	invoke(t, dir, "audit", "query", "--action", "agent.apply", "--json").want(t, exitOK, `"outcome":"ok"`, id,
		`- probe_echo\n+ probe_fail`)
}

func TestAgentApplyProblems(t *testing.T) {
	t.Parallel()
	const id = managedagents.DefaultAgent
	for name, test := range map[string]struct {
		args        []string
		agent, more string // configuration
		change      func(dir string, s *managedagents.Server) error
		code        int
		want        string
	}{
		"no agent":       {nil, "", "", nil, exitUsage, "no agent is named"},
		"no ID":          {[]string{"../x"}, "", "", nil, exitUsage, "is not an agent ID"},
		"no such agent":  {[]string{"agent_9"}, "", "", nil, exitUsage, "check its ID"},
		"unknown tenant": {[]string{id}, ", tenant: acme", "", nil, exitUsage, `unknown tenant "acme"`},
		"no key": {[]string{id}, "", "",
			func(dir string, _ *managedagents.Server) error { return os.Remove(filepath.Join(dir, "key")) }, exitUsage,
			"check agent.key"},
		"an archived one": {[]string{id}, "", "",
			func(_ string, s *managedagents.Server) error { return s.Archive(id) }, exitUsage, "is archived"},
		"tools of others": {[]string{id, "--yes"}, "", "", func(_ string, s *managedagents.Server) error {
			return s.Change(id, `{"tools":[{"type":"custom","name":"probe_echo","description":"d","input_schema":{"type":"object"}}]}`)
		}, exitUsage, "named like some that are: probe_echo. Rename"},
		"an API that fails": {[]string{id}, "", "", func(_ string, s *managedagents.Server) error {
			s.Faults.Add(fault.Fault{Path: "/v1/agents/**", Status: 500, Header: http.Header{"Retry-After": {"0.01"}}})
			return nil
		}, exitFailed, "cannot be reached, or failed (HTTP status 500)"},
		"a server that is down": {[]string{id, "--yes"}, "", "upstreams: servers.json\n",
			func(dir string, s *managedagents.Server) error {
				put(t, filepath.Join(dir, "servers.json"),
					[]byte(`{"mcpServers":{"broken":{"command":"./no-such-program"}}}`))
				return s.Change(id, `{"metadata":{"hako_tools_1":"KDu53u8C"},"tools":[{"type":"custom","name":"gone","description":"d","input_schema":{"type":"object"}}]}`)
			}, exitFailed, "the tools of broken are unknown, and would be removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, fake := agentPlaceWith(t, test.agent, test.more)
			if test.change != nil {
				if err := test.change(dir, fake); err != nil {
					t.Fatal(err)
				}
			}
			before := fmt.Sprint(fake.Agent(id))
			invoke(t, dir, append([]string{"agent", "apply"}, test.args...)...).want(t, test.code, test.want)
			if after := fmt.Sprint(fake.Agent(id)); after != before {
				t.Errorf("the agent was %s\nand is %s", before, after)
			}
		})
	}
}
