package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/app/inspect"
)

func TestTools(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	o := invoke(t, dir, "tools")
	o.want(t, exitOK)
	line, _, _ := strings.Cut(o.stdout, "\n")
	if fields := strings.Fields(line); fields[0] != "probe_config" || fields[1] != "probe" || len(fields) < 4 {
		t.Errorf("the first line is %q", line)
	}
	if !strings.Contains(o.stdout, "Gives the text back.") || strings.Contains(o.stdout, "It changes nothing") {
		t.Errorf("want the first sentence only, got %s", o)
	}
	var list []inspect.ToolInfo
	if err := json.Unmarshal([]byte(invoke(t, dir, "tools", "--json").stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 8 || list[1].Name != "probe_echo" ||
		!strings.Contains(string(list[1].InputSchema), `"additionalProperties"`) {
		t.Errorf("got %+v", list)
	}
}

// TestToolsOfToolset: --toolset chooses what is offered at the terminal and over stdio, --tokens says what it costs.
func TestToolsOfToolset(t *testing.T) {
	t.Parallel()
	dir := approved(t, "toolsets:\n  sets:\n    small:\n      tools:\n"+
		"        - {tool: probe_echo, rename: say, fix: {text: hello}}\n        - no_such_tool\n"+
		"  rules:\n    - {frontends: [terminal], toolset: all}\n")
	all := invoke(t, dir, "tools", "--tokens")
	all.want(t, exitOK, "NAME", "TOKENS", "probe_echo", "8 tools, about ")
	small := invoke(t, dir, "tools", "--tokens", "--toolset", "small")
	small.want(t, exitOK, "say", "1 tool, about ")
	if strings.Contains(small.stdout, "probe_") {
		t.Errorf("other tools are offered: %s", small)
	}
	invoke(t, dir, "call", "say", "--toolset", "small").want(t, exitOK, "hello")
	invoke(t, dir, "call", "probe_echo", `{"text":"x"}`, "--toolset", "small").want(t, exitUsage, "unknown tool")
	invoke(t, dir, "call", "probe_echo", `{"text":"x"}`).want(t, exitOK, "x")
	invoke(t, dir, "tools", "--toolset", "smal").want(t, exitUsage, "flag --toolset", `did you mean "small"`)
	if o := invoke(t, dir, "doctor"); !strings.Contains(o.stdout, "toolset small: no_such_tool matches no tool") {
		t.Errorf("doctor does not name the entry: %s", o)
	}
}

func TestToolsPending(t *testing.T) {
	t.Parallel()
	o := invoke(t, workplace(t, ""), "tools")
	o.want(t, exitOK, "pending", "hako plugin approve probe")
	if o.stdout != "" {
		t.Errorf("a pending plugin's tools are listed: %s", o)
	}
}

// TestToolsDenied: what the policy always denies at the terminal is counted, not listed.
func TestToolsDenied(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	put(t, filepath.Join(dir, "hako.policy.yaml"), []byte(`version: 1
default: allow
rules:
  - {name: never, action: deny, tools: [probe_echo, probe_now]}
  - {name: sometimes, action: deny, tools: [probe_fail], frontends: [mcp-http]}
`))
	o := invoke(t, dir, "tools")
	o.want(t, exitOK, "2 tools not listed: the policy always denies them")
	if strings.Contains(o.stdout, "probe_echo") || !strings.Contains(o.stdout, "probe_fail") {
		t.Errorf("listed: %s", o)
	}
}
