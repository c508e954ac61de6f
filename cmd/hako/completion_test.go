package main

import (
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	dir, waiting := approved(t, ""), workplace(t, "")
	tests := map[string]struct {
		dir  string
		args []string
		want string
	}{
		"tools":             {dir, []string{"call", ""}, "probe_echo\tGives the text back."},
		"plugins":           {dir, []string{"plugin", "inspect", ""}, "probe\tactive"},
		"plugins to revoke": {dir, []string{"plugin", "revoke", ""}, "probe\tactive"},
		"plugins that wait": {waiting, []string{"plugin", "approve", ""}, "probe\tpending"},
		"none that wait":    {dir, []string{"plugin", "approve", ""}, ""},
		"arguments":         {dir, []string{"call", "probe_echo", ""}, "text="},
		"no second value":   {dir, []string{"call", "probe_echo", "text=a", ""}, ""},
		"clients":           {dir, []string{"mcp-config", "v"}, "vscode"},
		"commands":          {dir, []string{"pl"}, "plugin\tList, approve"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := append([]string{"__complete", "--directory", test.dir}, test.args...)
			o := invoke(t, test.dir, a...)
			lines := strings.Split(o.stdout, "\n")
			if test.want == "" && !strings.HasPrefix(lines[0], ":") || !strings.Contains(o.stdout, test.want) {
				t.Errorf("want %q, got %s", test.want, o)
			}
		})
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		invoke(t, t.TempDir(), "completion", shell).want(t, exitOK, "hako")
	}
}
