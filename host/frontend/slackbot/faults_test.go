package slackbot_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
)

// rows returns the number of rows of a table.
func (w *world) rows(table string) (n int) {
	w.t.Helper()
	err := w.store.View(context.Background(),
		func(tx *sql.Tx) error { return tx.QueryRow(`SELECT COUNT(*) FROM ` + table).Scan(&n) })
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// waits is an engine that says nothing until its turn is stopped.
func waits(ctx context.Context, _ *chat.Turn) (*chat.Answer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestFormAtOnce: a modal is opened before Slack is asked for anything: a trigger is good for three seconds.
func TestFormAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan filled, 1)
	e := curious(t, elicitation.Request{Message: "Who?", Schema: []byte(nameForm)}, 10*time.Minute, result)
	for range 2 {
		w.start(e, nil)
	}
	w.wait("two connections", func() bool { return w.slack.Connections() == 2 })
	w.tell(mention("find them"))
	m, id := w.form()
	w.slack.Faults.Add(fault.Fault{Path: "/api/users.info", Delay: time.Minute})
	for n := range 2 { // also to the one that does not know the person
		w.click(ken, m, "hako_form", id)
		w.view(n + 1)
	}
	w.submit(ken, w.view(1), typed("Ken"))
	if f := <-result; f.err != nil {
		t.Error(f.err)
	}
}

// TestFormOfTheDead: a question of a process that died waits for no answer any more, and says so: nobody would read it.
func TestFormOfTheDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan filled, 1)
	e := curious(t, elicitation.Request{Message: "Who?", Schema: []byte(nameForm)}, 10*time.Minute, result)
	w.start(e, nil)
	w.connected()
	w.tell(mention("find them"))
	m, id := w.form()
	w.click(ken, m, "hako_form", id)
	v := w.view(1)
	w.wait("the message in the journal", func() bool { return w.rows(`slack_form WHERE ts <> ''`) == 1 })
	w.takeOver("")
	w.start(engine(echo), nil)
	if m = w.answered("No longer needed"); strings.Contains(m.Blocks, "hako_form") {
		t.Errorf("%+v", m)
	}
	if n := w.rows("slack_form"); n != 0 {
		t.Errorf("%d questions", n)
	}
	if got := w.submit(ken, v, typed("Ken")); !strings.Contains(got, "is no longer open") {
		t.Errorf("%s", got)
	}
	if f := <-result; f.err == nil {
		t.Errorf("%+v", f)
	}
}

// TestOptionByNumber: what was chosen is the option itself, also where its value is another one's title.
func TestOptionByNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan filled, 1)
	schema := `{"type":"object","required":["size"],"properties":{"size":{"type":"string","oneOf":[{"const":"a","title":"b"},{"const":"b","title":"a"}]}}}`
	w.start(curious(t, elicitation.Request{Message: "Which?", Schema: []byte(schema)}, 10*time.Minute, result), nil)
	w.connected()
	w.tell(mention("find them"))
	m, id := w.form()
	w.click(ken, m, "hako_form", id)
	w.submit(ken, w.view(1), chosen("0"))
	if f := <-result; f.answer.Content["size"] != "a" {
		t.Errorf("%+v", f)
	}
}

// TestTokenReplaced: a token that Slack refuses is read again while the bot runs, also where it is told over HTTP and
// never connects anew.
func TestTokenReplaced(t *testing.T) {
	t.Parallel()
	for _, overHTTP := range []bool{false, true} {
		w := newWorld(t)
		source := fileSource(t, botToken)
		with := func(o *slackbot.Options) { o.Workspaces[0].BotToken = source }
		if overHTTP {
			w.serve(engine(echo), with)
		} else {
			w.start(engine(echo), with)
			w.connected()
		}
		const next, other = "xoxb-made-up-second", "U0000HAKO2"
		w.slack.AddToken(next, other, "chat:write", "users:read", "usergroups:read")
		if err := os.WriteFile(source.File, []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		w.slack.Faults.Add(fault.Fault{Path: "/api/users.info", Times: 1, Body: `{"ok":false,"error":"token_revoked"}`})
		w.tell(mention("hello"))
		w.wait("signing in with the other token", func() bool { return strings.Contains(w.log.String(), "bot="+other) })
		if strings.Contains(w.log.String(), "made-up-second") {
			t.Error("the log holds the token")
		}
	}
}

// TestStopByStrangers: Slack's own stop button does no more for somebody who may not use the bot than the bot's.
func TestStopByStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun := make(chan struct{})
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		close(begun)
		return waits(ctx, turn)
	}), func(o *slackbot.Options) { o.Workspaces[0].Users = []string{ken} })
	w.connected()
	thread := w.tell(mention("work"))
	<-begun
	press := func(user string) {
		t.Helper()
		if err := w.slack.Stop(t.Context(), user, general, thread); err != nil {
			t.Fatal(err)
		}
	}
	press(aki)
	w.wait("a refusal", func() bool {
		return strings.Contains(w.log.String(),
			"a person who may not use the bot pressed stop")
	})
	press(ken)
	w.answered("Stopped by <@" + ken + ">")
}

// TestGone: an answer that broke off where the bot may not write any more is not tried again for ever.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun := make(chan struct{})
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		close(begun)
		return waits(ctx, turn)
	}), nil)
	w.connected()
	w.tell(mention("work"))
	<-begun
	w.takeOver("")
	w.slack.AddChannel(general, "general", aki, ken)
	w.start(engine(echo), nil)
	w.wait("an empty journal", func() bool { return w.rows("slack_turn") == 0 })
}

// TestThreadOfStrangers: people whom the app may not see are asked for once, not once for each of their messages, and
// apps not at all.
func TestThreadOfStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	turns := w.startEchoing(nil)
	thread := w.slack.Say(slack.Said{User: "U0000STRANGE", Channel: general, Text: "hi"})
	for i := range 20 {
		w.slack.Say(slack.Said{User: "U0000STRANGE", Channel: general, Thread: thread, Text: fmt.Sprint("line ", i)})
		w.slack.Say(slack.Said{Channel: general, Thread: thread, Text: fmt.Sprint("app ", i)})
	}
	said := mention("when?")
	said.Thread = thread
	w.tell(said)
	turn := <-turns
	if earlier := string(turn.Files[0].Data); !strings.Contains(earlier, "U0000STRANGE: line 19") ||
		!strings.Contains(earlier, "B: app 19") {
		t.Error(earlier)
	}
	if n := w.counts.get("request users.info refused"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestQuestionForgotten: what the journal knows of a question that nobody knows any more is taken out.
func TestQuestionForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options(engine(echo), nil)
	if err := slackbot.Forget(t.Context(), w.store); err != nil { // makes the tables
		t.Fatal(err)
	}
	err := w.store.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO slack_question (id, owner, workspace, channel, ts) VALUES ('gone', 'another', 'acme', '` + general + `', '1.1')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.start(engine(echo), nil)
	w.wait("an empty journal", func() bool { return w.rows("slack_question") == 0 })
}
