package prometheus_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// made-up, and of the form of a token of GitHub's, so that the scan for secrets finds it.
const token = "ghp_" + "0a1B2c3D4e5F6g7H8i9J" + "0k1L2m3N4o5P6q7R"

// load does for a while what people and models do: calls that succeed, fail, are denied, wait for people, and take too
// long.
func (s *subject) load(duration time.Duration) {
	s.t.Helper()
	s.fakes.Slack.Faults.Add(fault.Fault{Path: "/api/chat.stopStream", Times: 1, Status: http.StatusTooManyRequests,
		Header: http.Header{"Retry-After": {"1"}}})
	s.fakes.Anthropic.Faults.Add(fault.Fault{Times: 1, Status: http.StatusUnauthorized})
	s.fakes.JMA.Faults.Add(fault.Fault{Path: "**/270000.json", Delay: time.Minute})
	var group sync.WaitGroup
	for _, work := range []func(){s.callTools, s.callWrongly, s.useSession, s.beRefused, s.waitForPeople, s.takeTooLong, s.delegate} {
		group.Go(func() {
			for end := time.Now().Add(duration); time.Now().Before(end) &&
				s.t.Context().Err() == nil; time.Sleep(100 * time.Millisecond) {
				work()
			}
		})
	}
	group.Go(func() { s.talk(duration - 4*time.Second) })
	group.Wait()
}

// callTools uses each kind of permission: HTTP, credentials, databases, commands, files, and an upstream server.
func (s *subject) callTools() {
	s.call("get_weather", `{"location":"東京"}`)
	s.call("read_google_sheet", `{"spreadsheet_id":"`+fakes.Spreadsheet+`","range":"Sheet1"}`)
	s.call("list_agents", `{}`)
	s.call("shell_exec", `{"command":"echo","args":["hello"]}`)
	s.call("shell_exec", `{"command":"curl","args":["-s","http://`+s.vendors+`/"]}`)
	s.call("file_read", `{"path":"note.txt"}`)
	s.call("inner_file_list", `{}`)
	s.ask("prompts/get", "task_start",
		map[string]any{"name": "task_start", "arguments": map[string]string{"task_id": "none"}})
	s.ask("tools/list", "", map[string]any{})
}

// callWrongly fails for reasons that are the caller's, the policy's and a quota's, and passes a secret.
func (s *subject) callWrongly() {
	s.call("get_weather", `{"place":1}`)
	s.call("no_such_tool", `{}`)
	s.call("delete_file", `{"path":"note.txt"}`)
	s.call("file_stat", `{"path":"note.txt"}`)
	s.call("file_read", `{"path":"missing.txt"}`)
	s.call("file_search", `{"query":"`+token+`"}`)
}

// useSession calls a tool in a protocol version with sessions.
func (s *subject) useSession() {
	_, session, _ := s.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
	s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"file_list","arguments":{}}}`,
		"Mcp-Session-Id", session)
	time.Sleep(500 * time.Millisecond)
}

// beRefused sends what the frontend does not take in.
func (s *subject) beRefused() {
	s.send("{", "Mcp-Protocol-Version", stateless)
	s.send("{}", "Origin", "https://elsewhere.example")
}

// waitForPeople asks for something that nobody agrees to in time: neither operators, nor the caller itself, which an
// upstream server asks.
func (s *subject) waitForPeople() {
	s.askAs(map[string]any{"elicitation": map[string]any{}}, "tools/call", "inner_delete_file", map[string]any{
		"name": "inner_delete_file", "arguments": map[string]string{"path": "new.txt"},
	})
	s.call("file_write", `{"path":"new.txt","content":"x"}`)
}

// takeTooLong calls a tool whose vendor does not answer.
func (s *subject) takeTooLong() { s.call("get_weather", `{"location":"大阪"}`) }

// delegate has a managed agent call tools.
func (s *subject) delegate() {
	session := s.fakes.ManagedAgents.NewSession()
	s.fakes.ManagedAgents.Call(session, "",
		managedagents.Call{Tool: "get_weather", Input: map[string]any{"location": "東京"}})
	answered := s.await(func() bool {
		events, _ := s.fakes.ManagedAgents.Events(session)
		return slices.ContainsFunc(events,
			func(e managedagents.Event) bool { return e["type"] == "user.custom_tool_result" })
	})
	if !answered {
		s.t.Error("a call of an agent has no result")
	}
	s.fakes.ManagedAgents.Delete(session)
}

// talk talks with the bot in Slack: a call that somebody agrees to, and then answers with a tool.
func (s *subject) talk(duration time.Duration) {
	server := s.fakes.Slack
	if !s.await(func() bool { return server.Connections() > 0 }) {
		s.t.Error("the bot does not connect")
		return
	}
	s.tell("a message, please")
	if !s.await(s.agree) {
		s.t.Error("the bot asks nobody")
	}
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(2 * time.Second) {
		s.tell("weather, please")
	}
	if !s.await(s.praise) {
		s.t.Error("the bot does not ask what people think")
	}
}

// tell says something to the bot in a channel.
func (s *subject) tell(text string) {
	said := slack.Said{User: fakes.SlackUser, Channel: fakes.SlackChannel, Text: "<@" + fakes.SlackBot + "> " + text}
	if _, err := s.fakes.Slack.Tell(s.t.Context(), said); err != nil {
		s.t.Errorf("tell the bot: %v", err)
	}
}

// agree presses the button under a question in Slack. It reports false while there is none.
func (s *subject) agree() bool { return s.press("hako_approve", `"value":"([^"]+)"`) }

// praise presses the button below an answer that says that it was good.
func (s *subject) praise() bool { return s.press("hako_feedback", `"value":"(true:[0-9]+)"`) }

// press presses the first button of an action, whose value is the part in parentheses of a pattern. It reports false
// while there is none.
func (s *subject) press(action, pattern string) bool {
	for _, m := range s.fakes.Slack.Messages() {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(m.Blocks, -1)
		if !strings.Contains(m.Blocks, action) || found == nil {
			continue
		}
		if err := s.fakes.Slack.Click(s.t.Context(), fakes.SlackUser, m, action, found[0][1]); err != nil {
			s.t.Error(err)
		}
		return true
	}
	return false
}

// await waits until something holds, and reports false if it does not in time.
func (s *subject) await(holds func() bool) bool {
	return testwait.Until(s.t, func() bool { return s.t.Context().Err() != nil || holds() }) &&
		s.t.Context().Err() == nil
}
