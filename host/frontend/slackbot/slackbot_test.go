package slackbot_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/pipeline"
)

func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func TestMention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	turns := make(chan *chat.Turn, 1)
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turns <- turn
		turn.Surface.ToolStarted("call_1", "get_weather", "天気予報")
		turn.Surface.ToolEnded("call_1", pipeline.OK, "15 °C")
		return echo(ctx, turn)
	}), nil)
	w.connected()
	said := slack.Said{User: aki, Channel: general, Text: "<@" + robot + "> 東京の天気は &lt;今日&gt;?"}
	ts := w.tell(said)
	m := w.answered("You said: 東京の天気は")
	turn := <-turns
	if want := (pipeline.Caller{
		Frontend: "slack", Tenant: "acme-inc", User: aki, Groups: []string{"leads"},
		Session: slack.Team + ":" + general + ":" + ts, Locale: "ja-JP", Client: "slack",
	}); turn.Caller.Session != want.Session || turn.Caller.Tenant != want.Tenant || turn.Caller.Locale != want.Locale ||
		turn.Caller.Frontend != want.Frontend || turn.Caller.Groups[0] != "leads" {
		t.Errorf("caller %+v, want %+v", turn.Caller, want)
	}
	if turn.Text != "東京の天気は <今日>?" || !turn.Shared {
		t.Errorf("turn %+v", turn)
	}
	if m.Thread != ts || len(m.Tasks) != 1 ||
		m.Tasks[0] != (slack.Task{ID: "call_1", Title: "天気予報", Status: "complete", Output: "15 °C"}) {
		t.Errorf("answer %+v", m)
	}
	if !strings.Contains(m.Blocks, "hako_feedback") || m.Sent["recipient_user_id"] != aki ||
		m.Sent["recipient_team_id"] != slack.Team {
		t.Errorf("answer %+v", m)
	}
	w.wait("an active session", func() bool { return w.slack.Session(general, ts) == "active" })
}
