package terminal

import (
	"context"
	"sync"
	"time"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
)

// AnswerQuestions lets the person at the terminal, who is an operator, answer the questions of this process until stop
// is called.
func (t IO) AnswerQuestions(ctx context.Context, approvals *approval.Queue, locale string) (stop func()) {
	ask := t.Prompter(locale).Ask
	if ask == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	unwatch := approvals.Watch(func(*approval.Question) bool { return true }, func(q *approval.Question) {
		asking.Go(func() { answerOne(ctx, approvals, q, ask) })
	})
	return func() {
		unwatch()
		cancel()
		asking.Wait()
	}
}

// answerPoll is the interval of checks whether a question was answered elsewhere.
const answerPoll = time.Second

// answerOne asks until the question is answered, here or elsewhere.
func answerOne(ctx context.Context, approvals *approval.Queue, q *approval.Question,
	ask func(context.Context, *approval.Question) (bool, error)) {
	ctx, cancel := context.WithDeadline(ctx, q.Expires)
	defer cancel()
	go func() {
		ticker := time.NewTicker(answerPoll)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if outcome, _, err := approvals.Outcome(ctx, q.ID); err == nil && outcome != approval.Pending {
				cancel()
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	yes, err := ask(ctx, q)
	if err != nil || ctx.Err() != nil {
		return
	}
	_ = approvals.Answer(
		ctx,
		q.ID,
		approval.Answer{
			Yes: yes,
			By:  approval.Person{Tenant: q.Caller.Tenant, User: audit.ProcessUser(), Operator: true},
		},
	) // another answer may have been first
}
