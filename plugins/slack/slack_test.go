package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

const (
	aki   = "U0000000A1"
	token = "xoxb-made-up"
)

// workspace is a fake Slack with some members. Requests reach it with the bot's token, which in earnest the
// host puts in.
type workspace struct {
	*slack.Server
	url   string
	token string
}

func newWorkspace(t testing.TB) *workspace {
	t.Helper()
	w := &workspace{Server: slack.New(), token: token}
	w.AddToken(token, "U00000HAKO", "im:write", "chat:write", "users:read", "users:read.email")
	w.AddToken("xoxb-no-scopes", "U00000HAKO", "users:read")
	for _, u := range []slack.User{{ID: aki, Name: "aki"}, {ID: "U0000000G1", Deleted: true}, {ID: "U0000000B1", Bot: true}} {
		w.AddUser(u)
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+w.token)
		w.ServeHTTP(out, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *workspace) dm(t testing.TB, user, message, locale string) *abi.Response {
	t.Helper()
	return pdktest.CallTool(t, "send_slack_dm", arguments{user, message},
		pdktest.Options{Config: map[string]string{"base_url": w.url + "/api/"}, Locale: locale})
}

func text(r *abi.Response) string { return r.Content[0].Text }

func TestSend(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for _, message := range []string{"勤怠の締め切りは明日です。", "*second*"} {
		r := w.dm(t, aki, message, "en")
		if r.IsError || text(r) != "Sent to "+aki+"." {
			t.Fatal(text(r))
		}
		got := w.Messages()[len(w.Messages())-1]
		if got.User != aki || got.Text != message || got.Sent["unfurl_links"] != false ||
			got.Sent["unfurl_media"] != false {
			t.Errorf("Slack got %+v", got)
		}
		var s sent
		if err := json.Unmarshal(r.StructuredContent, &s); err != nil || s != (sent{aki, got.Channel, got.TS}) {
			t.Errorf("got %s, Slack has %+v", r.StructuredContent, got)
		}
	}
	if r := w.dm(t, aki, "x", "ja"); text(r) != aki+" に送信しました。" {
		t.Error(text(r))
	}
}

// TestMessageIsText: nothing that a model writes becomes a mention, a link under another name, or an entity.
func TestMessageIsText(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for message, want := range map[string]string{
		"<!channel> hi":                       "&lt;!channel&gt; hi",
		"<!here|x> <@U024BE7LH> <#C024BE7LR>": "&lt;!here|x&gt; &lt;@U024BE7LH&gt; &lt;#C024BE7LR&gt;",
		"<https://evil.example|your bank>":    "&lt;https://evil.example|your bank&gt;",
		"&lt;!channel&gt;":                    "&amp;lt;!channel&amp;gt;",
		"a < b && c > d":                      "a &lt; b &amp;&amp; c &gt; d",
	} {
		if r := w.dm(t, aki, message, ""); r.IsError {
			t.Fatal(text(r))
		}
		got := w.Messages()[len(w.Messages())-1]
		if got.Text != want || len(got.Controls()) > 0 {
			t.Errorf("%q is posted as %q, in which Slack sees %q", message, got.Text, got.Controls())
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ token, user, want string }{
		"nobody":     {token, "U0000000X9", "user_not_found): check user_id"},
		"gone":       {token, "U0000000G1", "user_disabled): check user_id"},
		"a bot":      {token, "U0000000B1", "is_bot): check user_id"},
		"bad token":  {"xoxb-revoked", aki, "invalid_auth): ask the operator to check the bot token"},
		"no token":   {"", aki, "not_authed): ask the operator"},
		"few scopes": {"xoxb-no-scopes", aki, "missing_scope, needed: im:write"},
	} {
		w := newWorkspace(t)
		w.token = test.token
		if r := w.dm(t, test.user, "x", "en"); !r.IsError || !strings.Contains(text(r), test.want) ||
			len(w.Messages()) != 0 {
			t.Errorf("%s: got %q, want an error with %q", name, text(r), test.want)
		}
	}
}

// TestErrors: each documented error has a remedy, in both languages, whichever method gives it.
func TestErrors(t *testing.T) {
	t.Parallel()
	codes := map[string]string{
		"message_limit_exceeded": "This one was not sent: try again later",
		"ratelimited":            "try again in 30 seconds", "rate_limited": "try again in 30 seconds",
		"brand_new_error": "brand_new_error)",
	}
	for want, documented := range map[string]string{
		checkUser.en:  "user_not_found user_disabled user_not_visible is_bot not_enough_users users_list_not_supplied",
		openAgain.en:  "channel_not_found not_in_channel is_archived messages_tab_disabled",
		rewrite.en:    "no_text msg_too_long msg_blocks_too_long markdown_text_conflict",
		addScopes.en:  "missing_scope",
		badToken.en:   "not_allowed_token_type invalid_auth not_authed token_revoked token_expired account_inactive",
		notAllowed.en: "access_denied enterprise_is_restricted restricted_action restricted_action_thread_only_channel",
	} {
		for _, code := range strings.Fields(documented) {
			codes[code] = want
		}
	}
	for code, want := range codes {
		for _, method := range []string{"conversations.open", "chat.postMessage"} {
			w := newWorkspace(t)
			w.Faults.Add(fault.Fault{Path: "/api/" + method, Body: `{"ok":false,"error":"` + code + `"}`})
			en, ja := w.dm(t, aki, "x", "en"), w.dm(t, aki, "x", "ja")
			if !en.IsError || !strings.Contains(text(en), want) || !strings.Contains(text(en), code) ||
				len(w.Messages()) != 0 {
				t.Errorf("%s, %s: got %q, want %q", method, code, text(en), want)
			}
			if !strings.Contains(text(ja), code) || !strings.Contains(text(ja), "。") && code != "brand_new_error" {
				t.Errorf("%s, %s: in Japanese %q", method, code, text(ja))
			}
		}
	}
}

// TestNotSent: what the host refuses to send was surely not sent, and the host's own words say what to do.
func TestNotSent(t *testing.T) {
	t.Parallel()
	r := pdktest.CallTool(t, "send_slack_dm", arguments{aki, "x"},
		pdktest.Options{Config: map[string]string{"base_url": "http://no host"}})
	if !r.IsError || strings.Contains(text(r), "try again") || !strings.Contains(text(r), "no host") {
		t.Errorf("got %q", text(r))
	}
}

// TestNoDoubleSend: a post is sent once, and what is not known to have failed is said so.
func TestNoDoubleSend(t *testing.T) {
	t.Parallel()
	const may, nothing = "may have been sent: ask the user", "Nothing was sent: try again"
	internal := fault.Fault{Body: `{"ok":false,"error":"internal_error"}`}
	type lost struct {
		method string
		fault  fault.Fault
		want   string
		posted int
	}
	tests := map[string]lost{
		"the answer to a post is lost": {"chat.postMessage", fault.Fault{After: true, Drop: true}, may, 1},
		"a post fails half-way":        {"chat.postMessage", fault.Fault{After: true, Body: internal.Body}, may, 1},
		"a gateway gives up": {"chat.postMessage", fault.Fault{After: true, Status: 504, Body: "<html>"},
			may, 1},
		"half an answer": {"chat.postMessage", fault.Fault{Truncate: true}, may, 1},
		"not JSON":       {"chat.postMessage", fault.Fault{Body: "ok"}, may, 0},
		"no timestamp":   {"chat.postMessage", fault.Fault{Body: `{"ok":true}`}, may, 0},
		"too many posts": {"chat.postMessage",
			fault.Fault{Status: 429, Header: http.Header{"Retry-After": {"12"}}}, "try again in 12 seconds", 0},
		"the answer to an open is lost": {"conversations.open", fault.Fault{After: true, Drop: true}, nothing, 0},
		"an open fails":                 {"conversations.open", internal, nothing, 0},
		"an open without a channel": {"conversations.open", fault.Fault{Body: `{"ok":true,"channel":{}}`},
			"did not name it", 0},
	}
	for _, code := range []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout"} {
		tests[code] = lost{"chat.postMessage", fault.Fault{After: true, Body: `{"ok":false,"error":"` + code + `"}`},
			may, 1}
	}
	for name, test := range tests {
		w := newWorkspace(t)
		test.fault.Path, test.fault.Times = "/api/"+test.method, 1
		w.Faults.Add(test.fault)
		r := w.dm(t, aki, "once", "en")
		if !r.IsError || !strings.Contains(text(r), test.want) || len(w.Messages()) != test.posted {
			t.Errorf("%s: got %q and %d messages, want %q and %d", name, text(r), len(w.Messages()), test.want,
				test.posted)
		}
	}
}
