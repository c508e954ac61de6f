package slackbot_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/govern/approval"
)

// TestCommandElsewhere: /hako status and stop see what another replica answers.
func TestCommandElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun := make(chan struct{})
	waits := engine(func(ctx context.Context, _ *chat.Turn) (*chat.Answer, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	w.serve(waits, nil)
	w.tell(mention("work"))
	<-begun
	w.serve(waits, nil) // which is told from now on
	for _, step := range []struct{ user, channel, text, want string }{
		{aki, general, "status", "作成中の回答: 1 件"},
		{ken, random, "status", "Nothing is being written here"},
		{aki, general, "stop", "停止するものはありません"}, // it is ken's
		{ken, random, "stop", "nothing to stop"},
		{ken, general, "stop", "Stopping 1"},
	} {
		got, err := w.slack.Command(t.Context(), step.user, step.channel, "/hako", step.text)
		if err != nil || !strings.Contains(got, step.want) {
			t.Errorf("%s: %s, %v, want %s", step.text, got, err, step.want)
		}
	}
	w.answered("Stopped by <@" + ken + ">")
}

// TestLostLock: a process that the store takes for dead says no more, for another has ended its answer; and goes on
// with what is new.
func TestLostLock(t *testing.T) {
	slackbot.LookEvery(t, 50*time.Millisecond)
	w := newWorld(t)
	begun := make(chan struct{})
	b := w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.Text("I begin " + turn.Text)
		if turn.Text == "new" {
			return &chat.Answer{Text: "x"}, nil
		}
		close(begun)
		<-ctx.Done()
		turn.Surface.Text("and say more")
		return nil, ctx.Err()
	}), func(o *slackbot.Options) { o.Turns = 1 })
	w.connected()
	w.tell(mention("old"))
	<-begun
	w.wait("the beginning", func() bool { return len(w.answers()) == 1 })
	w.tell(mention("new")) // waits
	b.LoseLock()
	old := w.answered("interrupted in the middle")
	w.answered("I begin new")
	if strings.Contains(old.Text, "say more") || strings.Count(old.Text, "interrupted") != 1 || len(w.answers()) != 2 {
		t.Errorf("%+v", w.answers())
	}
}

// takeOver makes turns those of another process, as one does that has seen this one's lock lost, and returns how many.
func (w *world) takeOver(which string) (n int64) {
	w.t.Helper()
	err := w.store.Update(context.Background(), func(tx *sql.Tx) error {
		result, err := tx.Exec(`UPDATE slack_turn SET owner = 'another' WHERE owner <> 'another'` + which)
		if err == nil {
			n, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return n
}

// TestTakenOver: an answer that another process ends, though this one has not noticed yet, is not ended here as well;
// nor does it go on in another message once it was ended there.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		w := newWorld(t)
		w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
			turn.Surface.Text("I begin")
			w.wait("the message in the journal", func() bool { return w.takeOver(` AND answer <> ''`) == 1 })
			if ended {
				w.slack.Faults.Add(fault.Fault{Path: "/api/chat.appendStream",
					Body: `{"ok":false,"error":"message_not_in_streaming_state"}`})
			}
			turn.Surface.Text(" and end")
			return &chat.Answer{Text: "I begin and end"}, nil
		}), nil)
		w.connected()
		w.tell(mention("go"))
		w.wait("the beginning", func() bool { return len(w.answers()) == 1 })
		w.stop()
		if all := w.answers(); len(all) != 1 || !all[0].Streaming || strings.Contains(all[0].Text, "and end") == ended {
			t.Errorf("ended elsewhere %t: %+v", ended, all)
		}
	}
}

// TestTakenOverUnseen: a message that the other process does not know of is ended here, and does not pass for an
// answer.
func TestTakenOverUnseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		if w.takeOver("") != 1 {
			t.Error("there is no turn")
		}
		return echo(t.Context(), turn)
	}), nil)
	w.connected()
	w.tell(mention("hello"))
	w.answered("You said: hello\n\nhako was interrupted in the middle")
}

// TestWorkspaces: two workspaces are two tenants. Somebody with the same ID in the other one is somebody else.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	other.slack.TeamID = "T0000000002"
	callers := make(chan *chat.Turn, 2)
	result := make(chan error, 1)
	ask := w.asking(result)
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		callers <- turn
		if turn.Text == "tell them" {
			return ask(ctx, turn)
		}
		return echo(ctx, turn)
	}), func(o *slackbot.Options) {
		second := o.Workspaces[0]
		second.Name, second.Tenant, second.APIURL, second.AppToken = "globex", "globex-inc", other.url+"/api/",
			fileSource(t, appToken)
		o.Workspaces = append(o.Workspaces, second)
	})
	w.connected()
	other.connected()
	other.tell(mention("hello"))
	other.answered("You said: hello")
	theirs := <-callers
	w.tell(mention("tell them"))
	m, id := w.question()
	ours := <-callers
	if theirs.Caller.Tenant != "globex-inc" || ours.Caller.Tenant != "acme-inc" ||
		theirs.Caller.User != ours.Caller.User {
		t.Errorf("%+v and %+v", theirs.Caller, ours.Caller)
	}
	if len(w.answers()) == 0 || strings.Contains(theirs.Conversation, slack.Team+":") {
		t.Errorf("conversation %s", theirs.Conversation)
	}
	other.click(ken, slack.Message{Channel: general, TS: m.TS}, "hako_approve", id)
	other.answered("You may not answer this question.")
	w.click(ken, m, "hako_approve", id)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if _, _, err := w.approvals.Outcome(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// TestForeignEvents: an event of a workspace that the app is not configured for is not answered, nor can its people
// press buttons.
func TestForeignEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(w.asking(make(chan error, 1)), nil)
	w.connected()
	w.tell(mention("tell them"))
	m, id := w.question()
	w.slack.TeamID = "T0000000009"
	w.tell(mention("hello"))
	w.click(ken, m, "hako_approve", id)
	w.wait("two refusals", func() bool {
		return w.counts.get("event other forbidden") == 1 && w.counts.get("event action forbidden") == 1
	})
	if outcome, _, err := w.approvals.Outcome(t.Context(), id); outcome != approval.Pending || err != nil {
		t.Errorf("%s, %v", outcome, err)
	}
}
