package slackbot_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
)

// People of other workspaces, and the channel that they share with the bot's.
const (
	guest     = "U0000000P1" // of a partner
	stranger  = "U0000000X1" // of another workspace
	colleague = "U0000000E1" // of another workspace of the organisation, and a member of this one
	cousin    = "U0000000E2" // of another workspace of the organisation alone
	ghost     = "U0000000H1" // of whom users.info does not tell
	shared    = "C0000000S1"
)

// connected is a world with a channel that is shared with other workspaces, of which T0PARTNER is a partner.
func connected(t *testing.T, e slackbot.Engine) *world {
	t.Helper()
	w := newWorld(t)
	w.slack.AddUser(slack.User{ID: guest, Name: "guest", Team: "T0PARTNER"})
	w.slack.AddUser(slack.User{ID: stranger, Name: "stranger", Team: "T9"})
	w.slack.AddUser(slack.User{ID: colleague, Name: "colleague", Team: "T5", Enterprise: "E1",
		Teams: []string{"T5", slack.Team}})
	w.slack.AddUser(slack.User{ID: cousin, Name: "cousin", Team: "T5", Enterprise: "E1", Teams: []string{"T5"}})
	w.slack.AddUser(slack.User{ID: ghost, Name: "ghost", Hidden: true})
	w.slack.AddChannel(shared, "shared", robot, ken, guest, stranger, colleague, cousin, ghost)
	w.start(e, func(o *slackbot.Options) { o.Workspaces[0].Partners = map[string]string{"T0PARTNER": "guests"} })
	w.connected()
	return w
}

// whispered waits for a message that only user sees.
func (w *world) whispered(user, text string) {
	w.t.Helper()
	w.wait("a word for "+user+" with "+text, func() bool {
		for _, m := range w.answers() {
			if m.Ephemeral == user && strings.Contains(m.Text, text) {
				return true
			}
		}
		return false
	})
}

func TestHostileSlackConnect(t *testing.T) {
	t.Parallel()
	t.Run("messages", func(t *testing.T) {
		t.Parallel()
		w := connected(t, engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
			text := turn.Text + " for " + turn.Caller.Tenant + "."
			turn.Surface.Text(text)
			return &chat.Answer{Text: text, Number: 2}, nil
		}))
		for name, test := range map[string]struct {
			user, channel, tenant, refusal string
		}{
			"a member":                           {ken, shared, "acme-inc", ""},
			"a partner":                          {guest, shared, "guests", ""},
			"a partner, whom the event hides":    {guest, random, "guests", ""},
			"a stranger":                         {stranger, shared, "", "T9"},
			"a stranger, whom the event hides":   {stranger, random, "", "T9"},
			"a colleague":                        {colleague, shared, "acme-inc", ""},
			"a colleague, whom the event hides":  {colleague, random, "acme-inc", ""},
			"of the organisation alone":          {cousin, shared, "", "T5"},
			"of the organisation, hidden":        {cousin, random, "", "T5"},
			"nobody tells":                       {ghost, random, "", "users:read"},
			"the event tells, users.info not":    {ghost, shared, "acme-inc", ""},
			"somebody whom Slack does not know":  {"U0000000N1", random, "", "users:read"},
			"a stranger with a partner's letter": {"U0000000N2", random, "", "users:read"},
		} {
			t.Run(name, func(t *testing.T) {
				w.t = t
				w.tell(slack.Said{User: test.user, Channel: test.channel, Text: "<@" + robot + "> " + name})
				if test.refusal == "" {
					w.answered(name + " for " + test.tenant + ".")
					return
				}
				w.whispered(test.user, test.refusal)
				if test.refusal != "users:read" {
					w.whispered(test.user, "slack.workspaces[].partners")
				}
			})
		}
	})
	t.Run("a direct message", func(t *testing.T) {
		t.Parallel()
		w := connected(t, engine(echo))
		w.slack.AddDM("D0000000X1", stranger, robot)
		w.tell(slack.Said{User: stranger, Channel: "D0000000X1", Text: "hello"})
		w.answered("People of your workspace (T9)")
	})
	t.Run("the question of a partner", func(t *testing.T) {
		t.Parallel()
		result := make(chan error, 1)
		w := newPartnersQuestion(t, result)
		m, id := w.question()
		for _, user := range []string{stranger, cousin} {
			w.click(user, m, "hako_approve", id)
			w.whispered(user, "slack.workspaces[].partners")
		}
		w.click(ken, m, "hako_approve", id) // of another tenant
		w.whispered(ken, "may not answer")
		w.click(guest, m, "hako_approve", id)
		if err := <-result; err != nil {
			t.Errorf("the call: %v", err)
		}
	})
	t.Run("stop and feedback", func(t *testing.T) {
		t.Parallel()
		stopped := make(chan struct{})
		w := connected(t, engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
			turn.Surface.Text("I begin with what is long.")
			<-ctx.Done()
			close(stopped)
			return nil, ctx.Err()
		}))
		said := mention("work")
		said.Channel = shared
		thread := w.tell(said)
		w.wait("the beginning", func() bool { return len(w.answers()) > 0 })
		at := slack.Message{Channel: shared, Thread: thread}
		for i, user := range []string{stranger, guest} {
			text := []string{"slack.workspaces[].partners", "may not use this bot here"}[i]
			w.click(user, at, "hako_stop", slack.Team+":"+shared+":"+thread)
			w.whispered(user, text)
			if err := w.slack.Stop(t.Context(), user, shared, thread); err != nil {
				t.Fatal(err)
			}
			w.wait("both refusals", func() bool { return w.count(user, text) == 2 })
		}
		w.click(stranger, at, "hako_feedback", "true:2")
		w.wait("a third refusal", func() bool { return w.count(stranger, "slack.workspaces[].partners") == 3 })
		select {
		case <-stopped:
			t.Error("somebody of another tenant stopped it")
		case feedback := <-w.rated:
			t.Error(feedback)
		default:
		}
		w.click(colleague, at, "hako_stop", slack.Team+":"+shared+":"+thread)
		<-stopped
	})
	t.Run("a form", func(t *testing.T) {
		t.Parallel()
		result := make(chan filled, 1)
		w := connected(t, curious(t, elicitation.Request{Mode: elicitation.ModeForm, Message: "Who?",
			Schema: []byte(nameForm)}, time.Minute, result))
		w.tell(slack.Said{User: guest, Channel: shared, Text: "<@" + robot + "> find"})
		m, id := w.form()
		w.click(stranger, m, "hako_form", id)
		w.whispered(stranger, "slack.workspaces[].partners")
		w.click(guest, m, "hako_form", id)
		view := w.view(1)
		if answer := w.submit(stranger, view, typed("Eve")); !strings.Contains(answer, "partners") {
			t.Errorf("a stranger's modal: %s", answer)
		}
		if answer := w.submit(guest, view, typed("Bob")); strings.Contains(answer, "errors") {
			t.Errorf("the partner's modal: %s", answer)
		}
		if got := <-result; got.err != nil || got.answer.Content["name"] != "Bob" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("slash commands", func(t *testing.T) {
		t.Parallel()
		w := connected(t, engine(echo))
		for user, want := range map[string]string{
			ken: "/hako stop", guest: "/hako stop", stranger: "slack.workspaces[].partners",
			cousin: "slack.workspaces[].partners", ghost: "users:read",
		} {
			if answer, err := w.slack.Command(t.Context(), user, shared, "/hako", "help"); err != nil ||
				!strings.Contains(answer, want) {
				t.Errorf("%s: %s, %v", user, answer, err)
			}
		}
		answer, err := w.slack.Deliver(t.Context(), slack.KindCommand,
			map[string]string{"team_id": "T9", "user_id": stranger, "channel_id": shared,
				"command": "/hako", "text": "tools"}, 0)
		if err != nil || !strings.Contains(string(answer), "T9") {
			t.Errorf("from another workspace: %s, %v", answer, err)
		}
	})
}

// newPartnersQuestion is a world in which a call of a partner's waits for a yes.
func newPartnersQuestion(t *testing.T, result chan error) *world {
	t.Helper()
	var w *world
	w = connected(t, engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer,
		error) {
		return w.asking(result)(ctx, turn)
	}))
	w.tell(slack.Said{User: guest, Channel: shared, Text: "<@" + robot + "> tell them"})
	return w
}

// count returns how often a text was shown to a person.
func (w *world) count(user, text string) int {
	n := 0
	for _, m := range w.answers() {
		if m.Ephemeral == user && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}
