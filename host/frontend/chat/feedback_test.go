package chat_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/pipeline"
)

// TestFeedback: what people think of an answer is kept once for each of them, as they thought last, and can be listed.
func TestFeedback(t *testing.T) {
	t.Parallel()
	var told []chat.Feedback
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	b := setup(t, &model{steps: []step{says("first answer"), says("second answer")}}, nil, nil, func(o *chat.Options) {
		o.Rated, o.Now = func(f chat.Feedback) { told = append(told, f) }, func() time.Time { return now }
	})
	first, _, err := b.say(t, "c", "first question")
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := b.say(t, "c", "second question")
	if err != nil || first.Number == 0 || second.Number <= first.Number {
		t.Fatalf("answers %d and %d, %v", first.Number, second.Number, err)
	}
	ken := pipeline.Caller{Frontend: pipeline.FrontendSlack, User: "ken"}
	for _, r := range []struct {
		who    pipeline.Caller
		answer int64
		good   bool
	}{{aki, second.Number, true}, {aki, second.Number, true}, {ken, second.Number, true}, {ken, second.Number, false}} {
		now = now.Add(time.Minute)
		if err := b.Rate(t.Context(), r.who, "c", r.answer, r.good); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		who          pipeline.Caller
		conversation string
		answer       int64
	}{
		"a question":          {aki, "c", first.Number - 1},
		"no message":          {aki, "c", 99},
		"no conversation":     {aki, "d", first.Number},
		"of another tenant's": {pipeline.Caller{Tenant: "acme", User: "aki"}, "c", first.Number},
	} {
		if err := b.Rate(t.Context(), test.who, test.conversation, test.answer, true); !errors.Is(err, chat.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := chat.Feedbacks(t.Context(), b.store)
	if err != nil || len(list) != 2 || list[0].Person != "ken" || list[0].Good ||
		list[0].Frontend != pipeline.FrontendSlack ||
		list[1].Person != "aki" || !list[1].Good {
		t.Fatalf("%+v, %v", list, err)
	}
	if f := list[0]; f.Question != "second question" || f.Text != "second answer" || f.Answer != second.Number ||
		!f.Written.Equal(now) {
		t.Errorf("%+v", f)
	}
	if len(told) != 3 {
		t.Errorf("%d times new, want 3: who presses again says nothing new", len(told))
	}
	if err := b.Delete(t.Context(), aki, "c"); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "chat_feedback"); n != 0 {
		t.Errorf("%d left of a conversation that was deleted", n)
	}
}

// TestFeedbackRetention: feedback goes with the conversation that is too old.
func TestFeedbackRetention(t *testing.T) {
	t.Parallel()
	b := setup(t, &model{steps: []step{says("ok")}}, nil, nil, func(o *chat.Options) {
		o.Now = func() time.Time { return time.Now().Add(-48 * time.Hour) }
	})
	answer, _, err := b.say(t, "old", "hi")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Rate(t.Context(), aki, "old", answer.Number, true); err != nil {
		t.Fatal(err)
	}
	if err := chat.Forget(t.Context(), b.store, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, "chat_feedback"); n != 0 {
		t.Errorf("%d left", n)
	}
}

// count counts the rows of a table.
func (b *bench) count(t *testing.T, table string) (n int) {
	t.Helper()
	err := b.store.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
