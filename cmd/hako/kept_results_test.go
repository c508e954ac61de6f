package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/fakes/slack"
)

// numbered returns a text of n lines.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "行 %d of the log\n", i)
	}
	return b.String()
}

// TestSlackKeptResult: in Slack, the model gets the beginning of a large file, and reads its end with read_result, and
// in a program of run_code all of it.
func TestSlackKeptResult(t *testing.T) {
	t.Parallel()
	s := serveSlackWith(t, `steps:
  - {when: log, call: [{tool: file_read, arguments: {path: large.log}}]}
  - when: last line
    after: 'read_result with \{"id": "(?P<id>[a-z0-9]+)"\} reads parts of it, and so does tools.read_result'
    call: [{tool: read_result, arguments: '{"id": "${id}", "offset": 3999}'}]
  - {when: last line, after: '行 (?P<line>3999) of', say: "The last one has the number ${line}."}
  - when: many lines
    after: 'read_result with \{"id": "(?P<id>[a-z0-9]+)"\}'
    call:
      - tool: run_code
        arguments: {code: "const text = await tools.read_result({id: '${id}'}); return 'lines: ' + text.split('\\n').length"}
  - {when: many lines, after: 'lines: (?P<count>\d+)', say: "It has ${count} lines."}
  - {after: '(?s).*', say: "Something else: ${result}"}
`, "", demo.Policy+"  - {name: programs, action: allow, tools: [run_code]}\n",
		map[string]string{"large.log": strings.TrimSuffix(numbered(4000), "\n")}, "code")
	for question, answer := range map[string]string{
		"What is in the last line of the log?": "The last one has the number 3999.",
		"How many lines has the log?":          "It has 4000 lines.",
	} {
		must(s.Tell(t.Context(), slack.Said{User: fakes.SlackUser, Channel: fakes.SlackChannel,
			Text: "<@" + fakes.SlackBot + "> " + question}))
		said(t, s, answer)
	}
}

// TestSlackWithoutReadResult: a model whose toolset leaves read_result out gets the beginning of a large file, is not
// told to use the tool, and is told how to get the rest.
func TestSlackWithoutReadResult(t *testing.T) {
	t.Parallel()
	s := serveSlackWith(t, `steps:
  - {when: log, call: [{tool: file_read, arguments: {path: large.log}}]}
  - {after: 'read_result|hako-result|is kept', say: "I am told to use a tool that I do not have."}
  - {after: '(?s)行 0 of the log.*(?P<rest>Ask for less, or for a part)', say: "I have the beginning. ${rest}!"}
`, `
toolsets:
  sets:
    reading: {tools: [file_read], except: [read_result]}
  rules:
    - {frontends: [slack], toolset: reading}
`, demo.Policy, map[string]string{"large.log": numbered(4000)})
	must(s.Tell(t.Context(), slack.Said{User: fakes.SlackUser, Channel: fakes.SlackChannel,
		Text: "<@" + fakes.SlackBot + "> What is in the log?"}))
	said(t, s, "I have the beginning. Ask for less, or for a part!")
}

// runAgent runs "hako agent run" until the test ends.
func runAgent(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- (&app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}).run(ctx,
			[]string{"-C", dir, "agent", "run", "--agent", managedagents.DefaultAgent})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestAgentKeptResult: an agent gets the beginning of a large result and reads the rest with read_result; another agent
// session of the same user can read it too, because the user is the caller.
func TestAgentKeptResult(t *testing.T) {
	t.Parallel()
	dir, fake := agentPlaceWith(t, ", maxResult: 4KiB", "")
	session := fake.NewSession()
	runAgent(t, dir)
	first := fake.Call(session, "", probeCall("probe_echo", map[string]any{"text": numbered(1000)}))
	start := agentResult(t, fake, session, first[0])
	found := regexp.MustCompile(`read_result with \{\\"id\\": \\"([a-z0-9]+)`).FindStringSubmatch(start)
	if found == nil || !strings.Contains(start, "行 0 of") || strings.Contains(start, "行 999 of") || strings.Contains(start, "run_code") {
		t.Fatalf("the agent gets %.800s", start)
	}
	ids := fake.Call(session, "", probeCall("read_result", map[string]any{"id": found[1], "offset": 998}))
	if end := agentResult(t, fake, session, ids[0]); !strings.Contains(end, "行 998 of the log\\n行 999 of the log") {
		t.Errorf("the agent reads %s", end)
	}
}

// TestAgentWithoutReadResult: without read_result the result of an agent's call is cut off, with a note.
func TestAgentWithoutReadResult(t *testing.T) {
	t.Parallel()
	dir, fake := agentPlaceWith(t, ", maxResult: 4KiB",
		"toolsets: {sets: {few: {tools: [probe_echo], except: [read_result]}}, rules: [{toolset: few}]}\n")
	session := fake.NewSession()
	runAgent(t, dir)
	ids := fake.Call(session, "", probeCall("probe_echo", map[string]any{"text": numbered(1000)}))
	got := agentResult(t, fake, session, ids[0])
	if !strings.Contains(got, "行 0 of") || !strings.Contains(got, "Ask for less, or for a part") || len(got) > 6<<10 ||
		strings.Contains(got, "read_result") || strings.Contains(got, "hako-result") {
		t.Errorf("the agent gets %.300s … %s", got, got[max(0, len(got)-300):])
	}
}
