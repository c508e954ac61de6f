package slackbot_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/dev/kit/testlog"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// Who and what there is in the fake.
const (
	robot    = "U00000HAKO"
	aki      = "U0000000A1" // speaks Japanese, one of the leads
	ken      = "U0000000K1" // speaks English
	general  = "C0000000G1"
	random   = "C0000000R1"
	office   = "C0000000O1"
	dm       = "D0000000A1"
	botToken = "xoxb-made-up"
	appToken = "xapp-made-up"
	signing  = "made-up-signing-secret"
)

// engine answers turns with a function.
type engine func(ctx context.Context, t *chat.Turn) (*chat.Answer, error)

func (e engine) Turn(ctx context.Context, t *chat.Turn) (*chat.Answer, error) { return e(ctx, t) }

// echo streams the text back.
func echo(_ context.Context, t *chat.Turn) (*chat.Answer, error) {
	t.Surface.Text("You said: " + t.Text)
	return &chat.Answer{Text: "You said: " + t.Text, Number: 2}, nil
}

// rate keeps what people think of the answer 2, the only one.
func (w *world) rate(_ context.Context, caller pipeline.Caller, conversation string, answer int64, good bool) error {
	if answer != 2 {
		return chat.ErrUnknown
	}
	w.rated <- fmt.Sprint(caller.Tenant, " ", caller.User, " ", conversation, " ", good)
	return nil
}

// counts is an Observer.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(parts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[strings.Join(parts, " ")]++
}

func (c *counts) get(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}

func (c *counts) SlackEvent(kind, result string)     { c.add("event", kind, result) }
func (c *counts) SlackRequest(method, result string) { c.add("request", method, result) }
func (c *counts) SlackRateLimited(method string)     { c.add("limited", method) }
func (c *counts) SlackRollover()                     { c.add("rollover") }

// world is a fake Slack, and a bot that talks to it.
type world struct {
	t         testing.TB
	slack     *slack.Server
	url       string
	dir       string
	store     *store.Store
	approvals *approval.Queue
	counts    *counts
	log       *testlog.Buffer
	rated     chan string
	stop      func()
	// streams bounds the time for which streamed messages stay open. Zero leaves the default.
	streams time.Duration
	// bots is the number of running bots.
	bots int
}

// newWorld makes a fake without a bot.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, slack: slack.New(), dir: storetest.Where(t), counts: &counts{}, log: &testlog.Buffer{},
		rated: make(chan string, 1)}
	w.slack.AckTime = 10 * time.Minute // on a busy machine
	w.slack.OnCall = func(method string, arguments map[string]any) {
		switch method { // those that Slack documents the arguments for, and their siblings
		case "chat.postMessage", "chat.postEphemeral", "chat.update":
			if arguments["unfurl_links"] != "false" || arguments["unfurl_media"] != "false" {
				t.Errorf("%s shows what links lead to: %v", method, arguments)
			}
		case "chat.startStream", "chat.appendStream", "chat.stopStream": // which have no unfurling
		default:
			if arguments["text"] != nil || arguments["markdown_text"] != nil {
				t.Errorf("%s has a text, and no rule here: %v", method, arguments)
			}
		}
	}
	w.slack.AddToken(botToken, robot, "chat:write", "im:write", "users:read", "usergroups:read", "channels:history",
		"files:write", "files:read")
	w.slack.AddUser(slack.User{ID: aki, Name: "aki", Locale: "ja-JP"})
	w.slack.AddUser(slack.User{ID: ken, Name: "ken", Locale: "en-US"})
	w.slack.AddChannel(general, "general", robot, aki, ken)
	w.slack.AddChannel(random, "random", robot, aki, ken)
	w.slack.AddChannel(office, "office", robot, aki)
	w.slack.AddGroup("leads", aki)
	w.slack.AddDM(dm, aki, robot)
	w.slack.UseSocketMode(appToken)
	server := httptest.NewServer(w.slack)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func fileSource(t testing.TB, value string) secret.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	return secret.Source{File: path}
}

// options are those of a bot in Socket Mode. change may change them.
func (w *world) options(e slackbot.Engine, change func(*slackbot.Options)) *slackbot.Options {
	var err error
	if w.store, err = drivers.Open(w.t.Context(), w.dir, nil); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.store.Close() })
	may := func(q *approval.Question, p approval.Person) bool {
		return p.Tenant == q.Caller.Tenant && (q.Approvers.IsZero() && p.User == q.Caller.User ||
			q.Approvers.Has(p.User, p.Groups))
	}
	if w.approvals, err = approval.New(w.t.Context(), w.store, &approval.Options{May: may, Timeout: time.Minute}); err != nil {
		w.t.Fatal(err)
	}
	o := &slackbot.Options{
		Workspaces: []slackbot.Workspace{{
			Name: "acme", Tenant: "acme-inc", BotToken: fileSource(w.t, botToken), AppToken: fileSource(w.t, appToken),
			APIURL: w.url + "/api/",
		}},
		Engine: e, Store: w.store, Approvals: w.approvals, Rate: w.rate, Observer: w.counts, Logger: logger(w.log),
	}
	if change != nil {
		change(o)
	}
	return o
}

// start runs a bot until the test ends, or stop is called.
func (w *world) start(e slackbot.Engine, change func(*slackbot.Options)) *slackbot.Bot {
	w.t.Helper()
	b, err := slackbot.New(w.t.Context(), w.options(e, change))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.streams > 0 {
		b.StreamFor(w.streams)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	w.bots++
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
		w.bots--
		w.wait("end of the connection", func() bool { return w.slack.Connections() <= w.bots })
	})
	w.t.Cleanup(w.stop)
	return b
}

// startEchoing starts a bot that streams the text of each turn back, waits until it is connected, and returns its
// turns.
func (w *world) startEchoing(change func(*slackbot.Options)) <-chan *chat.Turn {
	w.t.Helper()
	turns := make(chan *chat.Turn, 1)
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turns <- turn
		return echo(ctx, turn)
	}), change)
	w.connected()
	return turns
}

// connected waits until the bot has a connection of Socket Mode.
func (w *world) connected() {
	w.t.Helper()
	w.wait("a connection", func() bool { return w.slack.Connections() > 0 })
}

// wait waits until something holds.
func (w *world) wait(what string, holds func() bool) {
	w.t.Helper()
	if !testwait.Until(w.t, holds) {
		w.t.Fatalf("no %s; messages %+v\nlog:\n%s", what, w.answers(), w.log)
	}
}

// answers are the bot's messages, files aside.
func (w *world) answers() []slack.Message {
	var list []slack.Message
	for _, m := range w.slack.Messages() {
		if m.Author == robot && m.Files == nil {
			list = append(list, m)
		}
	}
	return list
}

// answered waits for a message of the bot's that is finished and holds a text, and returns it.
func (w *world) answered(text string) slack.Message {
	w.t.Helper()
	var found slack.Message
	w.wait("answer with "+text, func() bool {
		for _, m := range w.answers() {
			if !m.Streaming && strings.Contains(m.Text+m.Blocks, text) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// tell says something to the bot, and fails if that is not acknowledged.
func (w *world) tell(said slack.Said) (ts string) {
	w.t.Helper()
	ts, err := w.slack.Tell(w.t.Context(), said)
	if err != nil {
		w.t.Fatal(err)
	}
	return ts
}

func mention(text string) slack.Said {
	return slack.Said{User: ken, Channel: general, Text: "<@" + robot + "> " + text}
}

var errBroken = errors.New("secret detail of the inside")
