package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// serveSlack starts hako serve with the bot, on the fakes, with a model that follows the script of "hako-dev chat".
func serveSlack(t *testing.T) *slack.Server {
	t.Helper()
	return serveSlackWith(t, demo.Script, "", demo.Policy, nil)
}

// serveSlackWith is serveSlack with another script, more configuration, another policy, files in the workspace, and consent to
// plugins.
func serveSlackWith(
	t *testing.T, script, more, policy string, files map[string]string, approve ...string,
) *slack.Server {
	t.Helper()
	needsPlugins(t)
	dir, f := t.TempDir(), fakes.New()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	text := must(f.WriteConfig(dir, server.URL)) + strings.ReplaceAll(demo.SlackWorkspace, "URL", server.URL) + more
	for name, content := range map[string]string{"hako.yaml": text, "hako.policy.yaml": policy, "slack-app.token": fakes.SlackAppToken} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		put(t, filepath.Join(dir, "workspace", name), []byte(content))
	}
	steps := must(demo.ParseScript(script))
	f.Anthropic.Script, f.OpenAI.Script = steps, steps
	for _, plugin := range approve {
		invoke(t, dir, "plugin", "approve", plugin, "--yes").want(t, exitOK)
	}
	serve(t, dir)
	waitUntil(t, "a connection", func() bool { return f.Slack.Connections() > 0 })
	return f.Slack
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !testwait.Until(t, holds) {
		t.Fatalf("no %s", what)
	}
}

// said waits for a finished message that holds all of texts.
func said(t *testing.T, s *slack.Server, texts ...string) slack.Message {
	t.Helper()
	var found slack.Message
	waitUntil(t, "message with "+strings.Join(texts, " and "), func() bool {
		i := slices.IndexFunc(s.Messages(), func(m slack.Message) bool {
			lacks := func(text string) bool { return !strings.Contains(m.Text+m.Blocks, text) }
			return m.Author == fakes.SlackBot && !m.Streaming && !slices.ContainsFunc(texts, lacks)
		})
		if i >= 0 {
			found = s.Messages()[i]
		}
		return i >= 0
	})
	return found
}

// TestSlackWeather: a question in a channel is answered in its thread from what the tool found.
func TestSlackWeather(t *testing.T) {
	t.Parallel()
	s := serveSlack(t)
	ts := must(s.Tell(t.Context(), slack.Said{User: fakes.SlackUser, Channel: fakes.SlackChannel,
		Text: "<@" + fakes.SlackBot + "> 東京の天気を教えて"}))
	m := said(t, s, "東京")
	if m.Thread != ts || len(m.Tasks) != 1 || m.Tasks[0].Status != "complete" {
		t.Errorf("%+v", m)
	}
}

// TestSlackApproval: overtime goes into a spreadsheet and to a person, each after a yes.
func TestSlackApproval(t *testing.T) {
	t.Parallel()
	s := serveSlack(t)
	must(s.Tell(t.Context(), slack.Said{User: fakes.SlackUser, Channel: fakes.SlackChannel,
		Text: "<@" + fakes.SlackBot + "> 5月の残業時間を表にまとめて、あきさんに知らせて"}))
	for _, tool := range []string{"write_rows_to_google_sheet", "send_slack_dm"} {
		m := said(t, s, "hako_approve", tool)
		if err := s.Click(t.Context(), fakes.SlackUser, m, "hako_approve", buttonValue(t, m)); err != nil {
			t.Fatal(err)
		}
	}
	said(t, s, "5月の残業時間をスプレッドシートにまとめました")
	m := said(t, s, "あきさんに Slack で知らせました")
	cards := 0
	for _, other := range s.Messages() {
		if other.Thread == m.Thread {
			cards += len(other.Tasks)
		}
	}
	if cards != 6 {
		t.Errorf("%d cards", cards)
	}
}

// buttonValue returns the value of a message's first button.
func buttonValue(t *testing.T, m slack.Message) string {
	t.Helper()
	var blocks []struct{ Elements []struct{ Value string } }
	if err := json.Unmarshal([]byte(m.Blocks), &blocks); err != nil {
		t.Fatal(err)
	}
	return blocks[len(blocks)-1].Elements[0].Value
}

func TestSlackManifest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want []string
		code int
	}{
		"Socket Mode": {nil, []string{`"socket_mode_enabled": true`, `"agent_view"`, `"agent_session_stopped"`,
			`"usergroups:read"`, `"/hako"`}, 0},
		"over HTTP": {[]string{"--url", "https://hako.example.com/", "--workspace", "acme", "--name", "箱"},
			[]string{`"https://hako.example.com/slack/acme"`, "箱"}, 0},
		"an unsafe URL":  {[]string{"--url", "http://hako.example.com"}, []string{"not an https URL"}, 2},
		"both":           {[]string{"--socket", "--url", "https://hako.example.com"}, []string{"url"}, 2},
		"something else": {[]string{"x"}, []string{"takes no arguments"}, 2},
	} {
		got := invoke(t, t.TempDir(), append([]string{"slack", "manifest"}, test.args...)...)
		for _, want := range test.want {
			if got.code != test.code || !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: %d %s%s, want %q", name, got.code, got.stdout, got.stderr, want)
			}
		}
		if test.code == 0 && !json.Valid([]byte(got.stdout)) {
			t.Errorf("%s: no JSON", name)
		}
	}
}
