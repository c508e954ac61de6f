package agent

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// discover looks for sessions of the agents and follows the active ones.
func (r *Runner) discover(followers *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(r.following)
	defer cancel()
	defer context.AfterFunc(r.serving, cancel)()
	failures := 0
	for looks := 0; ; looks++ {
		most := sessionsPage
		if looks%deepLook == 0 {
			most = maxFound
		}
		err := r.look(ctx, followers, most)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, Auth):
			r.fail(err)
			return
		case err != nil:
			failures++
			r.logger.Warn("listing the sessions of the agents failed: retrying", "err", err)
		default:
			failures = 0
		}
		pause := r.timing.discover
		if failures > 0 {
			pause = max(pause, r.backoff(failures))
		}
		if retry.Wait(ctx, pause) != nil {
			return
		}
	}
}

// deepLook is the number of lookups of which one lists more than the newest sessions: one a minute.
const deepLook = 6

// look lists the sessions once, at most most of each agent.
func (r *Runner) look(ctx context.Context, followers *sync.WaitGroup, most int) error {
	agents := r.spec.Agents
	if len(agents) == 0 {
		agents = []string{""}
	}
	found, waiting := map[string]bool{}, 0
	var errs []error
	for _, agent := range agents {
		n := 0
		err := r.client.find(ctx, agent, r.spec.Environments, func(listed listedSession) bool {
			found[listed.id] = true
			switch s, err := r.wants(listed); {
			case s != nil:
				followers.Go(func() { r.follow(r.following, s) })
			case errors.Is(err, errFull):
				waiting++
			}
			n++
			return n < most
		})
		if ctx.Err() != nil || errors.Is(err, Auth) {
			return err
		}
		errs = append(errs, err) // continue with the other agents
	}
	if most == maxFound {
		r.logWaiting(waiting)
	}
	if err := errors.Join(errs...); err != nil || most < maxFound {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.resting, func(id, _ string) bool { return !found[id] })
	return nil
}

// logWaiting logs how many sessions have to wait, when the number changes.
func (r *Runner) logWaiting(waiting int) {
	if waiting > 0 && waiting != r.waiting {
		r.logger.Warn("sessions have to wait: the limit of followed sessions is reached", "waiting", waiting,
			"followed", maxSessions)
	}
	r.waiting = waiting
}

// forGood is the stamp of a session that is never followed again.
const forGood = "for good"

// errFull means that maxSessions are followed.
var errFull = errors.New("too many sessions are followed")

// wants returns the session if it should be followed and is not yet, else nil. It fails with errFull.
func (r *Runner) wants(found listedSession) (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[found.id]; s != nil {
		s.stamp = found.stamp
		return nil, nil
	}
	if stamp, rests := r.resting[found.id]; found.ended || rests && (stamp == found.stamp || stamp == forGood) {
		return nil, nil
	}
	if len(r.sessions) >= maxSessions {
		return nil, errFull
	}
	delete(r.resting, found.id)
	s := r.add(found.id, false)
	s.stamp, s.idle, s.busy = found.stamp, found.idle, earlier(found.updated, time.Now())
	s.tools = found.tools()
	return s, nil
}

// named returns the sessions of Spec.Sessions without duplicates.
func (r *Runner) named() (list []*session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.spec.Sessions {
		if r.sessions[id] == nil {
			list = append(list, r.add(id, true))
		}
	}
	return list
}

// add registers a followed session. Callers hold mu.
func (r *Runner) add(id string, named bool) *session {
	s := newSession(r, id, named)
	r.sessions[id] = s
	r.options.Observer.AgentSessions(1)
	return s
}

// follow follows a session until it ends, is idle for long, or ctx ends.
func (r *Runner) follow(ctx context.Context, s *session) {
	err := s.follow(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.id)
	r.options.Observer.AgentSessions(-1)
	switch {
	case errors.Is(err, errRests), errors.Is(err, errForbidden):
		r.resting[s.id] = s.stamp
	case errors.Is(err, errFlooded):
		r.resting[s.id] = forGood
	}
}

// maxBackoff bounds the wait before a retry.
const maxBackoff = 30 * time.Second

// backoff returns an exponential wait with jitter.
func (r *Runner) backoff(failures int) time.Duration { return backoff(r.timing.retry, failures) }

func backoff(first time.Duration, failures int) time.Duration {
	return retry.Backoff(failures-1, first, maxBackoff)
}
