package slackbot_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
)

// TestRetire: a bot that another one takes the place of answers what it has begun, takes nothing more, and ends by
// itself.
func TestRetire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	first, err := slackbot.New(t.Context(),
		w.options(engine(func(ctx context.Context, _ *chat.Turn) (*chat.Answer, error) {
			close(begun)
			select {
			case <-finish:
				return &chat.Answer{Text: "from the first"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}), nil))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- first.Run(t.Context()) }()
	w.connected()
	w.tell(mention("one"))
	<-begun
	second := w.start(engine(echo), nil)
	first.Retire(second)
	w.wait("hand-over", func() bool {
		return strings.Count(w.log.String(), "connected to Slack in Socket Mode") == 2 && w.slack.Connections() == 1
	})
	w.tell(mention("two"))
	w.answered("You said: two")
	close(finish)
	w.answered("from the first")
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-testwait.Context(t).Done():
		t.Error("the first bot does not end")
	}
}
