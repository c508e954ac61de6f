package slackbot

import (
	"context"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// waits shows that a tool waits for people; resumes shows that it does not any more.
func (s *surface) waits(ctx context.Context, tool, text string) {
	s.change(func(c *card) bool { return c.name == tool && c.status == slack.TaskCardStatusInProgress }, func(c *card) {
		c.status, c.output = slack.TaskCardStatusPending, text
	})
	s.count(1)
	s.free()
	s.showStatus(ctx)
}

func (s *surface) resumes(ctx context.Context, tool string) {
	s.change(func(c *card) bool { return c.name == tool && c.status == slack.TaskCardStatusPending }, func(c *card) {
		c.status, c.output = slack.TaskCardStatusInProgress, ""
	})
	s.count(-1)
	s.showStatus(ctx)
}

// questionTime bounds the wait of a question for the text before it.
const questionTime = 2 * time.Second

// ask waits until the text so far is in the thread, because a question follows. Later text goes below the question.
func (s *surface) ask(ctx context.Context) {
	sent := make(chan struct{})
	s.mu.Lock()
	s.add(part{question: sync.OnceFunc(func() { close(sent) })})
	s.mu.Unlock()
	select {
	case <-sent:
	case <-time.After(questionTime):
	case <-ctx.Done():
	}
}

// open returns the open cards.
func (s *surface) open() []card {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []card
	for _, c := range s.cards {
		if c.open() {
			list = append(list, c)
		}
	}
	return list
}

// count counts waiting questions.
func (s *surface) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking += n
}

// status returns the status of the agent session. It is empty while the end of the answer is written, which ends the
// session.
func (s *surface) status() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return ""
	case s.asking > 0:
		return slack.AgentSessionStatusSuspended
	}
	return slack.AgentSessionStatusProcessing
}

// showStatus reports the session's status to Slack if it has changed.
func (s *surface) showStatus(ctx context.Context) {
	s.statusMu.Lock()
	defer s.statusMu.Unlock()
	if status := s.status(); status != "" && status != s.sentStatus {
		s.w.setStatus(ctx, s.m, status)
		s.sentStatus = status
	}
}
