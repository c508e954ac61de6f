package chat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
)

// TestProviderErrors: for every kind of error, what the person is told, and what is kept.
func TestProviderErrors(t *testing.T) {
	t.Parallel()
	for kind, want := range map[llm.Kind][2]string{
		llm.RateLimited:   {"too many requests", "リクエストが多すぎます"},
		llm.Overloaded:    {"overloaded", "混み合っています"},
		llm.ContextWindow: {"too long for the model", "長すぎます"},
		llm.Auth:          {"key is missing or was refused", "キーがないか、拒否されました"},
		llm.Invalid:       {"did not accept the request", "受け付けませんでした"},
		llm.Refused:       {"does not want to answer", "拒否しました"},
		llm.Unavailable:   {"could not be reached", "接続できない"},
		llm.Kind("new"):   {"internal error", "hako の内部"},
	} {
		for i, locale := range []string{"en-US", "ja"} {
			t.Run(string(kind)+" "+locale, func(t *testing.T) {
				t.Parallel()
				cause := &llm.Error{Kind: kind, Name: "p", Text: "details",
					Err: fmt.Errorf("sent: %w", context.DeadlineExceeded)}
				var records []chat.Record
				b := setup(t, &model{steps: []step{fails(cause)}}, nil, nil, func(o *chat.Options) {
					o.Locale, o.Observe = locale, func(r chat.Record) { records = append(records, r) }
				})
				_, _, err := b.say(t, "c", "hi")
				var told *chat.Error
				if !errors.As(err, &told) || told.Reason != string(kind) || !errors.Is(err, kind) ||
					!strings.Contains(told.Text, want[i]) || strings.Contains(told.Text, "sent") {
					t.Fatalf("%v: %+v", err, told)
				}
				c, err := b.Conversation(t.Context(), aki, "c")
				if err != nil || len(c.Messages) != 2 || c.Messages[1].Text != told.Text {
					t.Errorf("kept %+v, %v", c, err)
				}
				if len(records) != 1 || string(records[0].Outcome) != string(kind) ||
					records[0].Frontend != "terminal" {
					t.Errorf("observed %+v", records)
				}
			})
		}
	}
}

// TestBrokenStream: what was shown before the stream broke off is kept with the reason.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{func(_ context.Context, _ *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		stream(llm.Delta{Text: "It will"})
		return nil, &llm.Error{Kind: llm.Unavailable}
	}}}
	b := setup(t, m, nil, nil, nil)
	if _, _, err := b.say(t, "c", "hi"); err == nil {
		t.Fatal("no error")
	}
	c, err := b.Conversation(t.Context(), aki, "c")
	if err != nil || !strings.HasPrefix(c.Messages[1].Text, "It will\n\nThe model could not be reached") {
		t.Errorf("kept %+v, %v", c, err)
	}
}

// TestIncompleteAnswers: truncated, refused and empty answers are reported as such.
func TestIncompleteAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		response llm.Response
		text     string
		notice   chat.Notice
		outcome  chat.Outcome
	}{
		"cut off": {llm.Response{Text: "It is", Stop: llm.StopLength}, "It is", chat.NoticeLength, chat.OutcomeLength},
		"refused": {llm.Response{Stop: llm.StopRefusal}, "The model does not want to answer this.", chat.NoticeRefused,
			chat.OutcomeRefused},
		"filtered": {llm.Response{Text: "half", Stop: llm.StopFiltered}, "half", chat.NoticeRefused,
			chat.OutcomeRefused},
		"empty": {llm.Response{Stop: llm.StopEnd}, "(The model gave no answer.)", "", chat.OutcomeOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var record chat.Record
			m := &model{steps: []step{func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
				response := test.response
				return &response, nil
			}}}
			b := setup(t, m, nil, nil, func(o *chat.Options) { o.Observe = func(r chat.Record) { record = r } })
			answer, s, err := b.say(t, "c", "hi")
			if err != nil || answer.Text != test.text || record.Outcome != test.outcome || test.notice != "" &&
				!slices.Equal(s.notices, []chat.Notice{test.notice}) {
				t.Errorf("%+v, %v, shown %q, observed %+v", answer, err, s.events, record)
			}
		})
	}
}

// TestTextBetweenCalls: what the model writes before it calls tools is shown as a paragraph of its own, and not kept.
func TestTextBetweenCalls(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		stream(llm.Delta{Text: "Let me look."})
		response, err := calls("get_weather", `{"location":"x"}`)(ctx, r, stream)
		response.Text = "Let me look."
		return response, err
	}, says("Sunny.")}}
	b := setup(t, m, backend{"get_weather": gives("sun")}, nil, nil)
	answer, s, err := b.say(t, "c", "hi")
	if err != nil || answer.Text != "Sunny." || s.text.String() != "Let me look.\n\nSunny." {
		t.Errorf("%+v, %v, shown %q", answer, err, s.text.String())
	}
}

// TestBadTurns are refused before the model is asked.
func TestBadTurns(t *testing.T) {
	t.Parallel()
	b := setup(t, &model{steps: []step{says("ok")}}, nil, nil, nil)
	for name, turn := range map[string]chat.Turn{
		"no text":      {Conversation: "c", Text: " \n"},
		"a long text":  {Conversation: "c", Text: strings.Repeat("x", 65<<10)},
		"no key":       {Text: "x"},
		"a long key":   {Conversation: strings.Repeat("x", 201), Text: "x"},
		"a broken key": {Conversation: "\xff", Text: "x"},
	} {
		_, err := b.Turn(t.Context(), &turn)
		var told *chat.Error
		if !errors.As(err, &told) || told.Text == "" || b.model.times() > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// window is a model with a small context window that summarises.
func window(most int) step {
	return func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		n := 0
		for _, m := range r.Messages {
			n += len(m.Text)
			for _, result := range m.Results {
				n += len(result.Text)
			}
		}
		switch {
		case n > most:
			return nil, &llm.Error{Kind: llm.ContextWindow}
		case strings.HasPrefix(r.System, "Summarise"):
			return says("They talked about the weather.")(ctx, r, stream)
		}
		return says("ok")(ctx, r, stream)
	}
}

// TestSummaryBeforeTheWindow: older messages are summarised before the model's window is full, and stay readable for
// people.
func TestSummaryBeforeTheWindow(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{window(1 << 20)}}
	b := setup(t, m, nil, nil, func(o *chat.Options) { o.Limits.Window = 4000 })
	shortened := 0
	for i := range 8 {
		_, s, err := b.say(t, "c", fmt.Sprintf("%d ", i)+strings.Repeat("words ", 400)) // 600 tokens
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(s.notices, chat.NoticeShortened) {
			shortened++
		}
	}
	if shortened == 0 || shortened > 4 {
		t.Errorf("shortened %d times", shortened)
	}
	last := m.asked(t, m.times()-1)
	if first := last.Messages[0].Text; !strings.Contains(first, "They talked about the weather.") {
		t.Errorf("the model was given %.100q", first)
	}
	if n := len(last.Messages); n < 4 || !strings.HasPrefix(last.Messages[n-3].Text, "6 ") {
		t.Errorf("the messages before the last are not there: %d in all", n)
	}
	for i, request := range m.requests { // where a summary stands, the four messages after it do too
		if n := len(request.Messages); n > 1 && strings.Contains(request.Messages[0].Text, "They talked") && n < 6 {
			t.Errorf("request %d has %d messages", i, n)
		}
	}
	c, err := b.Conversation(t.Context(), aki, "c")
	if err != nil || len(c.Messages) != 16 {
		t.Errorf("%d messages, %v", len(c.Messages), err)
	}
}

// TestSummaryAfterRefusal: where the model says that it cannot read all, it is asked once more with less.
func TestSummaryAfterRefusal(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{window(5000)}}
	b := setup(t, m, nil, nil, func(o *chat.Options) { o.Limits.Window = 3000 }) // the estimate is too kind
	for i := range 4 {
		if _, _, err := b.say(t, "c", fmt.Sprintf("%d ", i)+strings.Repeat("x", 1500)); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := b.say(t, "d", strings.Repeat("x", 6000))
	var told *chat.Error
	if !errors.As(err, &told) || told.Reason != string(llm.ContextWindow) {
		t.Errorf("one message is too long by itself: %v", err)
	}
}

// TestLargeResultsAreShrunk: results that the model cannot read are cut.
func TestLargeResultsAreShrunk(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{calls("get_weather", `{"location":"x"}`), window(8000)}}
	b := setup(t, m, backend{"get_weather": gives(strings.Repeat("x", 30000))}, nil, nil)
	answer, _, err := b.say(t, "c", "hi")
	if err != nil || answer.Text != "ok" {
		t.Fatalf("%+v, %v", answer, err)
	}
	given := results(m.asked(t, 2))[0].Text
	if !strings.Contains(given, "cut off") || !strings.HasSuffix(given, "]]") || len(given) > 5000 {
		t.Errorf("given %d bytes: %q", len(given), given[len(given)-100:])
	}
}
