package pipeline

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/host/govern/approval"
)

// maxQuestions bounds the questions that people are asked during one call, for its policy, by its plugin or by its
// backend. The calls that its tool makes count with it.
const maxQuestions = 10

var errManyQuestions = fmt.Errorf("people have been asked %d questions in this call, which is the limit: nothing was "+
	"done; do the rest in another call", maxQuestions)

// questions are those of one call of a frontend and of the calls that its tool makes. Its zero value has none.
type questions struct {
	mu    sync.Mutex // guards what follows
	count int
	asked map[[sha256.Size]byte]*askedQuestion
}

// begin counts a question. It fails if there were too many.
func (s *questions) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == maxQuestions {
		return errManyQuestions
	}
	s.count++
	return nil
}

// askedQuestion is a question and how it was refused. Who has taken it may change it.
type askedQuestion struct {
	taken chan struct{} // has an element while it is taken

	// refused is why it was not permitted, id the ID of the question. Nil means that it was not refused.
	refused error
	id      string
	// declined is the answer that a backend got, if that is none, or nil.
	declined *elicitation.Answer
}

// take waits until nobody else asks the question, so that an answer counts for all that ask it at once. The caller
// releases it. The error is that of ctx.
func (s *questions) take(ctx context.Context, key string) (*askedQuestion, error) {
	digest := sha256.Sum256([]byte(key))
	s.mu.Lock()
	q := s.asked[digest]
	if q == nil {
		if s.asked == nil {
			s.asked = map[[sha256.Size]byte]*askedQuestion{}
		}
		q = &askedQuestion{taken: make(chan struct{}, 1)}
		s.asked[digest] = q
	}
	s.mu.Unlock()
	select {
	case q.taken <- struct{}{}:
		return q, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *askedQuestion) release() { <-q.taken }

// askOnce asks people a question, unless one of them has refused it during the call, or there were too many.
func (s *questions) askOnce(ctx context.Context, approvals Approvals, q *approval.Question, key string,
	prompter approval.Prompter) (by string, err error) {
	asked, err := s.take(ctx, key)
	if err != nil {
		return "", err
	}
	defer asked.release()
	if asked.refused != nil {
		q.ID = asked.id
		return "", asked.refused
	}
	prompter.Begin = s.begin
	by, err = approvals.Ask(ctx, q, prompter)
	switch approval.OutcomeOf(q, err) {
	case approval.No, approval.Expired:
		asked.refused, asked.id = err, q.ID
	}
	return by, err
}
