package slackbot_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/secret"
)

// overHTTP makes a workspace take requests over HTTP.
func (w *world) overHTTP(o *slackbot.Options) {
	o.Workspaces[0].AppToken = secret.Source{}
	o.Workspaces[0].SigningSecret = fileSource(w.t, signing)
}

// serve starts a bot that takes requests over HTTP, waits until it is signed in, and returns its URL.
func (w *world) serve(e slackbot.Engine, change func(*slackbot.Options)) string {
	w.t.Helper()
	before := strings.Count(w.log.String(), "signed in")
	b := w.start(e, func(o *slackbot.Options) {
		w.overHTTP(o)
		if change != nil {
			change(o)
		}
	})
	server := httptest.NewServer(b.Handler())
	w.t.Cleanup(server.Close)
	url := server.URL + "/slack/acme"
	w.slack.UseHTTP(url, signing)
	w.wait("signing in", func() bool { return strings.Count(w.log.String(), "signed in") > before })
	return url
}

func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve(engine(echo), nil)
	now := time.Now()
	const js, form = "application/json", "application/x-www-form-urlencoded"
	for name, test := range map[string]struct {
		kind, body, secret string
		at                 time.Time
		change             func(*http.Request)
		status             int
		want               string
	}{
		"the challenge": {js, `{"type":"url_verification","challenge":"abc"}`, signing, now, nil, 200, "abc"},
		"another secret": {js, `{"type":"url_verification","challenge":"abc"}`, "wrong", now, nil, 401,
			"signature"},
		"an old request": {js, `{"type":"url_verification","challenge":"abc"}`, signing, now.Add(-6 * time.Minute),
			nil, 401, "signature"},
		"one of the future": {js, `{"type":"url_verification","challenge":"abc"}`, signing, now.Add(6 * time.Minute),
			nil, 401, "signature"},
		"no signature": {js, `{}`, signing, now, func(r *http.Request) { r.Header.Del("X-Slack-Signature") }, 401,
			"signature"},
		"a short signature": {js, `{}`, signing, now,
			func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v0=00") }, 401, "signature"},
		"no JSON":          {js, `{`, signing, now, nil, 400, "not understood"},
		"an unknown event": {js, `{"type":"event_callback","team_id":"T0000000000","event_id":"E1","event":{"type":"nonsense"}}`, signing, now, nil, 200, ""},
		"an event of a list": {js, `{"type":"event_callback","team_id":"T0000000000","event_id":"E1","event":[]}`,
			signing, now, nil, 200, ""},
		"another team": {js, `{"type":"event_callback","team_id":"T1","event_id":"E2","event":{"type":"app_mention","user":"U1","text":"x","ts":"1","channel":"C1"}}`, signing, now, nil, 200, ""},
		"a key twice": {js, `{"type":"url_verification","challenge":"abc","challenge":"xyz"}`, signing, now, nil,
			400, "not understood"},
		"an action's twice": {form, `payload={"type":"block_actions","user":{"id":"U1","id":"U2"}}`, signing, now, nil,
			400, "not understood"},
		"an odd action":   {form, `payload={"type":"block_actions"`, signing, now, nil, 400, "not understood"},
		"no command":      {form, `team_id=T0000000000`, signing, now, nil, 400, "not understood"},
		"a large request": {js, strings.Repeat(" ", 2<<20), signing, now, nil, 413, "too large"},
	} {
		r, err := slack.Signed(t.Context(), url, test.kind, []byte(test.body), test.secret, test.at)
		if err != nil {
			t.Fatal(err)
		}
		if test.change != nil {
			test.change(r)
		}
		response, err := web.Do(r)
		if err != nil {
			t.Fatal(name, err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != test.status || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: %d %q, want %d %q", name, response.StatusCode, text, test.status, test.want)
		}
	}
	if n := w.counts.get("event other forbidden"); n < 5 {
		t.Errorf("%d forbidden requests were counted", n)
	}
	if strings.Contains(w.log.String(), signing) {
		t.Error("the log holds the secret")
	}
}

// web has connections of its own: httptest.Server.Close closes those of http.DefaultTransport, also under the requests
// of other tests.
var web = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// TestIgnored: what the bot itself says, edits, joins and other people's talk are not answered.
func TestIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var turns atomic.Int32
	w.serve(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turns.Add(1)
		return echo(ctx, turn)
	}), nil)
	for i, event := range []map[string]any{
		{"type": "app_mention", "user": robot, "text": "<@" + robot + "> me", "ts": "1.1", "channel": general},
		{"type": "app_mention", "user": ken, "bot_id": "B1", "text": "<@" + robot + "> a bot", "ts": "1.2",
			"channel": general},
		{"type": "app_mention", "user": ken, "text": "<@" + robot + "> edited", "ts": "1.3", "channel": general,
			"edited": map[string]string{"user": ken, "ts": "2"}},
		{"type": "app_mention", "user": ken, "text": "<@" + robot + ">", "ts": "1.4", "channel": general},
		{"type": "message", "user": ken, "text": "talk", "ts": "1.5", "channel": general, "channel_type": "channel"},
		{"type": "message", "channel_type": "im", "subtype": "message_changed", "channel": dm,
			"message": map[string]any{"user": aki, "text": "x", "ts": "1.6"}},
		{"type": "message", "channel_type": "im", "channel": dm, "user": robot, "text": "me", "ts": "1.7"},
		{"type": "message", "channel_type": "im", "subtype": "bot_message", "channel": dm, "bot_id": "B1", "text": "x",
			"ts": "1.8"},
		{"type": "app_home_opened", "user": aki, "channel": dm, "tab": "messages"},
	} {
		if _, err := w.slack.Deliver(t.Context(), slack.KindEvent, slack.Envelope(fmt.Sprint("Ev", i), event), 0); err != nil {
			t.Errorf("%v: %v", event, err)
		}
	}
	w.tell(slack.Said{User: aki, Channel: dm, Text: "the last"})
	w.answered("You said: the last")
	if turns.Load() != 1 {
		t.Errorf("%d turns", turns.Load())
	}
}

// TestRepeated: events come again, by another name, and at another replica; each is answered once.
func TestRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var turns atomic.Int32
	count := engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turns.Add(1)
		return echo(ctx, turn)
	})
	one := w.serve(count, nil)
	other := w.serve(count, nil)
	said := mention("once")
	ts := w.slack.Say(said)
	event := w.slack.Event(said, ts)
	again := slack.Envelope("EvOther", event["event"].(map[string]any))
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			w.slack.UseHTTP([]string{one, other}[i%2], signing)
			payload := []map[string]any{event, again}[i%3%2]
			if _, err := w.slack.Deliver(t.Context(), slack.KindEvent, payload, i); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.answered("You said: once")
	w.tell(mention("the last"))
	w.answered("You said: the last")
	if turns.Load() != 2 {
		t.Errorf("%d turns, want 2", turns.Load())
	}
}

// TestAppsOfOneTeam: a message to two apps in one team is answered by each of them once.
func TestAppsOfOneTeam(t *testing.T) {
	t.Parallel()
	const otherToken, otherRobot, otherSigning = "xoxb-made-up-other", "U0000OTHER", "made-up-other-secret"
	w := newWorld(t)
	w.slack.AddToken(otherToken, otherRobot, "chat:write", "users:read", "channels:history")
	var turns atomic.Int32
	b := w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turns.Add(1)
		return echo(ctx, turn)
	}), func(o *slackbot.Options) {
		w.overHTTP(o)
		other := o.Workspaces[0]
		other.Name, other.BotToken, other.SigningSecret = "other", fileSource(t, otherToken), fileSource(t, otherSigning)
		o.Workspaces = append(o.Workspaces, other)
	})
	server := httptest.NewServer(b.Handler())
	t.Cleanup(server.Close)
	w.wait("signing in", func() bool { return strings.Count(w.log.String(), "signed in") == 2 })
	said := mention("both of you")
	event := w.slack.Event(said, w.slack.Say(said))
	for i := range 4 {
		app, key := "acme", signing
		if i%2 > 0 {
			app, key = "other", otherSigning
		}
		w.slack.UseHTTP(server.URL+"/slack/"+app, key)
		if _, err := w.slack.Deliver(t.Context(), slack.KindEvent, event, 0); err != nil {
			t.Error(err)
		}
	}
	w.wait("second turn", func() bool { return turns.Load() > 1 })
	if twice := w.counts.get("event mention duplicate"); turns.Load() != 2 || twice != 2 {
		t.Errorf("%d turns and %d duplicates, want 2 and 2", turns.Load(), twice)
	}
}

// TestStopsWithoutID: events that have no ID are not taken for one event.
func TestStopsWithoutID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(engine(echo), nil)
	for i := range 2 {
		thread := fmt.Sprintf("%d.000001", i)
		event := slack.Envelope("", map[string]any{"type": "agent_session_stopped", "channel": general,
			"thread_ts": thread, "user": ken, "event_ts": thread})
		if _, err := w.slack.Deliver(t.Context(), slack.KindEvent, event, 0); err != nil {
			t.Error(err)
		}
	}
	if taken := w.counts.get("event stop taken"); taken != 2 {
		t.Errorf("%d events were handled, want 2", taken)
	}
}

// TestBurst: 1,000 events at once, each told twice. None is lost, none is answered twice, and all are acknowledged in
// time.
func TestBurst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	seen := map[string]int{}
	w.serve(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[turn.Text]++
		return &chat.Answer{Text: "ok"}, nil
	}), nil)
	var group sync.WaitGroup
	gate := make(chan struct{}, 100)
	for i := range 1000 {
		said := mention(fmt.Sprint("event ", i))
		event := w.slack.Event(said, w.slack.Say(said))
		for retry := range 2 {
			group.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				if _, err := w.slack.Deliver(t.Context(), slack.KindEvent, event, retry); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	w.wait("1000 turns", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == 1000 })
	mu.Lock()
	defer mu.Unlock()
	for text, n := range seen {
		if n != 1 {
			t.Errorf("%q was answered %d times", text, n)
		}
	}
	if taken, twice := w.counts.get("event mention taken"), w.counts.get("event mention duplicate"); taken != 1000 ||
		twice != 1000 {
		t.Errorf("%d taken, %d duplicates", taken, twice)
	}
}

// TestOrder: messages of one thread that come while it is being answered are answered in the order they were written
// in.
func TestOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, free := make(chan struct{}), make(chan struct{})
	var order []string
	w.serve(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		if turn.Text == "first" {
			close(begun)
			<-free
		}
		order = append(order, turn.Text) // one at a time, or the race detector says so
		return echo(ctx, turn)
	}), nil)
	thread := w.tell(mention("first"))
	<-begun
	var events []map[string]any
	for _, text := range []string{"second", "third", "fourth"} {
		said := mention(text)
		said.Thread = thread
		events = append(events, w.slack.Event(said, w.slack.Say(said)))
	}
	for _, i := range []int{2, 0, 1} {
		if _, err := w.slack.Deliver(t.Context(), slack.KindEvent, events[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	close(free)
	w.answered("You said: fourth")
	if got := strings.Join(order, " "); got != "first second third fourth" {
		t.Error(got)
	}
}

// TestReconnect: Slack closes connections; events come over the next one.
func TestReconnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(echo), nil)
	w.connected()
	w.tell(mention("before"))
	w.answered("You said: before")
	w.slack.Disconnect()
	said := mention("after")
	event := w.slack.Event(said, w.slack.Say(said))
	w.wait("acknowledgement", func() bool { // as Slack repeats it
		_, err := w.slack.Deliver(t.Context(), slack.KindEvent, event, 1)
		return err == nil
	})
	w.answered("You said: after")
}

// TestRevoked: a token that Slack does not take is logged and counted, and is no reason to end; it is not shown.
func TestRevoked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method string
		change func(w *slackbot.Workspace)
	}{
		"the bot's": {"auth.test", func(w *slackbot.Workspace) { w.BotToken = fileSource(t, "xoxb-made-up-revoked") }},
		"the app's": {"apps.connections.open",
			func(w *slackbot.Workspace) { w.AppToken = fileSource(t, "xapp-made-up-revoked") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start(engine(echo), func(o *slackbot.Options) { test.change(&o.Workspaces[0]) })
			w.wait("message in the log", func() bool {
				return strings.Contains(w.log.String(),
					"Slack rejects the token")
			})
			if n := w.counts.get("request " + test.method + " auth"); n != 1 {
				t.Errorf("it was counted %d times", n)
			}
			if strings.Contains(w.log.String(), "made-up-revoked") {
				t.Error("the log holds the token")
			}
		})
	}
}

// TestNew: workspaces that cannot work are refused, with what is wrong.
func TestNew(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*slackbot.Options){
		"part of a URL":         func(o *slackbot.Options) { o.Workspaces[0].Name = "a b" },
		"botToken needs one":    func(o *slackbot.Options) { o.Workspaces[0].BotToken = secret.Source{} },
		"either appToken":       func(o *slackbot.Options) { o.Workspaces[0].SigningSecret = fileSource(t, signing) },
		"tokens in the clear":   func(o *slackbot.Options) { o.Workspaces[0].APIURL = "http://slack.example/api/" },
		"not the URL of an API": func(o *slackbot.Options) { o.Workspaces[0].APIURL = "https://slack.example/api" },
		`have the name "acme"`:  func(o *slackbot.Options) { o.Workspaces = append(o.Workspaces, o.Workspaces[0]) },
		"it needs either":       func(o *slackbot.Options) { o.Workspaces[0].AppToken = secret.Source{} },
	} {
		w := newWorld(t)
		if _, err := slackbot.New(t.Context(), w.options(engine(echo), change)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
