package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// curious is an entry of mcp_servers.json for a hako with tools that ask, in a version of MCP.
func curious(t *testing.T, version, more string) string {
	t.Helper()
	return fmt.Sprintf(`{"command": %q, "args": ["-C", %q, "serve", "--stdio"],
		"env": {%q: "1", %q: "1", "HAKO_CACHE": "${HAKO_CACHE}"}, "protocolVersion": %q%s}`,
		os.Args[0], t.TempDir(), asProgram, withFixtures, version, more)
}

// TestServerAsksAtATerminal: what an upstream server asks is asked at the terminal, if somebody sits there, in both
// modes.
func TestServerAsksAtATerminal(t *testing.T) {
	t.Parallel()
	const defaults, name = "box_test_elicitation_sep1034_defaults", "box_test_input_required_result_elicitation"
	for what, test := range map[string]struct {
		version, tool, typed string
		locale               string
		want                 []string
	}{
		"defaults": {"2025-11-25", defaults, "yes\n\n\n\n\n\nyes\n", "en",
			[]string{"The server box asks, in the middle of " + defaults + ":\n> Take the defaults?",
				"[empty takes John Doe]", "Type yes to send this to box:", `"age":30`, "action=accept"}},
		"typed": {"2025-11-25", defaults, "yes\nabc\n31\nAki\n1.5\n2\nno\nyes\n", "en",
			[]string{"age must be a number", `"age":31`, `"name":"Aki"`, `"score":1.5`, `"status":"inactive"`,
				`"verified":false`}},
		"not sent":     {"2025-11-25", defaults, "yes\n\n\n\n\n\nno\n", "en", []string{"action=cancel content=null"}},
		"declined":     {"2025-11-25", defaults, "no\n", "en", []string{"action=decline"}},
		"left":         {"2025-11-25", defaults, "\n", "en", []string{"action=cancel"}},
		"end of input": {"2025-11-25", defaults, "", "en", []string{"action=cancel"}},
		"choices": {"2025-11-25", "box_test_elicitation_sep1330_enums",
			"はい\n2\n1,2\nSecond\n1, option2\n3\nyes\n", "ja",
			[]string{"box からの質問", "  2. Second", `"titledSingle":"value2"`, `"titledMulti":["value1","value2"]`}},
		"newest":        {"2026-07-28", name, "yes\nAki\nyes\n", "en", []string{"> What is your name?", "Hello, Aki!"}},
		"newest, again": {"2026-07-28", name, "yes\n\nAki\nyes\n", "en", []string{"name is missing", "Hello, Aki!"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, filepath.Join(dir, "hako.yaml"), []byte("upstreams: servers.json\nlocale: "+test.locale+"\n"))
			put(t, filepath.Join(dir, "servers.json"),
				[]byte(`{"mcpServers": {"box": `+curious(t, test.version, "")+`}}`))
			screen, somebody := new(watched), true
			a := &app{stdin: strings.NewReader(test.typed), stdout: screen, stderr: screen, person: &somebody}
			code := a.run(t.Context(), []string{"-C", dir, "call", test.tool, "{}"})
			outcome{code, screen.String(), ""}.want(t, code, test.want...)
		})
	}
}

// TestServerAsksInAPipe: where nobody sits, and where the operator declines, nothing is asked, and the result says so.
func TestServerAsksInAPipe(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct{ more, want string }{
		"nobody":   {"", "Note: the server box asked something in the middle of this call, and got no answer: the caller's frontend cannot ask anybody"},
		"declined": {`, "elicitation": "decline"`, "client does not support elicitation"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, filepath.Join(dir, "hako.yaml"), []byte("upstreams: servers.json\n"))
			put(t, filepath.Join(dir, "servers.json"),
				[]byte(`{"mcpServers": {"box": `+curious(t, "2025-11-25", test.more)+`}}`))
			o := invokeWith(t, dir, "yes\nyes\n", "call", "box_test_elicitation", `{"message":"Who?"}`)
			o.want(t, o.code, test.want)
			if strings.Contains(o.stderr, "asks, in the middle") {
				t.Errorf("somebody was asked: %s", o)
			}
			invoke(t, dir, "audit", "tail", "--json").want(t, exitOK, "box_test_elicitation")
			if recorded := invoke(t, dir, "audit", "tail", "--json").stdout; strings.Contains(
				recorded,
				`"elicited":[{"mode":"form","outcome":"nobody"}]`,
			) != (what == "nobody") ||
				strings.Contains(recorded, "Who?") {
				t.Errorf("recorded: %s", recorded)
			}
		})
	}
}

// TestServerAsksInAChat: the person at hako chat is asked, and the model gets what the server made of the answer.
func TestServerAsksInAChat(t *testing.T) {
	t.Parallel()
	dir, _ := talking(
		t,
		"steps: [{when: hello, call: [{tool: box_test_elicitation, arguments: {message: 'Who are you?'}}]}, {when: hello, after: 'action=accept', say: 'It knows.'}]",
	)
	put(t, filepath.Join(dir, "servers.json"), []byte(`{"mcpServers": {"box": `+curious(t, "2025-11-25", "")+`}}`))
	configuration, err := os.ReadFile(filepath.Join(dir, "hako.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "hako.yaml"), append(configuration, "\nupstreams: servers.json\n"...))
	p := sit(t, dir, "chat")
	p.types(t, "hello")
	for _, step := range []struct{ see, typed string }{
		{"> Who are you?\n", ""}, {"anything else leaves it: ", "yes"}, {"username: ", "aki"},
		{"Type yes to send this to box: ", "yes"}, {"It knows.", ""},
	} {
		p.see(t, step.see)
		if step.typed != "" {
			if _, err := io.WriteString(p.keyboard, step.typed+"\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.see(t, "\n> ")
	p.leaves(t, exitOK)
}
