package background

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// startLocal runs the jobs in the process that holds the lock.
func startLocal(_ context.Context, s *store.Store, logger *slog.Logger, jobs []Job) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			if err := lead(ctx, s, logger, jobs); err != nil && !errors.Is(err, store.ErrLocked) && ctx.Err() == nil {
				logger.Warn("background jobs cannot run", "err", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(takeOver):
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}, nil
}

// lead tries to acquire the lock, without waiting, and runs the jobs while it holds it.
func lead(ctx context.Context, s *store.Store, logger *slog.Logger, jobs []Job) error {
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, release, err := s.Lock(soon, "background jobs")
	if err != nil {
		return err
	}
	defer release()
	var work sync.WaitGroup
	for _, j := range jobs {
		work.Go(func() { j.repeat(ctx, logger) })
	}
	work.Wait()
	return nil
}

// repeat runs a job until ctx ends. Changes of the wall clock do not matter.
func (j *Job) repeat(ctx context.Context, logger *slog.Logger) {
	ticker := time.NewTicker(j.Every)
	defer ticker.Stop()
	for {
		_ = j.run(ctx, logger) // logs the error
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
