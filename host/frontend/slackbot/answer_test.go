package slackbot_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/fault"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/pipeline"
)

// TestPlain: where streaming is refused the answer is a message that is updated, in Slack's own markup.
func TestPlain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.startStream", Body: `{"ok":false,"error":"unknown_method"}`})
	w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.ToolStarted("1", "get_weather", "Weather <now>")
		turn.Surface.ToolEnded("1", pipeline.Timeout, "too slow")
		turn.Surface.Text("# Title\n**bold** & <!channel> [a](https://example.com)")
		return &chat.Answer{Text: "x", Number: 2}, nil
	}), nil)
	w.connected()
	w.tell(mention("hello"))
	m := w.answered("bold")
	w.wait("the buttons", func() bool {
		return strings.Contains(w.answers()[0].Sent["attachments"].(string),
			"hako_feedback")
	})
	want := ":x: Weather &lt;now&gt;: too slow\n*Title*\n*bold* &amp; &lt;!channel&gt; <https://example.com|a (example.com)>"
	if m.Text != want {
		t.Errorf("got %q, want %q", m.Text, want)
	}
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*slackbot.Workspace)
		said   slack.Said
		want   bool
	}{
		"anybody":         {func(*slackbot.Workspace) {}, mention("x"), true},
		"another channel": {func(w *slackbot.Workspace) { w.Channels = []string{random} }, mention("x"), false},
		"the channel":     {func(w *slackbot.Workspace) { w.Channels = []string{general} }, mention("x"), true},
		"another user":    {func(w *slackbot.Workspace) { w.Users = []string{aki} }, mention("x"), false},
		"the user":        {func(w *slackbot.Workspace) { w.Users = []string{ken} }, mention("x"), true},
		"another group":   {func(w *slackbot.Workspace) { w.Groups = []string{"leads"} }, mention("x"), false},
		"the group, a DM": {func(w *slackbot.Workspace) {
			w.Groups, w.Channels = []string{"leads"},
				[]string{random}
		}, slack.Said{User: aki, Channel: dm, Text: "x"}, true},
		"not the group's DM": {func(w *slackbot.Workspace) { w.Groups = []string{"ops"} },
			slack.Said{User: aki, Channel: dm, Text: "x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start(engine(echo), func(o *slackbot.Options) { test.change(&o.Workspaces[0]) })
			w.connected()
			w.tell(test.said)
			if test.want {
				w.answered("You said: x")
				return
			}
			w.wait("a refusal", func() bool { return len(w.answers()) == 1 })
			m := w.answers()[0]
			if !strings.Contains(m.Text, "may not use") && !strings.Contains(m.Text, "権限がありません") ||
				m.Channel == general && m.Ephemeral != ken {
				t.Errorf("%+v", m)
			}
		})
	}
}

// TestStop: the Stop button of Slack, the bot's own, and the command end a turn.
func TestStop(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(w *world, thread string) error{
		"the session's": func(w *world, thread string) error {
			_, err := w.slack.Deliver(w.t.Context(), slack.KindEvent, slack.Envelope("EvStop", map[string]any{
				"type": "agent_session_stopped", "channel": general, "thread_ts": thread, "user": ken,
				"event_ts": "1.1",
			}), 0)
			return err
		},
		"the button": func(w *world, thread string) error {
			return w.slack.Click(w.t.Context(), ken, slack.Message{Channel: general, Thread: thread, TS: thread},
				"hako_stop", slack.Team+":"+general+":"+thread)
		},
		"the command": func(w *world, _ string) error {
			answer, err := w.slack.Command(w.t.Context(), ken, general, "/hako", "stop")
			if err == nil && !strings.Contains(answer, "Stopping 1") {
				err = fmt.Errorf("answer %s", answer)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			begun := make(chan struct{})
			w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
				turn.Surface.Text("I begin")
				turn.Surface.ToolStarted("1", "slow", "Slow")
				close(begun)
				<-ctx.Done()
				turn.Surface.ToolEnded("1", pipeline.Canceled, "")
				return nil, ctx.Err()
			}), nil)
			w.connected()
			thread := w.tell(mention("work"))
			<-begun
			if err := stop(w, thread); err != nil {
				t.Fatal(err)
			}
			m := w.answered("Stopped by <@" + ken + ">")
			if !strings.HasPrefix(m.Text, "I begin") || m.Tasks[0].Status != "error" ||
				strings.Contains(m.Blocks, "feedback") {
				t.Errorf("%+v", m)
			}
		})
	}
}

// TestStopElsewhere: a turn is stopped at another replica than the one that runs it.
func TestStopElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun := make(chan struct{})
	waits := engine(func(ctx context.Context, _ *chat.Turn) (*chat.Answer, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	w.serve(waits, nil)
	thread := w.tell(mention("work"))
	<-begun
	w.serve(waits, nil) // which is told from now on
	w.click(ken, slack.Message{Channel: general, Thread: thread}, "hako_stop", slack.Team+":"+general+":"+thread)
	w.answered("Stopped by <@" + ken + ">")
}

// TestWhole: an answer that was not streamed is shown all the same, and one that is too long comes as a file. Feedback
// is thanked for.
func TestWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		if turn.Text == "nothing" {
			return &chat.Answer{}, nil
		}
		return &chat.Answer{Text: strings.Repeat("word ", 10_000)}, nil
	}), nil)
	w.connected()
	w.tell(mention("nothing"))
	w.answered("gave no answer")
	w.tell(mention("much"))
	m := w.answered("The whole answer is in the file")
	w.wait("an upload", func() bool { return len(w.slack.Uploads()) == 1 && len(w.slack.Uploads()[0].Data) == 50_000 })
	if strings.Contains(m.Blocks, "hako_feedback") {
		t.Error("an answer that is not kept has buttons for feedback")
	}
}

// TestFeedback: what somebody thinks of an answer is kept with who they are; an answer that is gone is no failure.
func TestFeedback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(echo), func(o *slackbot.Options) { o.Workspaces[0].Users = []string{ken} })
	w.connected()
	thread := w.tell(mention("hello"))
	m := w.answered("hako_feedback")
	if !strings.Contains(m.Blocks, `"value":"true:2"`) || !strings.Contains(m.Blocks, `"value":"false:2"`) {
		t.Error(m.Blocks)
	}
	w.click(ken, m, "hako_feedback", "false:2")
	if got, want := <-w.rated, "acme-inc "+ken+" "+slack.Team+":"+general+":"+thread+" false"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if told := w.answered("Thank you"); told.Ephemeral != ken || told.Thread != thread {
		t.Errorf("%+v", told)
	}
	w.click(aki, m, "hako_feedback", "true:2") // who may not use the bot
	w.click(ken, m, "hako_feedback", "something else")
	w.click(ken, m, "hako_feedback", "true:7")
	w.answered("not kept any more")
	if len(w.rated) != 0 {
		t.Error(<-w.rated)
	}
}

// TestRestart: a process that is asked to end says so in its answers, and one that died is spoken for by the next.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun := make(chan struct{}, 3)
	slow := engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.Text("I begin")
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	w.start(slow, nil)
	w.connected()
	w.tell(mention("one"))
	<-begun
	w.stop()
	w.answered("hako is shutting down")

	// The second process cannot reach Slack when it ends, as one that is killed.
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.stopStream", Drop: true})
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.appendStream", Drop: true})
	w.start(slow, func(o *slackbot.Options) { o.Turns = 1 })
	w.connected()
	w.tell(mention("two"))
	<-begun
	w.wait("the beginning", func() bool { return len(w.answers()) == 2 })
	w.tell(mention("three, which waits"))
	w.stop()
	w.slack.Faults.Clear()
	w.start(engine(echo), nil)
	w.answered("hako was interrupted in the middle")
	w.answered("You said: three, which waits")
}

// TestFailure: people are told that something failed, without the inside.
func TestFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		if turn.Text == "budget" {
			return nil, &chat.Error{Reason: chat.ReasonBudget, Text: "Your budget is used up.", Err: errBroken}
		}
		return nil, errBroken
	}), nil)
	w.connected()
	w.tell(mention("x"))
	w.answered("An error occurred")
	w.tell(mention("budget"))
	w.answered("Your budget is used up.")
	for _, m := range w.answers() {
		if strings.Contains(m.Text, "secret detail") {
			t.Error(m.Text)
		}
	}
}

// TestRateLimit: a method that Slack puts off waits, and nothing is lost.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.startStream", Times: 1, Status: 429,
		Header: http.Header{"Retry-After": {"1"}}})
	w.start(engine(echo), nil)
	w.connected()
	w.tell(mention("patience"))
	w.answered("You said: patience")
	if w.counts.get("limited chat.startStream") != 1 {
		t.Error("it was not counted")
	}
}

// TestLong: text goes on in other messages, cut at lines, and the rest comes as a file. Blocks of code stay blocks.
func TestLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := strings.Repeat("あ", 99) + "\n"
	text := "```\n" + strings.Repeat(line, 400)
	w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		for rest := text; rest != ""; {
			n := min(len(rest), 3000)
			turn.Surface.Text(rest[:n])
			rest = rest[n:]
		}
		return &chat.Answer{Text: text}, nil
	}), nil)
	w.connected()
	w.tell(mention("long"))
	w.wait("an upload", func() bool { return len(w.slack.Uploads()) == 1 })
	if up := w.slack.Uploads()[0]; string(up.Data) != text || up.Channel != general || up.Thread == "" {
		t.Errorf("%d bytes in %s", len(up.Data), up.Channel)
	}
	if len(w.answers()) < 3 || w.counts.get("rollover") != len(w.answers())-1 {
		t.Errorf("%d messages, %d rollovers", len(w.answers()), w.counts.get("rollover"))
	}
	for _, m := range w.answers() {
		if n := len([]rune(m.Text)); n > 12_000 || m.Streaming || !strings.HasPrefix(m.Text, "```\n") {
			t.Errorf("a message of %d characters begins with %.20q, streaming %v", n, m.Text, m.Streaming)
		}
	}
}

// TestBroken: a stream that Slack has ended is followed by another.
func TestBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slack.Faults.Add(fault.Fault{Path: "/api/chat.appendStream", Times: 1,
		Body: `{"ok":false,"error":"message_not_in_streaming_state"}`})
	w.start(engine(func(ctx context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.Text("one ")
		w.wait("the beginning", func() bool { return len(w.answers()) == 1 })
		turn.Surface.Text(strings.Repeat("two ", 100))
		return &chat.Answer{Text: "x"}, nil
	}), nil)
	w.connected()
	w.tell(mention("go"))
	w.answered("two two")
	if len(w.answers()) != 2 || w.counts.get("rollover") != 1 {
		t.Errorf("%d messages, %d rollovers", len(w.answers()), w.counts.get("rollover"))
	}
}

// TestOld: a streamed message ends before Slack ends it, and the answer goes on in another, if it does.
func TestOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.streams = 50 * time.Millisecond
	w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		turn.Surface.Text("beginning of " + turn.Text)
		w.answered("beginning of " + turn.Text)
		if turn.Text == "both" {
			turn.Surface.Text("end of both")
		}
		return &chat.Answer{Text: "x"}, nil
	}), nil)
	w.connected()
	ts := w.tell(mention("both"))
	if m := w.answered("end of both"); strings.Contains(m.Text, "beginning") {
		t.Errorf("%+v", m)
	}
	w.wait("an active session", func() bool { return w.slack.Session(general, ts) == "active" })
	ts = w.tell(mention("one"))
	w.wait("an active session", func() bool { return w.slack.Session(general, ts) == "active" })
	w.stop()
	before := len(w.answers())
	w.start(engine(echo), nil)
	w.connected()
	w.tell(mention("anew"))
	w.answered("You said: anew")
	if n := len(w.answers()); n != before+1 {
		t.Errorf("%d more messages after the restart: %+v", n-before, w.answers())
	}
}

// TestFilesLeftOut: the bot says why a file was left out.
func TestFilesLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startEchoing(nil)
	said := mention("read these")
	said.Files = []string{
		w.slack.AddFile(w.url, "large.csv", "text/csv", make([]byte, 5<<20+1)),
		w.slack.AddFile("https://elsewhere.example/", "other.csv", "text/csv", []byte("a,b")),
	}
	w.tell(said)
	answer := w.answered("You said: read these").Text
	for _, want := range []string{
		"`large.csv` was left out: it is larger than 5 MB", "`other.csv` was left out: it could not",
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("%q lacks %q", answer, want)
		}
	}
}

// TestThread: what others said before is told once, as data, and so are files.
func TestThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	turns := w.startEchoing(nil)
	thread := w.slack.Say(slack.Said{User: aki, Channel: general, Text: "we meet at &lt;nine&gt;"})
	for i := range 60 {
		w.slack.Say(slack.Said{User: aki, Channel: general, Thread: thread, Text: fmt.Sprint("line ", i, ".")})
	}
	file := w.slack.AddFile(w.url, "report.csv", "text/csv", []byte("a,b"))
	said := mention("when?")
	said.Thread, said.Files = thread, []string{file}
	w.tell(said)
	turn := <-turns
	if len(turn.Files) != 2 || string(turn.Files[1].Data) != "a,b" || turn.Files[1].Name != "report.csv" {
		t.Fatalf("files %+v", turn.Files)
	}
	if earlier := string(turn.Files[0].Data); !strings.Contains(earlier, aki+" (aki): we meet at <nine>") ||
		!strings.Contains(earlier, "line 59.") || strings.Contains(earlier, "when?") {
		t.Error(earlier)
	}
	w.answered("You said: when?")
	w.slack.Say(slack.Said{User: aki, Channel: general, Thread: thread, Text: "at ten"})
	said = mention("and now?")
	said.Thread = thread
	w.tell(said)
	turn = <-turns
	if len(turn.Files) != 1 || !strings.Contains(string(turn.Files[0].Data), "at ten") ||
		strings.Contains(string(turn.Files[0].Data), "nine") {
		t.Errorf("files %+v", turn.Files)
	}
}

// TestLongThread: of a thread that is too long to be read as a whole the newest messages count, also if they were
// written long before the question.
func TestLongThread(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{
		"at once": 0, "a second later": time.Second, "a minute later": time.Minute, "an hour later": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			turns := w.startEchoing(nil)
			thread := w.slack.Say(slack.Said{User: aki, Channel: general, Text: "the beginning"})
			const messages = 1500
			for i := range messages {
				w.slack.Say(slack.Said{User: aki, Channel: general, Thread: thread, Text: fmt.Sprintf("line %d of many", i)})
			}
			said := mention("what now?")
			said.Thread = thread
			ts := w.slack.Say(said)
			if later > 0 {
				at := time.Now().Add(later)
				ts = fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
			}
			event := w.slack.Event(said, ts)
			if _, err := w.slack.Deliver(t.Context(), slack.KindEvent, event, 0); err != nil {
				t.Fatal(err)
			}
			turn := <-turns
			earlier := string(turn.Files[0].Data)
			gap := strings.LastIndex(earlier, "[...]\n")
			if gap < 0 || !strings.HasSuffix(earlier, fmt.Sprintf("line %d of many", messages-1)) {
				t.Fatalf("%d bytes, from %.60q to %q", len(earlier), earlier, earlier[max(0, len(earlier)-60):])
			}
			_, after, _ := strings.Cut(earlier[gap:], "line ") // from here on nothing is missing
			first, _, _ := strings.Cut(after, " ")
			n, err := strconv.Atoi(first)
			// The fake gives 50 messages in a page. A message at the very microsecond of a skip may be left out.
			if count := strings.Count(after, "of many"); err != nil || count != messages-n || count < 24 {
				t.Errorf("from %s on: %d of %d", first, count, messages-n)
			}
			// The first line says what it is.
			if _, content, _ := strings.Cut(earlier, "\n"); len(content) > 24<<10 {
				t.Errorf("%d bytes", len(content))
			}
		})
	}
}

// BenchmarkFirstText is the time from the model's first word until Slack has it.
func BenchmarkFirstText(b *testing.B) {
	w := newWorld(b)
	var first time.Time
	w.start(engine(func(_ context.Context, turn *chat.Turn) (*chat.Answer, error) {
		first = time.Now()
		turn.Surface.Text("word")
		turn.Surface.Text(" by word")
		n := len(w.answers())
		for ; len(w.answers()) == n; time.Sleep(100 * time.Microsecond) {
		}
		b.ReportMetric(float64(time.Since(first).Milliseconds()), "first-text-ms")
		return &chat.Answer{Text: "x"}, nil
	}), nil)
	w.connected()
	for i := range b.N {
		w.tell(mention(fmt.Sprint("go ", i)))
		w.wait("an end", func() bool { a := w.answers(); return len(a) == i+1 && !a[i].Streaming })
	}
}
