package chat_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/abi"
)

// TestConversations: people list, read and delete their own, and no others.
func TestConversations(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{says("ok")}}
	b := setup(t, m, nil, nil, nil)
	ken := pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "ken"}
	elsewhere := pipeline.Caller{Frontend: pipeline.FrontendTerminal, User: "aki", Tenant: "acme"}
	for _, turn := range []chat.Turn{
		{Conversation: "a", Caller: aki, Text: "first\n question \x1b[31m"},
		{Conversation: "b", Caller: aki, Text: "second"},
		{Conversation: "k", Caller: ken, Text: "ken's"},
		{Conversation: "a", Caller: elsewhere, Text: "another tenant's"},
		{Conversation: "b", Caller: ken, Shared: true, Text: "joins"},
	} {
		if _, err := b.Turn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.Conversations(t.Context(), aki)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	byID := map[string]chat.Conversation{list[0].ID: list[0], list[1].ID: list[1]}
	if c := byID["a"]; c.Title != "first question [31m" || c.Use != (chat.Use{Tokens: 15, Cost: 0.01}) {
		t.Errorf("%+v", c)
	}
	c, err := b.Conversation(t.Context(), aki, "b")
	if err != nil || len(c.Messages) != 4 || c.Messages[2].Person != "ken" || c.Messages[3].Role != llm.RoleAssistant {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := b.Conversation(t.Context(), ken, "b"); !errors.Is(err, chat.ErrUnknown) {
		t.Errorf("who only joined reads it: %v", err)
	}
	if err := b.Delete(t.Context(), ken, "a"); !errors.Is(err, chat.ErrUnknown) {
		t.Errorf("somebody else deletes it: %v", err)
	}
	_, err = b.Turn(t.Context(), &chat.Turn{Conversation: "a", Caller: ken, Text: "let me in"})
	var told *chat.Error
	if !errors.As(err, &told) || told.Reason != chat.ReasonDenied || !errors.Is(err, chat.ErrNotYours) {
		t.Errorf("somebody else goes on with it: %v", err)
	}
	list, err = b.Conversations(t.Context(), aki)
	for _, c := range list {
		if err != nil || !c.Used.Equal(byID[c.ID].Used) {
			t.Errorf("what was refused has changed it: %+v, %v", c, err)
		}
	}
	if err := b.Delete(t.Context(), aki, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Conversation(t.Context(), aki, "a"); !errors.Is(err, chat.ErrUnknown) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := b.Conversation(t.Context(), elsewhere, "a"); err != nil {
		t.Errorf("another tenant's: %v", err)
	}
	if used, err := b.Today(t.Context(), aki); err != nil || used.Tokens != 30 {
		t.Errorf("what was deleted still counts: %+v, %v", used, err)
	}
}

// TestDeletedInTheMiddle: a conversation that is deleted while it is answered stays deleted.
func TestDeletedInTheMiddle(t *testing.T) {
	t.Parallel()
	var b *bench
	m := &model{steps: []step{func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		if err := b.Delete(ctx, aki, "c"); err != nil {
			t.Error(err)
		}
		return says("ok")(ctx, r, stream)
	}}}
	b = setup(t, m, nil, nil, nil)
	if _, _, err := b.say(t, "c", "hi"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Conversation(t.Context(), aki, "c"); !errors.Is(err, chat.ErrUnknown) {
		t.Error(err)
	}
}

// TestRetention: conversations that were not used for long are deleted.
func TestRetention(t *testing.T) {
	t.Parallel()
	var now time.Time
	b := setup(t, &model{steps: []step{says("ok")}}, nil, nil, func(o *chat.Options) {
		o.Now = func() time.Time { return now }
	})
	for conversation, days := range map[string]int{"old": 31, "new": 11, "now": 0} {
		now = time.Now().AddDate(0, 0, -days)
		if _, _, err := b.say(t, conversation, "hi"); err != nil {
			t.Fatal(err)
		}
	}
	for _, retain := range []time.Duration{0, 30 * 24 * time.Hour} {
		if list, err := b.Conversations(t.Context(), aki); err != nil || len(list) != 3 {
			t.Fatalf("before: %+v, %v", list, err)
		}
		if err := chat.Forget(t.Context(), b.store, retain); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.Conversations(t.Context(), aki)
	if err != nil || len(list) != 2 || list[0].ID != "now" || list[1].ID != "new" {
		t.Errorf("%+v, %v", list, err)
	}
	left := 0
	err = b.store.View(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM chat_message WHERE conversation = 'old'").Scan(&left)
	})
	if err != nil || left != 0 {
		t.Errorf("%d messages of it are left, %v", left, err)
	}
}

// crash makes an Engine whose process dies while the model answers in conversation c, and returns when it has.
func crash(t *testing.T, s *store.Store, locale string) {
	t.Helper()
	begun := make(chan struct{})
	over := make(chan struct{})
	m := &model{steps: []step{func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		close(begun)
		<-over
		return nil, errors.New("dead")
	}}}
	e, err := chat.New(t.Context(), &chat.Options{Provider: m, Store: s, Locale: locale})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = e.Turn(context.Background(), &chat.Turn{Conversation: "c", Caller: aki, Text: "hi"}) }()
	<-begun
	e.Die()
	t.Cleanup(func() { close(over) })
}

// TestCrash: where a process died in the middle of an answer, the next one says so: in the conversation, and to the
// person.
func TestCrash(t *testing.T) {
	t.Parallel()
	s := opened(t)
	crash(t, s, "ja")
	b := setupOn(t, s, &model{steps: []step{says("ok")}}, nil, nil, nil)
	c, err := b.Conversation(t.Context(), aki, "c")
	if err != nil || len(c.Messages) != 2 || !strings.Contains(c.Messages[1].Text, "中断されました") {
		t.Fatalf("%+v, %v", c, err)
	}
	_, seen, err := b.say(t, "c", "again")
	if err != nil || len(seen.notices) != 1 || seen.notices[0] != chat.NoticeInterrupted {
		t.Errorf("%v, shown %q", err, seen.events)
	}
	if _, seen, _ = b.say(t, "c", "and again"); len(seen.notices) > 0 {
		t.Errorf("told twice: %q", seen.events)
	}
}

// TestCrashOfAnother: a conversation that another process answered in when it died is free again at once.
func TestCrashOfAnother(t *testing.T) {
	t.Parallel()
	s := opened(t)
	b := setupOn(t, s, &model{steps: []step{says("ok")}}, nil, nil, nil)
	crash(t, s, "en")
	_, seen, err := b.say(t, "c", "again")
	if err != nil || len(seen.notices) != 2 || seen.notices[0] != chat.NoticeWaiting ||
		seen.notices[1] != chat.NoticeInterrupted {
		t.Errorf("%v, shown %q", err, seen.events)
	}
}

// TestTwoProcesses: while one process answers, another waits, and no living process is taken for dead.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	s := opened(t)
	begun, release := make(chan struct{}), make(chan struct{})
	one := setupOn(t, s, &model{steps: []step{func(ctx context.Context, r *llm.Request,
		stream func(llm.Delta)) (*llm.Response, error) {
		close(begun)
		<-release
		return says("one")(ctx, r, stream)
	}}}, nil, nil, nil)
	done := make(chan error)
	go func() {
		_, err := one.Turn(t.Context(), &chat.Turn{Conversation: "c", Caller: aki, Text: "first"})
		done <- err
	}()
	<-begun
	two := setupOn(t, s, &model{steps: []step{says("two")}}, nil, nil, nil)
	noticed := make(chan struct{})
	go func() {
		_, err := two.Turn(t.Context(),
			&chat.Turn{Conversation: "c", Caller: aki, Text: "second",
				Surface: &telling{surface: new(surface), noticed: noticed}})
		done <- err
	}()
	<-noticed
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	c, err := two.Conversation(t.Context(), aki, "c")
	if err != nil || len(c.Messages) != 4 || c.Messages[1].Text != "one" || c.Messages[3].Text != "two" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestHundredConversations: many at once, each with a tool and several turns, keep apart what belongs apart.
func TestHundredConversations(t *testing.T) {
	t.Parallel()
	m := &model{steps: []step{func(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
		last := r.Messages[len(r.Messages)-1]
		if len(last.Results) > 0 {
			_, text, _ := strings.Cut(last.Results[0].Text, "\n")
			text, _, _ = strings.Cut(text, "\n")
			return says(text)(ctx, r, stream)
		}
		_, text, _ := strings.Cut(last.Text, "\n")
		return calls("get_weather", fmt.Sprintf(`{"location":%q}`, text))(ctx, r, stream)
	}}}
	b := setup(t, m, backend{"get_weather": func(_ context.Context, r *abi.Request) (*abi.Response, error) {
		return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: string(r.Arguments)}}}, nil
	}}, nil, nil)
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			for turn := range 3 {
				text := fmt.Sprintf("place %d.%d", i, turn)
				answer, err := b.Turn(t.Context(),
					&chat.Turn{Conversation: fmt.Sprint(i), Caller: aki, Text: text, Surface: new(surface)})
				if err != nil || answer.Text != fmt.Sprintf(`{"location":%q}`, text) {
					t.Errorf("%+v, %v", answer, err)
				}
			}
		})
	}
	group.Wait()
	list, err := b.Conversations(t.Context(), aki)
	if err != nil || len(list) != 100 {
		t.Fatalf("%d conversations, %v", len(list), err)
	}
	for _, c := range list {
		whole, err := b.Conversation(t.Context(), aki, c.ID)
		if err != nil || len(whole.Messages) != 6 ||
			!strings.HasPrefix(whole.Messages[5].Text, fmt.Sprintf(`{"location":"place %s.2`, c.ID)) ||
			c.Use.Tokens != 90 {
			t.Errorf("%+v, %v", whole, err)
		}
	}
}
