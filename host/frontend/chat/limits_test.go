package chat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// TestParallelCalls: the calls of a round run at once, and their results keep the order.
func TestParallelCalls(t *testing.T) {
	t.Parallel()
	var pairs []string
	for i := range 20 {
		pairs = append(pairs, "get_weather", fmt.Sprintf(`{"location":"%d"}`, i))
	}
	m := &model{steps: []step{calls(pairs...), says("ok")}}
	var running, most, entered atomic.Int64
	all := make(chan struct{})
	b := setup(t, m, backend{"get_weather": func(_ context.Context, r *abi.Request) (*abi.Response, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if entered.Add(1) == 4 {
			close(all)
		}
		<-all // four run at once, or none ends
		return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: string(r.Arguments)}}}, nil
	}}, nil, func(o *chat.Options) { o.Limits.Parallel = 4 })
	answer, _, err := b.say(t, "c", "weather?")
	if err != nil || answer.Calls != 16 || most.Load() != 4 {
		t.Fatalf("%+v, %v, %d at once", answer, err, most.Load())
	}
	for i, given := range results(m.asked(t, 1)) {
		want := fmt.Sprintf(`{"location":"%d"}`, i)
		if i >= 16 {
			want = "at most 16 calls"
		}
		if !strings.Contains(given.Text, want) || given.IsError != (i >= 16) {
			t.Errorf("result %d is %+v", i, given)
		}
	}
}

// TestRepeatedCalls: the same call is made once, answered from the first the second time, and the third ends the loop.
func TestRepeatedCalls(t *testing.T) {
	t.Parallel()
	repeat := func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		if r.NoTools {
			return says("I give up.")(ctx, r, stream)
		}
		arguments := []string{`{"location":"x"}`, `{ "location" : "x" }`}[len(r.Messages)/2%2]
		return calls("get_weather", arguments)(ctx, r, stream)
	}
	m := &model{steps: []step{repeat}}
	var made atomic.Int64
	b := setup(t, m, backend{"get_weather": func(context.Context, *abi.Request) (*abi.Response, error) {
		made.Add(1)
		return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: "sun"}}}, nil
	}}, nil, func(o *chat.Options) { o.Locale = "ja" })
	answer, s, err := b.say(t, "c", "weather?")
	if err != nil || answer.Text != "I give up." || made.Load() != 1 || answer.Rounds != 4 ||
		!slices.Contains(s.notices, chat.NoticeLimit) {
		t.Fatalf("%+v, %v, made %d times, shown %q", answer, err, made.Load(), s.events)
	}
	if second := results(m.asked(t, 2))[1]; second.IsError ||
		!strings.Contains(second.Text, "made this very call before") || !strings.Contains(second.Text, "sun") {
		t.Errorf("the model was given %+v", second)
	}
	last := m.asked(t, 3).Messages
	if note := last[len(last)-1].Text; !strings.Contains(note, "同じツール呼び出し") {
		t.Errorf("the model was told %q", note)
	}
}

// TestRepeatedInOneRound: the same call twice in one round is made once.
func TestRepeatedInOneRound(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{calls("get_weather", `{"location":"x"}`, "get_weather", `{"location":"x"}`), says("ok")}}
	b := setup(t, m, backend{"get_weather": gives("sun")}, nil, nil)
	answer, _, err := b.say(t, "c", "weather?")
	given := results(m.asked(t, 1))
	if err != nil || answer.Calls != 1 || len(given) != 2 || given[0].CallID == given[1].CallID ||
		!strings.Contains(given[1].Text, "sun") {
		t.Errorf("%+v, %v, the model was given %+v", answer, err, given)
	}
}

// TestRepeatedBesideAChange: a call that is asked for twice in a round that changes something is still answered.
func TestRepeatedBesideAChange(t *testing.T) {
	t.Parallel()
	look := []string{"get_weather", `{"location":"x"}`}
	round := slices.Concat(look, look, look, look, []string{"delete_file", `{"path":"x"}`})
	m := &model{steps: []step{calls(round...), calls(look...), says("ok")}}
	b := setup(t, m, backend{"delete_file": gives("gone"), "get_weather": gives("sun")}, nil, nil)
	answer, s, err := b.say(t, "c", "weather?")
	if err != nil || answer.Text != "ok" || answer.Calls != 3 || len(s.notices) > 0 {
		t.Fatalf("%+v, %v, shown %q", answer, err, s.events)
	}
	for i, given := range results(m.asked(t, 2)) {
		if want := []string{"sun", "sun", "sun", "sun", "gone", "sun"}[i]; given.IsError ||
			!strings.Contains(given.Text, want) {
			t.Errorf("result %d is %+v", i, given)
		}
	}
}

// TestChangesEndRepeats: what was read before a change is read again after it.
func TestChangesEndRepeats(t *testing.T) {
	t.Parallel()
	look := calls("get_weather", `{"location":"x"}`)
	m := &model{steps: []step{look, calls("delete_file", `{"path":"x"}`), look, says("ok")}}
	var made atomic.Int64
	b := setup(t, m, backend{"delete_file": gives("gone"),
		"get_weather": func(context.Context, *abi.Request) (*abi.Response, error) {
			return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: fmt.Sprint(made.Add(1))}}}, nil
		}}, nil, nil)
	if _, _, err := b.say(t, "c", "weather?"); err != nil || made.Load() != 2 {
		t.Errorf("made %d times, %v", made.Load(), err)
	}
}

// TestFailuresEndRepeats: what was read before a call that failed, and may have had an effect all the same, is read
// again after it; what such a call gave is not asked for twice. A call that never got to its tool changes nothing.
func TestFailuresEndRepeats(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments string
		want      int64
	}{"failed": {`{"path":"x"}`, 2}, "not made": {`{}`, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look, remove := calls("get_weather", `{"location":"x"}`), calls("delete_file", test.arguments)
			m := &model{steps: []step{look, remove, look, remove, says("ok")}}
			var looked, removed atomic.Int64
			b := setup(t, m, backend{"delete_file": func(context.Context, *abi.Request) (*abi.Response, error) {
				removed.Add(1)
				return &abi.Response{IsError: true,
					Content: []abi.Content{{Type: abi.Text, Text: "lost the connection"}}}, nil
			}, "get_weather": func(context.Context, *abi.Request) (*abi.Response, error) {
				return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: fmt.Sprint(looked.Add(1))}}}, nil
			}}, nil, nil)
			if _, _, err := b.say(t, "c", "weather?"); err != nil || looked.Load() != test.want || removed.Load() > 1 {
				t.Errorf("looked %d times, removed %d times, %v", looked.Load(), removed.Load(), err)
			}
		})
	}
}

// TestToolTimeout: a call that takes too long is an error for the model; waiting for people takes longer.
func TestToolTimeout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mayAsk bool
		want   time.Duration
	}{"a tool": {false, 30 * time.Second}, "one that may ask": {true, 5*time.Minute + 30*time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &model{steps: []step{calls("get_weather", `{"location":"x"}`), says("ok")}}
			b := setup(t, m, nil, nil, func(o *chat.Options) {
				o.MayAsk = func(pipeline.Caller, *catalog.Tool) bool { return test.mayAsk }
				o.Call = func(ctx context.Context, _ *pipeline.Call) (*pipeline.Result, error) {
					deadline, _ := ctx.Deadline()
					if left := time.Until(deadline); left > test.want || left < test.want-10*time.Second {
						t.Errorf("it has %s, want %s", left, test.want)
					}
					ctx, cancel := context.WithTimeoutCause(ctx, 0, context.DeadlineExceeded)
					defer cancel()
					<-ctx.Done()
					return nil, ctx.Err()
				}
			})
			if _, _, err := b.say(t, "c", "weather?"); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("is told", func(t *testing.T) {
		t.Parallel()
		m := &model{steps: []step{calls("get_weather", `{"location":"x"}`), says("ok")}}
		b := setup(t, m, backend{"get_weather": func(ctx context.Context, _ *abi.Request) (*abi.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, nil, func(o *chat.Options) { o.Limits.ToolTimeout = time.Nanosecond })
		_, s, err := b.say(t, "c", "weather?")
		if given := results(m.asked(t, 1))[0]; err != nil || !strings.Contains(given.Text, "did not answer within") ||
			s.events[1] != "ended timeout took too long" {
			t.Errorf("%v, given %+v, shown %q", err, given, s.events)
		}
	})
}

// TestTimeOfQuestions: the time of a call stands still while the policy or the tool asks a person, and only then.
func TestTimeOfQuestions(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{calls("get_weather", `{"location":"x"}`), says("ok")}}
	b := setup(t, m, nil, nil, func(o *chat.Options) {
		o.Limits.ToolTimeout = time.Nanosecond
		o.MayAsk = func(pipeline.Caller, *catalog.Tool) bool { return true }
		o.Call = func(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
			if yes, err := call.Prompter.Ask(ctx, nil); !yes || err != nil || ctx.Err() != nil {
				t.Errorf("asked: %v, %v, %v", yes, err, ctx.Err())
			}
			_ = call.Permitted(ctx)
			<-ctx.Done() // within 5 minutes and much less
			return nil, ctx.Err()
		}
	})
	s := &surface{ask: func(context.Context, *approval.Question) (bool, error) { return true, nil }}
	if _, err := b.Turn(t.Context(),
		&chat.Turn{Conversation: "c", Caller: aki, Text: "weather?", Surface: s}); err != nil {
		t.Fatal(err)
	}
	if given := results(m.asked(t, 1))[0]; !strings.Contains(given.Text, "did not answer within 1ns") {
		t.Errorf("given %+v", given)
	}
}

// TestBudgets: the message names the budget that is used up, and when it resets.
func TestBudgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)
	ken := pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "ken"}
	for name, test := range map[string]struct {
		budgets chat.Budgets
		locale  string
		want    string
		other   string // the conversation that still may
		caller  pipeline.Caller
	}{
		"conversation": {chat.Budgets{Conversation: chat.Budget{Tokens: 15}}, "en",
			"The budget of this conversation (15 tokens) is used up. Begin a new", "d", aki},
		"user": {chat.Budgets{User: chat.Budget{Tokens: 10}}, "ja",
			"あなたの本日の予算（10 トークン）を使い切りました。11月21日 00:00 (UTC)", "d", ken},
		"day": {chat.Budgets{Day: chat.Budget{Cost: 0.01}}, "en",
			"for everybody (0.01 EUR) is used up. It resets on November 21 at 00:00 (UTC)", "", ken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := now
			m := &model{steps: []step{says("ok")}}
			b := setup(t, m, nil, nil, func(o *chat.Options) {
				o.Budgets, o.Locale, o.Currency, o.Now = test.budgets, test.locale, "EUR",
					func() time.Time { return clock }
			})
			if _, _, err := b.say(t, "c", "hi"); err != nil {
				t.Fatal(err)
			}
			_, _, err := b.say(t, "c", "again")
			var told *chat.Error
			if !errors.As(err, &told) || told.Reason != chat.ReasonBudget || !strings.Contains(told.Text, test.want) {
				t.Fatalf("%v: %+v", err, told)
			}
			if test.other != "" {
				if _, err := b.Turn(t.Context(),
					&chat.Turn{Conversation: test.other, Caller: test.caller, Text: "hi"}); err != nil {
					t.Error(err)
				}
			} else if _, err := b.Turn(t.Context(), &chat.Turn{Conversation: "d", Caller: test.caller, Text: "hi"}); err == nil {
				t.Error("the budget of the day is for everybody")
			}
			if clock = now.Add(2 * time.Hour); name != "conversation" {
				if _, _, err := b.say(t, "c", "tomorrow"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestBudgetInTheMiddle: a turn that uses up its budget sends no further requests.
func TestBudgetInTheMiddle(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{calls("get_weather", `{"location":"x"}`)}}
	b := setup(t, m, backend{"get_weather": gives("sun")}, nil, func(o *chat.Options) { o.Budgets.User.Tokens = 15 })
	_, _, err := b.say(t, "c", "hi")
	var told *chat.Error
	if !errors.As(err, &told) || told.Reason != chat.ReasonBudget || m.times() != 1 {
		t.Errorf("%v, asked %d times", err, m.times())
	}
	used, err := b.Today(t.Context(), aki)
	if err != nil || used.Tokens != 15 || used.Cost != 0.01 {
		t.Errorf("used %+v, %v", used, err)
	}
}

// TestCancel: what a person stops ends at once: the model, its tools, and their questions. What was written stays.
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps []step
		want  string
	}{
		"the model": {[]step{func(ctx context.Context, _ *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
			stream(llm.Delta{Text: "It is"})
			<-ctx.Done()
			stream(llm.Delta{Text: " late"})
			return nil, ctx.Err()
		}}, "It is\n\n(Stopped.)"},
		"a tool": {[]step{calls("get_weather", `{"location":"x"}`)}, "(Stopped.)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &model{steps: test.steps}
			b := setup(t, m, backend{"get_weather": func(ctx context.Context, _ *abi.Request) (*abi.Response, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}, nil, nil)
			ctx, cancel := context.WithCancel(t.Context())
			s := &stopping{surface: new(surface), stop: cancel}
			_, err := b.Turn(ctx, &chat.Turn{Conversation: "c", Caller: aki, Text: "hi", Surface: s})
			var told *chat.Error
			if !errors.Is(err, context.Canceled) || errors.As(err, &told) {
				t.Fatal(err)
			}
			c, err := b.Conversation(t.Context(), aki, "c")
			if err != nil || len(c.Messages) != 2 || c.Messages[1].Text != test.want {
				t.Errorf("kept %+v, %v", c, err)
			}
		})
	}
}

// stopping stops the turn as soon as it is shown anything.
type stopping struct {
	*surface
	stop func()
}

func (s *stopping) Text(delta string) {
	s.surface.Text(delta)
	s.stop()
}

func (s *stopping) ToolStarted(id, name, title string) { s.stop() }

// TestOrder: turns of one conversation are answered one after the other, in their order; one too many is refused.
func TestOrder(t *testing.T) {
	t.Parallel()
	first, release := make(chan struct{}), make(chan struct{})
	m := &model{steps: []step{func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		close(first)
		<-release
		return says("one")(ctx, r, stream)
	}, says("two"), says("three")}}
	b := setup(t, m, nil, nil, func(o *chat.Options) { o.Limits.Waiting = 2 })
	done := make(chan error, 3)
	waiting := make(chan struct{})
	say := func(text string, surface chat.Surface) {
		_, err := b.Turn(t.Context(), &chat.Turn{Conversation: "c", Caller: aki, Text: text, Surface: surface})
		done <- err
	}
	go say("a", nil)
	<-first
	go say("b", &telling{surface: new(surface), noticed: waiting})
	<-waiting
	waiting = make(chan struct{})
	go say("c", &telling{surface: new(surface), noticed: waiting})
	<-waiting
	_, _, err := b.say(t, "c", "one too many")
	var told *chat.Error
	if !errors.As(err, &told) || told.Reason != chat.ReasonBusy {
		t.Errorf("one too many: %v", err)
	}
	close(release)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	c, err := b.Conversation(t.Context(), aki, "c")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, message := range c.Messages {
		texts = append(texts, message.Text)
	}
	if len(texts) != 6 || texts[0] != "a" || texts[2] != "b" || texts[4] != "c" {
		t.Errorf("kept %q", texts)
	}
}

// telling reports notices to a channel.
type telling struct {
	*surface
	noticed chan struct{}
}

func (s *telling) Notice(chat.Notice, string) { close(s.noticed) }

// TestRetriesAreNoticed: a person sees that a model is asked again, or another one.
func TestRetriesAreNoticed(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string]string{
		"en": "No answer at the moment. Trying again in 2 s (model one).\nNo answer from this model. Asking two instead.",
		"ja": "現在モデルから応答がありません。2 秒後にもう一度試します（モデル one）。\nモデルから応答がないため、代わりに two に問い合わせます。",
	} {
		m := &model{steps: []step{
			func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
				r.Retrying(llm.Retry{Model: "one", Pause: 1500 * time.Millisecond})
				r.Retrying(llm.Retry{Model: "two"})
				return says("hello")(ctx, r, stream)
			},
		}}
		b := setup(t, m, nil, nil, func(o *chat.Options) { o.Locale = locale })
		_, shown, err := b.say(t, "c", "hi")
		want = "notice " + strings.ReplaceAll(want, "\n", "\nnotice ")
		if got := strings.Join(shown.events, "\n"); err != nil || got != want {
			t.Errorf("%s: got %q, want %q, %v", locale, got, want, err)
		}
	}
}

// TestRetryAfterIsTold: a person reads how long to wait.
func TestRetryAfterIsTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		after  time.Duration
		locale string
		want   string
	}{{1500 * time.Millisecond, "en", "in 2 s"}, {time.Hour, "ja", "60 分後に"}} {
		m := &model{steps: []step{fails(&llm.Error{Kind: llm.RateLimited, RetryAfter: test.after})}}
		b := setup(t, m, nil, nil, func(o *chat.Options) { o.Locale = test.locale })
		_, _, err := b.say(t, "c", "hi")
		var told *chat.Error
		if !errors.As(err, &told) || !strings.Contains(told.Text, test.want) {
			t.Errorf("%v: %+v, want %q", err, told, test.want)
		}
	}
}
