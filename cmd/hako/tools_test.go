package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/internal/inspect"
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

func TestToolsPending(t *testing.T) {
	t.Parallel()
	o := invoke(t, workplace(t, ""), "tools")
	o.want(t, exitOK, "pending", "hako plugin approve probe")
	if o.stdout != "" {
		t.Errorf("a pending plugin's tools are listed: %s", o)
	}
}
