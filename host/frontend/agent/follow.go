package agent

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// errSilent is the reason for reopening a silent stream, which is no failure.
var errSilent = errors.New("the stream was silent")

// overlap is the time span that is listed again: events are ordered by processing time, and some are queued.
const overlap = time.Hour

// follow follows the session until an error says why it stops: ctx's, errEnded, errRests, errRetired, errForbidden or
// errFlooded.
func (s *session) follow(ctx context.Context) error {
	s.logger.Info("a session is followed")
	once := s.streaming
	if s.runner.spec.Follow == FollowPoll {
		once = s.polling
	}
	for failures := 0; ; {
		begin := time.Now()
		err := once(ctx)
		var e *Error
		switch {
		case s.ended || errors.Is(err, Gone):
			if s.named && !s.listed && !s.ended {
				s.logger.Error("there is no such session: check its ID, and that the key is of its workspace", "err",
					err)
			}
			s.end()
			return errEnded
		case ctx.Err() != nil || errors.Is(err, errRests) || errors.Is(err, errRetired):
			return err
		case s.flooded:
			s.logger.Error(
				"the session is not followed any more: it has more open calls, or more calls in all, than hako keeps")
			return errFlooded
		case s.runner.retired() && !s.hasCalls():
			return errRetired
		case errors.As(err, &e) && e.Status == http.StatusForbidden && !s.named:
			s.logger.Error("the key may not use the session, which is not followed: check its workspace", "err", err)
			return errForbidden
		case errors.Is(err, Auth):
			s.runner.fail(err)
			return err
		case errors.Is(err, errSilent):
			continue
		}
		if time.Since(begin) > maxBackoff {
			failures = 0
		}
		failures++
		s.logger.Warn("the session's event stream broke off: reconnecting", "err", err)
		if err := retry.Wait(ctx, s.runner.backoff(failures)); err != nil {
			return err
		}
	}
}

// streaming handles events from the stream. The stream omits earlier events, so it is opened first and then all are
// listed.
func (s *session) streaming(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	read, closed, err := s.runner.client.stream(ctx, s.id)
	if err != nil {
		cancel()
		return err
	}
	events, over := make(chan *event), make(chan error, 1)
	go func() {
		over <- read(func(e *event) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		}, s.odd)
	}()
	defer func() {
		cancel()
		closed()
		<-over
	}()
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	silence, tick := time.NewTimer(s.runner.timing.silence), time.NewTicker(s.runner.timing.tick)
	defer silence.Stop()
	defer tick.Stop()
	for !s.ended {
		if err := s.stopReason(); err != nil {
			return err
		}
		select {
		case e := <-events:
			s.handle(e)
			silence.Reset(s.runner.timing.silence)
		case err := <-over:
			over <- err
			if err == nil {
				err = &Error{Kind: Unavailable, Err: errors.New("the stream ended")}
			}
			return err
		case <-silence.C:
			return errSilent
		case <-s.look:
			return errSilent
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.start()
	}
	return nil
}

// polling handles events by listing them.
func (s *session) polling(ctx context.Context) error {
	for {
		if err := s.catchUp(ctx); err != nil || s.ended {
			return err
		}
		if err := s.stopReason(); err != nil {
			return err
		}
		if err := s.runner.untilPoll(ctx); err != nil {
			return err
		}
	}
}

// untilPoll waits for the next poll, which Retire triggers at once.
func (r *Runner) untilPoll(ctx context.Context) error {
	if r.retired() {
		return retry.Wait(ctx, min(r.timing.tick, r.spec.Poll))
	}
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.serving, cancel)()
	_ = retry.Wait(either, r.spec.Poll) // which of the two has ended, ctx says
	return ctx.Err()
}

// catchUp lists and handles events, then starts the calls that are still open: a later event may answer an earlier
// call.
func (s *session) catchUp(ctx context.Context) error {
	select {
	case <-s.look:
	default:
	}
	since := time.Time{}
	if s.listed {
		since = s.newest.Add(-overlap)
	}
	if err := s.runner.client.list(ctx, s.id, since, s.handle, s.odd); err != nil {
		return err
	}
	if s.flooded {
		return errFlooded
	}
	s.listed = !s.newest.IsZero()
	if !s.ended {
		s.start()
	}
	return nil
}

// odd logs an event that cannot be parsed.
func (s *session) odd(err error) { s.logger.Warn("an event was left out", "err", err) }
