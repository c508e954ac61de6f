package slackbot_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
)

// asking is an engine whose one tool call wants a yes, of the caller or of approvers: aki or groups.
func (w *world) asking(result chan<- error, approvers ...string) engine {
	may := policy.People{Groups: approvers}
	if slices.Contains(approvers, aki) {
		may = policy.People{Users: approvers}
	}
	return w.askingAbout(result, approval.Question{Arguments: json.RawMessage(`{"text":"<!channel> hello"}`),
		Rule: "ask before writing", Destructive: true, Approvers: may})
}

// askingAbout is asking with parts of the question.
func (w *world) askingAbout(result chan<- error, q approval.Question) engine {
	return func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.ToolStarted("1", "send_slack_dm", "Send a message")
		prompter := turn.Surface.Prompter(chat.ToolCall{ID: "1", Name: "send_slack_dm"})
		c := turn.Caller
		prompter.By = approval.Person{Tenant: c.Tenant, User: c.User, Groups: c.Groups}
		asked := q
		asked.Caller = approval.Caller{Frontend: c.Frontend, Tenant: c.Tenant, User: c.User, Session: c.Session}
		asked.Tool, asked.Plugin = "send_slack_dm", "slack"
		_, err := w.approvals.Ask(ctx, &asked, prompter)
		outcome := pipeline.OK
		if err != nil {
			outcome = pipeline.NotAllowed
		}
		turn.Surface.ToolEnded("1", outcome, "")
		result <- err
		return &chat.Answer{Text: "done"}, ctx.Err()
	}
}

// question waits for a message with buttons, and returns it and the question's ID.
func (w *world) question() (slack.Message, string) {
	w.t.Helper()
	m := w.answered("hako_approve")
	waiting, err := w.approvals.Waiting(w.t.Context(), nil)
	if err != nil || len(waiting) != 1 {
		w.t.Fatalf("waiting: %v, %v", waiting, err)
	}
	return m, waiting[0].ID
}

func (w *world) click(user string, m slack.Message, action, value string) {
	w.t.Helper()
	if err := w.slack.Click(w.t.Context(), user, m, action, value); err != nil {
		w.t.Fatal(err)
	}
}

func TestApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan error, 1)
	w.start(w.asking(result), nil)
	w.connected()
	thread := w.tell(mention("tell them"))
	m, id := w.question()
	if m.Thread != thread || !strings.Contains(m.Blocks, "send_slack_dm") || strings.Contains(m.Text, "<!channel>") {
		t.Errorf("%+v", m)
	}
	w.wait("a suspended session", func() bool { return w.slack.Session(general, thread) == "suspended" })
	w.click(aki, m, "hako_approve", id)
	if told := w.answered("権限がありません"); told.Ephemeral != aki || told.Thread != thread {
		t.Errorf("%+v", told)
	}
	w.click(ken, m, "hako_approve", id)
	if err := <-result; err != nil {
		t.Errorf("the call: %v", err)
	}
	m = w.answered("Approved by <@" + ken + ">")
	if strings.Contains(m.Blocks, "hako_deny") {
		t.Error("the buttons are still there")
	}
	w.click(ken, m, "hako_deny", id)
	w.answered("is no longer open")
}

func TestDeny(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan error, 1)
	w.start(w.asking(result, "leads"), nil) // four eyes: ken asks, one of the leads answers
	w.connected()
	w.tell(mention("tell them"))
	m, id := w.question()
	w.click(ken, m, "hako_approve", id)
	w.answered("may not answer")
	w.click(aki, m, "hako_deny", id)
	var refused *approval.RefusedError
	if err := <-result; !errors.As(err, &refused) || refused.By != aki {
		t.Errorf("the call: %v", err)
	}
	w.answered("Denied by <@" + aki + ">")
}

// TestQuestionsReachApprovers: those who may answer are mentioned, others read who may, everybody can see the exact
// arguments, and an answered question is one line.
func TestQuestionsReachApprovers(t *testing.T) {
	t.Parallel()
	for name, approver := range map[string]string{"a group": "leads", "a person": aki} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			result := make(chan error, 1)
			w.start(w.asking(result, approver), nil)
			w.connected()
			thread := w.tell(mention("tell them"))
			m, id := w.question()
			if !strings.Contains(m.Blocks, "Waits for <@"+aki+">") && !strings.Contains(m.Blocks, "<@"+aki+"> の回答") {
				t.Errorf("nobody is mentioned: %s", m.Blocks)
			}
			if blocks := strings.ReplaceAll(m.Blocks, "<@"+ken+">", ""); strings.Contains(blocks, ken) {
				t.Errorf("an ID instead of a name: %s", m.Blocks)
			}
			w.click(ken, m, "hako_exact", id)
			w.wait("the exact arguments", func() bool {
				views := w.slack.Views()
				return len(views) == 1 && strings.Contains(views[0].Raw, `"text\": \"`)
			})
			w.click(ken, m, "hako_approve", id)
			want := "It may be answered by: <@" + aki + ">"
			if approver != aki {
				want = "It may be answered by: the group leads"
			}
			w.answered(want)
			direct := 0
			for _, other := range w.answers() {
				if other.Channel == dm && strings.Contains(other.Blocks, "hako_approve") {
					direct++
				}
			}
			if want := map[bool]int{true: 1, false: 0}[approver == aki]; direct != want {
				t.Errorf("%d direct messages, not %d", direct, want)
			}
			w.click(aki, m, "hako_approve", id)
			if err := <-result; err != nil {
				t.Error(err)
			}
			folded := w.answered("Approved by <@" + aki + ">")
			if folded.Thread == thread && (strings.Contains(folded.Blocks, "rich_text") ||
				strings.Contains(folded.Blocks, "hako_exact")) {
				t.Errorf("the answered question is not folded: %s", folded.Blocks)
			}
		})
	}
}

// TestNamesInQuestions: arguments that are IDs of people and channels have their names beside the IDs, without what cannot be
// seen; those that nobody knows stay as they are.
func TestNamesInQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.AddToken(botToken, robot, "chat:write", "im:write", "users:read", "usergroups:read", "channels:history",
		"channels:read")
	w.slack.AddUser(slack.User{ID: aki, Name: "見本\u3164 あき*<!channel>", Locale: "ja-JP"})
	result := make(chan error, 1)
	w.start(w.askingAbout(result, approval.Question{Arguments: json.RawMessage(`{"user_id":"` + aki + `","channel":"` +
		random + `","others":["` + aki + `","U0000000X9"],"text":"to ` + aki + `"}`)}), nil)
	w.connected()
	w.tell(mention("tell them"))
	m, id := w.question()
	for _, want := range []string{`"@見本 あき channel (` + aki + `)"`, `"#random (` + random + `)"`,
		`"@見本 あき channel (` + aki + `), U0000000X9"`, `"to ` + aki + `"`} {
		if !strings.Contains(m.Blocks, want) {
			t.Errorf("%s is not in %s", want, m.Blocks)
		}
	}
	w.click(ken, m, "hako_exact", id)
	w.wait("the exact arguments", func() bool {
		views := w.slack.Views()
		return len(views) == 1 && strings.Contains(views[0].Raw, `user_id\": \"`+aki) && strings.Contains(views[0].Raw, random)
	})
	w.click(ken, m, "hako_approve", id)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// TestWithdrawn: a question ends with its run, and when nobody answers.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan error, 1)
	w.start(w.asking(result), nil)
	w.connected()
	thread := w.tell(mention("tell them"))
	m, id := w.question()
	w.click(ken, slack.Message{Channel: general, Thread: thread}, "hako_stop", slack.Team+":"+general+":"+thread)
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
	w.answered("No longer needed")
	w.click(ken, m, "hako_approve", id)
	w.answered("is no longer open")
	if outcome, _, err := w.approvals.Outcome(t.Context(), id); err != nil || outcome != approval.Withdrawn {
		t.Errorf("%s, %v", outcome, err)
	}
}

// TestPlaces: questions go to the approvers' direct messages, and those of other frontends to a channel.
func TestPlaces(t *testing.T) {
	t.Parallel()
	t.Run("direct messages", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		result := make(chan error, 1)
		w.start(w.asking(result, "leads"),
			func(o *slackbot.Options) { o.Workspaces[0].Approvals = slackbot.ApproveInDM })
		w.connected()
		w.tell(mention("tell them"))
		m, id := w.question()
		if m.Channel != dm || !strings.Contains(m.Blocks, "許可") {
			t.Errorf("%+v", m)
		}
		w.click(aki, m, "hako_approve", id)
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	t.Run("a channel, other frontends, a restart", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		inOffice := func(o *slackbot.Options) { o.Workspaces[0].Approvals = office }
		w.start(engine(echo), inOffice)
		w.connected()
		q := &approval.Question{Caller: approval.Caller{Frontend: "mcp-http", Tenant: "acme-inc", User: "somebody"},
			Tool: "x", Approvers: policy.People{Groups: []string{"leads"}}, Rule: "r"}
		asked := make(chan error, 1)
		go func() { _, err := w.approvals.Ask(context.Background(), q, approval.Prompter{}); asked <- err }()
		m, id := w.question()
		if m.Channel != office {
			t.Errorf("%+v", m)
		}
		old := w.approvals
		w.stop()
		w.start(engine(echo), inOffice)
		w.connected()
		w.click(aki, m, "hako_approve", id)
		w.answered("Approved by <@" + aki + ">")
		if err := <-asked; err != nil {
			t.Errorf("%v of %v", err, old)
		}
		other := &approval.Question{Caller: approval.Caller{Frontend: "mcp-http", Tenant: "other", User: "somebody"},
			Tool: "x", Approvers: policy.People{Groups: []string{"leads"}}, Rule: "r"}
		if _, err := w.approvals.Ask(t.Context(), other, approval.Prompter{}); !errors.Is(err, approval.ErrUnreachable) {
			t.Errorf("a question of another tenant: %v", err)
		}
	})
}

// TestExpired: a question that nobody answers says so.
func TestExpired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := make(chan error, 1)
	w.start(w.asking(result), func(o *slackbot.Options) {
		var err error
		if w.approvals, err = approval.New(t.Context(), w.store, &approval.Options{Timeout: 300 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		o.Approvals = w.approvals
	})
	w.connected()
	w.tell(mention("tell them"))
	if err := <-result; !errors.Is(err, approval.ErrExpired) {
		t.Errorf("the call: %v", err)
	}
	w.answered("Nobody answered in time")
}

func TestCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(echo), func(o *slackbot.Options) {
		o.Usage = func(_ context.Context, c pipeline.Caller) (string, error) { return c.User + " <3 tokens>", nil }
	})
	w.connected()
	for _, test := range []struct{ user, text, want string }{
		{ken, "tools", "no tool that you may use"},
		{ken, "status", "Nothing is being written"},
		{ken, "stop", "nothing to stop"},
		{ken, "usage", ken + " &lt;3 tokens&gt;"},
		{ken, "", "lists the tools"},
		{aki, "status", "作成中の回答はありません"},
	} {
		raw, err := w.slack.Command(t.Context(), test.user, general, "/hako", test.text)
		var answer struct{ Text, ResponseType string }
		if err != nil || json.Unmarshal([]byte(raw), &answer) != nil || !strings.Contains(answer.Text, test.want) ||
			!strings.Contains(raw, "ephemeral") {
			t.Errorf("%s: %s, %v", test.text, raw, err)
		}
	}
}

// TestManyTools: a list of tools that is too long for a message ends with a whole line, and says how many are left out.
func TestManyTools(t *testing.T) {
	t.Parallel()
	tool := &catalog.Tool{Name: "get_weather", Spec: &manifest.Tool{Title: manifest.Text{"en": "Wind & <rain>"}}}
	w := newWorld(t)
	w.start(engine(echo), func(o *slackbot.Options) {
		o.Tools = func(pipeline.Caller) []*catalog.Tool { return slices.Repeat([]*catalog.Tool{tool}, 200) }
	})
	w.connected()
	raw, err := w.slack.Command(t.Context(), ken, general, "/hako", "tools")
	var answer struct{ Text string }
	if err != nil || json.Unmarshal([]byte(raw), &answer) != nil {
		t.Fatalf("%s, %v", raw, err)
	}
	lines := strings.Split(answer.Text, "\n")
	listed := len(lines) - 2
	for _, line := range lines[1 : listed+1] {
		if line != "• `get_weather` Wind &amp; &lt;rain&gt;" {
			t.Errorf("a line is cut: %q", line)
		}
	}
	if want := fmt.Sprintf("… and %d more", 200-listed); lines[listed+1] != want || len(answer.Text) > 3000 {
		t.Errorf("%d bytes end with %q, want %q", len(answer.Text), lines[listed+1], want)
	}
}

// TestQuestionsHoldNobodyUp: turns that wait for people leave room for others.
func TestQuestionsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := w.asking(make(chan error, 1))
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		if turn.Text == "tell them" {
			return ask(ctx, turn)
		}
		return echo(ctx, turn)
	}), func(o *slackbot.Options) { o.Turns = 1 })
	w.connected()
	w.tell(mention("tell them"))
	w.question()
	w.tell(mention("hello"))
	w.answered("You said: hello")
}

// TestQuestionsOfAnyArguments: Slack takes the question and the exact arguments, and texts mention nobody.
func TestQuestionsOfAnyArguments(t *testing.T) {
	t.Parallel()
	many := make(map[string]string)
	for i := range 100 {
		many[fmt.Sprint(strings.Repeat("😀", 80), i)] = strings.Repeat("あ", 100)
	}
	encoded, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	table := `[` + strings.TrimSuffix(strings.Repeat(`{"a":"<!channel>","b":"`+strings.Repeat("い", 200)+`"},`, 30), ",") + `]`
	for name, arguments := range map[string]string{
		"several lines":        `{"note":"two\nlines"}`,
		"a table":              `{"rows":` + table + `}`,
		"names of emoji":       string(encoded),
		"many tables":          `{` + strings.Repeat(`"r":`+table+`,`, 40) + `"last":1}`,
		"a name that is empty": `{"":"","b":[""],"c":{"":{}}}`,
		"a lone text":          `"<!channel>"`,
		"1 MB":                 `{"a":"` + strings.Repeat("<", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start(w.askingAbout(make(chan error, 1), approval.Question{Arguments: json.RawMessage(arguments), Detail: strings.Repeat("&\n", 500),
				Reason: manifest.Text{"en": strings.Repeat("<!channel>&", 100)}, Rule: strings.Repeat("&", 200), OpenWorld: true, Destructive: true,
				Approvers: policy.People{Users: []string{"U10", "U100", "<!here>", strings.Repeat("&", 1000), aki}}}), nil)
			w.connected()
			w.tell(mention("tell them"))
			m, id := w.question()
			if len(m.Blocks) > 20_000 || strings.Contains(m.Text, "<!") {
				t.Errorf("%d bytes, %.300s", len(m.Blocks), m.Text)
			}
			var blocks []struct {
				Type     string
				Elements []struct{ Text json.RawMessage }
			}
			if err := json.Unmarshal([]byte(m.Blocks), &blocks); err != nil {
				t.Fatal(err)
			}
			facts := ""
			for _, block := range blocks {
				if block.Type == "context" {
					facts = string(block.Elements[0].Text)
				}
			}
			if err := json.Unmarshal([]byte(facts), &facts); err != nil || !strings.Contains(facts, "<@U10>, <@U100>, ") ||
				!strings.Contains(facts, "<!date^") || strings.Contains(facts, "<!channel>") || strings.Contains(facts, "<!here>") {
				t.Errorf("%v: %s", err, facts)
			}
			w.click(aki, m, "hako_exact", id)
			w.wait("the exact arguments", func() bool { return len(w.slack.Views()) == 1 })
			if cut := strings.Contains(w.slack.Views()[0].Raw, "hako approvals list"); cut != (len(arguments) > 40_000) {
				t.Errorf("says that it is cut: %v", cut)
			}
			w.click(aki, m, "hako_deny", id)
			w.answered("Denied by")
		})
	}
}
