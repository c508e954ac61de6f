package bench

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store/drivers"
)

// slackTurns is the number of measured answers.
const slackTurns = 50

// writing is a model that writes a word and continues until somebody has seen it. begun receives the time of the first
// word.
type writing struct {
	begun chan time.Time
	seen  chan struct{}
}

func (writing) Name() string { return "writing" }

func (w writing) Complete(_ context.Context, _ *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
	w.begun <- time.Now()
	stream(llm.Delta{Text: "A first word"})
	<-w.seen
	return &llm.Response{Text: "A first word", Stop: llm.StopEnd}, nil
}

// slack measures the time from a model's first token until Slack receives it, through the engine and the bot.
func (r *results) slack(t *testing.T) {
	server := slack.New()
	server.AddToken("xoxb-bench", "U00000HAKO", "chat:write", "users:read", "usergroups:read", "channels:history")
	server.AddUser(slack.User{ID: "U0000000K1", Name: "ken", Locale: "en-US"})
	server.AddChannel("C0000000G1", "general", "U00000HAKO", "U0000000K1")
	server.UseSocketMode("xapp-bench")
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	s, err := drivers.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	model := writing{make(chan time.Time), make(chan struct{})}
	engine, err := chat.New(t.Context(), &chat.Options{Provider: model, Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	bot, err := slackbot.New(t.Context(), &slackbot.Options{Engine: engine, Store: s, Workspaces: []slackbot.Workspace{{
		Name: "bench", BotToken: secretFile(t, "xoxb-bench"), AppToken: secretFile(t, "xapp-bench"),
		APIURL: web.URL + "/api/",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bot.Run(ctx) }()
	for connected := server.Changed(); server.Connections() == 0; connected = server.Changed() {
		<-connected
	}
	var took []time.Duration
	for range slackTurns {
		thread, err := server.Tell(t.Context(), slack.Said{User: "U0000000K1", Channel: "C0000000G1",
			Text: "<@U00000HAKO> hello"})
		if err != nil {
			t.Fatal(err)
		}
		begun := <-model.begun
		until(server, func(m slack.Message) bool { return m.Thread == thread })
		took = append(took, time.Since(begun))
		model.seen <- struct{}{}
		until(server, func(m slack.Message) bool { return m.Thread == thread && !m.Streaming })
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	slices.Sort(took)
	r.add(t, "first_text_p50_ms", ms(took[len(took)/2]), "ms")
	r.add(t, "first_text_ms", ms(took[len(took)*99/100]), "ms at p99")
}

// until waits for a message.
func until(server *slack.Server, is func(slack.Message) bool) {
	for {
		changed := server.Changed()
		if slices.ContainsFunc(server.Messages(), is) {
			return
		}
		<-changed
	}
}

func secretFile(t *testing.T, value string) secret.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	return secret.Source{File: path}
}
