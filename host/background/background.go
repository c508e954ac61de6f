// Package background does what has to be done from time to time by one of the processes that share a store, whichever it is.
//
// Over PostgreSQL the jobs are those of river, a queue in the database: its leader adds each when it is due, any replica takes it, and
// another one becomes the leader within 20 seconds when that dies. In a directory the process that holds a lock runs them, and another one
// takes over within 3 seconds. Either way a job runs about as often as it asks for, at most once at a time as far as anybody can tell, and
// again after a process died in the midst of it: so it must do no harm when it is done twice.
package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host/store"
)

// Job is something to do from time to time.
type Job struct {
	// Name is unique, and stays the same from version to version.
	Name string
	// Every is how often, at least a second.
	Every time.Duration
	// Run does it, within a minute. Its error is logged, and it is run again when it is due.
	Run func(context.Context) error
}

const (
	// jobTime bounds one run of a job.
	jobTime = time.Minute
	// takeOver is how often a process looks whether the one that runs the jobs of a directory has gone.
	takeOver = 3 * time.Second
)

// Runner runs jobs until Close.
type Runner struct {
	close func()
}

// Start runs jobs, the first time soon, unless another process over the store does. Each process that shares the store calls it with the
// same jobs. It fails if the queue's tables cannot be made in the store, or with a job that is not whole. The caller closes the Runner before
// the store. A nil logger discards.
func Start(ctx context.Context, s *store.Store, logger *slog.Logger, jobs ...Job) (*Runner, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	names := map[string]bool{}
	for _, j := range jobs {
		if j.Name == "" || names[j.Name] || j.Every < time.Second || j.Run == nil {
			return nil, fmt.Errorf("background: the job %q is not whole: it needs a name of its own, something to run, and a second between runs", j.Name)
		}
		names[j.Name] = true
	}
	start := startLocal
	if s.Shared() {
		start = startQueue
	}
	stop, err := start(ctx, s, logger, jobs)
	if err != nil {
		return nil, fmt.Errorf("background jobs: %w", err)
	}
	return &Runner{stop}, nil
}

// Close stops, and waits for jobs that run, whose context ends; over PostgreSQL for up to 5 seconds. It may be called twice.
func (r *Runner) Close() { r.close() }

// run runs a job once.
func (j *Job) run(ctx context.Context, logger *slog.Logger) error {
	inTime, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	begin := time.Now()
	err := j.Run(inTime)
	switch {
	case err == nil:
		logger.Debug("background job", "job", j.Name, "duration", time.Since(begin))
	case ctx.Err() == nil && !errors.Is(err, context.Canceled):
		logger.Warn("a background job failed, and is tried again when it is due", "job", j.Name, "err", err)
	}
	return err
}
