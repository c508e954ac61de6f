package slackbot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/pipeline"
)

// TestBelow: what follows a question stands below it, and the card of the call that was asked about ends where it
// began.
func TestBelow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan error, 1)
	ask := w.asking(result)
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.Text("I ask.")
		if _, err := ask(ctx, turn); err != nil {
			return nil, err
		}
		turn.Surface.Text("It is sent.")
		return &chat.Answer{Text: "It is sent."}, nil
	}), nil)
	w.connected()
	w.tell(mention("tell them"))
	question, id := w.question()
	w.click(ken, question, "hako_approve", id)
	after := w.answered("It is sent.")
	before := w.answered("I ask.")
	if before.TS > question.TS || after.TS < question.TS || len(after.Tasks) != 0 {
		t.Errorf("before %s, question %s, after %s", before.TS, question.TS, after.TS)
	}
	if len(before.Tasks) != 1 || before.Tasks[0].Status != "complete" || before.Tasks[0].Output != "" ||
		before.Blocks != "" {
		t.Errorf("%+v", before)
	}
}

// TestCardsGoOn: a message that ends before a call does leaves no card that is under way for ever, streamed or not.
func TestCardsGoOn(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]fault.Fault{
		"streamed": nil,
		"updated": {{Path: "/api/chat.startStream",
			Body: `{"ok":false,"error":"method_not_supported_for_channel_type"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, f := range faults {
				w.slack.Faults.Add(f)
			}
			w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
				turn.Surface.ToolStarted("1", "slow", "Slow tool")
				w.wait("the card", func() bool { return len(w.answers()) == 1 })
				turn.Surface.Text(strings.Repeat("much text\n", 1500))
				w.wait("another message", func() bool { return len(w.answers()) > 1 })
				turn.Surface.ToolEnded("1", pipeline.OK, "")
				return &chat.Answer{Text: "x", Number: 2}, nil
			}), nil)
			w.connected()
			w.tell(mention("go"))
			w.wait("an end", func() bool {
				a := w.answers()
				return len(a) > 0 && strings.Contains(a[len(a)-1].Blocks+fmt.Sprint(a[len(a)-1].Sent), "hako_feedback")
			})
			list := w.answers()
			first, last := list[0], list[len(list)-1]
			if name == "updated" {
				// The card is above the text if the last message began before the call ended, or else below.
				if !strings.HasPrefix(first.Text, ":white_check_mark: Slow tool: continued below") ||
					!strings.Contains(last.Text+"\n", ":white_check_mark: Slow tool\n") {
					t.Errorf("%.80q, %q", first.Text, last.Text)
				}
				for _, m := range list {
					if strings.Contains(m.Text, ":hourglass_flowing_sand:") {
						t.Errorf("a card is under way for ever: %.80q", m.Text)
					}
				}
				return
			}
			if first.Tasks[0].Status != "complete" || first.Tasks[0].Output != "continued below" {
				t.Errorf("the first message has %+v", first.Tasks)
			}
			if len(last.Tasks) != 1 || last.Tasks[0].Status != "complete" || last.Tasks[0].Output != "" {
				t.Errorf("the last message has %+v", last.Tasks)
			}
		})
	}
}

// TestCardsOfTheDead: who ends the answer of a process that died closes its cards too.
func TestCardsOfTheDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.ToolStarted("1", "done", "Done")
		turn.Surface.ToolEnded("1", pipeline.OK, "")
		turn.Surface.ToolStarted("2", "slow", "Slow")
		<-ctx.Done()
		return nil, ctx.Err()
	}), nil)
	w.connected()
	w.tell(mention("go"))
	w.wait("the cards", func() bool { a := w.answers(); return len(a) == 1 && len(a[0].Tasks) == 2 })
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.stopStream", Drop: true})
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.appendStream", Drop: true})
	w.stop()
	w.slack.Faults.Clear()
	w.start(engine(echo), nil)
	m := w.answered("interrupted in the middle")
	if m.Tasks[0].Status != "complete" || m.Tasks[1].Status != "error" || m.Tasks[1].Output != "Stopped." {
		t.Errorf("%+v", m.Tasks)
	}
}

// TestEndedOnce: a process that dies after the last word of an answer, and before it could note that, leaves an answer
// that is whole: nobody says that it broke off.
func TestEndedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.stopStream", Drop: true, After: true})
	w.start(engine(echo), nil)
	w.connected()
	w.tell(mention("hello"))
	w.answered("You said: hello")
	w.stop()
	w.slack.Faults.Clear()
	w.start(engine(echo), nil)
	w.connected()
	w.tell(mention("again"))
	w.answered("You said: again")
	if n := len(w.answers()); n != 2 {
		t.Errorf("%d messages: %+v", n, w.answers())
	}
}

// TestEndedByTheNext: a process that dies when all was said, and before Slack took the end, leaves an answer that is
// whole: the next one ends it as it is.
func TestEndedByTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.stopStream", Drop: true})
	w.start(engine(echo), nil)
	w.connected()
	w.tell(mention("hello"))
	w.wait("a warning", func() bool {
		return strings.Contains(w.log.String(),
			"a streamed message could not be ended")
	})
	w.stop()
	w.slack.Faults.Clear()
	w.start(engine(echo), nil)
	if m := w.answered("You said: hello"); len(w.answers()) != 1 || strings.Contains(m.Text, "interrupted") {
		t.Errorf("%+v", w.answers())
	}
}

// TestEndRefused: an end that Slack refuses for a reason that passes is tried again, and not taken for done.
func TestEndRefused(t *testing.T) {
	slackbot.LookEvery(t, 50*time.Millisecond)
	w := newWorld(t)
	w.start(engine(echo), nil)
	w.connected()
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.stopStream", Times: 2,
		Body: `{"ok":false,"error":"internal_error"}`})
	w.tell(mention("hello"))
	if m := w.answered("You said: hello"); len(w.answers()) != 1 || strings.Contains(m.Text, "interrupted") {
		t.Errorf("%+v", w.answers())
	}
}

// TestEndedLater: an answer whose end Slack did not take is ended when Slack is back, without a restart.
func TestEndedLater(t *testing.T) {
	slackbot.LookEvery(t, 50*time.Millisecond)
	w := newWorld(t)
	w.start(engine(echo), nil)
	w.connected()
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.stopStream", Drop: true})
	thread := w.tell(mention("hello"))
	w.wait("a warning", func() bool {
		return strings.Contains(w.log.String(),
			"a streamed message could not be ended")
	})
	w.slack.Faults.Clear()
	w.answered("You said: hello")
	w.wait("an active session", func() bool { return w.slack.Session(general, thread) == "active" })
}

// TestRevokedMeanwhile: while Slack refuses the token nothing is lost, and nobody is left without a word once it takes
// a token again.
func TestRevokedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(echo), nil)
	w.connected()
	w.slack.Faults.Add(fault.Fault{Path: "/api/**", Body: `{"ok":false,"error":"token_revoked"}`})
	thread := w.tell(mention("hello"))
	w.wait("a refusal", func() bool { return w.counts.get("request chat.postMessage auth") > 0 })
	w.slack.Faults.Clear()
	if m := w.answered("there is no answer"); m.Thread != thread {
		t.Errorf("%+v", m)
	}
	w.tell(mention("again"))
	w.answered("You said: again")
}
