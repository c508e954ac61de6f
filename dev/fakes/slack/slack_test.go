package slack

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
)

const robot = "U00000HAKO"

func serve(t *testing.T) (*Server, string) {
	t.Helper()
	s := New()
	s.AddToken("xoxb-good", robot, "im:write", "chat:write", "users:read", "users:read.email")
	s.AddToken("xoxb-narrow", robot, "im:write")
	s.AddUser(User{ID: "U0000000A1", Name: "aki", Real: "青木 あき", Email: "aki@example.com"})
	s.AddUser(User{ID: "U0000000G1", Deleted: true})
	s.AddChannel("C0000000G1", "general", robot)
	s.AddChannel("C0000000P1", "private")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL + "/api/"
}

// ask calls a method and returns "ok", or the error.
func ask(t *testing.T, url, token, kind, body string) (string, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != 200 {
		t.Fatal(response.Status, err)
	}
	if answer["ok"] == true {
		return "ok", answer
	}
	return answer["error"].(string), answer
}

func TestMethods(t *testing.T) {
	t.Parallel()
	_, url := serve(t)
	const js, form = "application/json; charset=utf-8", "application/x-www-form-urlencoded"
	long := strings.Repeat("x", longestText+1)
	for name, test := range map[string]struct{ method, token, kind, body, want string }{
		"auth.test":            {"auth.test", "xoxb-good", form, "", "ok"},
		"without a token":      {"auth.test", "", js, "{}", "not_authed"},
		"with another token":   {"auth.test", "xoxb-bad", js, "{}", "invalid_auth"},
		"unknown method":       {"chat.deleteEverything", "xoxb-good", js, "{}", "unknown_method"},
		"users.info":           {"users.info", "xoxb-good", form, "user=U0000000A1", "ok"},
		"users.info of nobody": {"users.info", "xoxb-good", js, `{"user":"U1"}`, "user_not_found"},
		"users.info, narrow":   {"users.info", "xoxb-narrow", js, `{"user":"U0000000A1"}`, "missing_scope"},
		"open, form":           {"conversations.open", "xoxb-good", form, "users=U0000000A1", "ok"},
		"open for nobody":      {"conversations.open", "xoxb-good", js, `{}`, "users_list_not_supplied"},
		"open for a stranger":  {"conversations.open", "xoxb-good", js, `{"users":"U0000000X1"}`, "user_not_found"},
		"open for the gone":    {"conversations.open", "xoxb-good", js, `{"users":"U0000000G1"}`, "user_disabled"},
		"post":                 {"chat.postMessage", "xoxb-good", js, `{"channel":"C0000000G1","text":"x"}`, "ok"},
		"post too much": {"chat.postMessage", "xoxb-good", js, `{"channel":"C0000000G1","text":"` + long + `"}`,
			"ok"},
		"post, narrow": {"chat.postMessage", "xoxb-narrow", js, `{"channel":"C0000000G1","text":"x"}`,
			"missing_scope"},
		"post nowhere": {"chat.postMessage", "xoxb-good", js, `{"channel":"C1","text":"x"}`,
			"channel_not_found"},
		"post outside": {"chat.postMessage", "xoxb-good", js, `{"channel":"C0000000P1","text":"x"}`,
			"not_in_channel"},
		"post nothing": {"chat.postMessage", "xoxb-good", js, `{"channel":"C0000000G1","text":" "}`, "no_text"},
		"broken JSON":  {"chat.postMessage", "xoxb-good", js, `{`, "invalid_json"},
		"another type": {"chat.postMessage", "xoxb-good", "text/plain", `x`, "invalid_post_type"},
	} {
		if got, answer := ask(t, url+test.method, test.token, test.kind, test.body); got != test.want {
			t.Errorf("%s: %v, want %s", name, answer, test.want)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	s, url := serve(t)
	const js = "application/json"
	_, opened := ask(t, url+"conversations.open", "xoxb-good", js, `{"users":"U0000000A1"}`)
	id := opened["channel"].(map[string]any)["id"].(string)
	_, again := ask(t, url+"conversations.open", "xoxb-good", js, `{"users":"U0000000A1"}`)
	if again["already_open"] != true || again["channel"].(map[string]any)["id"] != id {
		t.Errorf("opened again: %v", again)
	}
	for _, text := range []string{"plain", "<!channel> &lt;!here&gt; <https://x.example|y>"} {
		if got, answer := ask(t, url+"chat.postMessage", "xoxb-good", js, `{"channel":"`+id+`","text":"`+text+`"}`); got != "ok" {
			t.Fatal(answer)
		}
	}
	m := s.Messages()
	if len(m) != 2 || m[0].User != "U0000000A1" || m[0].TS >= m[1].TS || len(m[0].Controls()) != 0 ||
		len(m[1].Controls()) != 2 {
		t.Errorf("got %+v", m)
	}
	s.Faults.Add(fault.Fault{Path: "/api/chat.postMessage", Body: `{"ok":false,"error":"fatal_error"}`})
	if got, _ := ask(t, url+"chat.postMessage", "xoxb-good", js, `{}`); got != "fatal_error" {
		t.Error(got)
	}
}

// TestStream: a streamed message in a channel says for whom it is, takes text and cards in order, and ends once.
func TestStream(t *testing.T) {
	t.Parallel()
	s, url := serve(t)
	const form = "application/x-www-form-urlencoded"
	call := func(method, body string) string {
		t.Helper()
		got, _ := ask(t, url+method, "xoxb-good", form, body)
		return got
	}
	start := "channel=C0000000G1&thread_ts=1.1&markdown_text=one"
	for body, want := range map[string]string{
		start:                                "missing_recipient_team_id",
		start + "&recipient_team_id=" + Team: "missing_recipient_user_id",
		"channel=C0000000G1&markdown_text=x": "invalid_thread_ts",
		start + "&recipient_team_id=" + Team + "&recipient_user_id=U1&markdown_text=" + strings.Repeat("x", longestStream+1): "ok", // the first counts
	} {
		if got := call("chat.startStream", body); got != want {
			t.Errorf("%.80s: %s, want %s", body, got, want)
		}
	}
	ts := s.Messages()[0].TS
	at := "channel=C0000000G1&ts=" + ts
	for _, step := range []struct{ method, body, want string }{
		{"chat.update", at + "&text=x", "streaming_state_conflict"},
		{"chat.appendStream", at + `&chunks=[{"type":"task_update","id":"1","title":"A","status":"in_progress"},{"type":"markdown_text","text":" two"}]`, "ok"},
		{"chat.appendStream", at + "&markdown_text=" + strings.Repeat("x", longestStream+1), "msg_too_long"},
		{"chat.stopStream", at + `&chunks=[{"type":"task_update","id":"1","title":"A","status":"complete"}]`, "ok"},
		{"chat.appendStream", at + "&markdown_text=x", "message_not_in_streaming_state"},
		{"chat.stopStream", "channel=C0000000G1&ts=9.9", "message_not_found"},
	} {
		if got := call(step.method, step.body); got != step.want {
			t.Errorf("%s: %s, want %s", step.method, got, step.want)
		}
	}
	if m := s.Messages()[0]; m.Text != "one two" || m.Streaming || len(m.Tasks) != 1 ||
		m.Tasks[0].Status != "complete" {
		t.Errorf("%+v", m)
	}
}
