package audit_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/hako-run/hako/host/govern/audit"
)

// failingAppender fails for the outcomes in it, and keeps the outcomes of all other events.
type failingAppender struct {
	fails    []string
	outcomes []string
}

func (a *failingAppender) Append(_ context.Context, e *audit.Event) error {
	if slices.Contains(a.fails, e.Outcome) {
		return errors.New("the disk is full")
	}
	a.outcomes = append(a.outcomes, e.Outcome)
	return nil
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	broken := errors.New("the operation fails")
	for name, test := range map[string]struct {
		fails    []string
		optional bool
		failure  error
		done     bool
		want     error
		outcomes []string
		reported int
	}{
		"recorded":               {done: true, outcomes: []string{"begun", "ok"}},
		"fails":                  {failure: broken, done: true, want: broken, outcomes: []string{"begun", "failed"}},
		"no record of the start": {fails: []string{"begun"}, want: audit.ErrUnrecorded, reported: 1},
		"optional": {fails: []string{"begun"}, optional: true, done: true, outcomes: []string{"ok"},
			reported: 1},
		"no record of the end":    {fails: []string{"ok"}, done: true, outcomes: []string{"begun"}, reported: 1},
		"optional, nothing works": {fails: []string{"begun", "ok"}, optional: true, done: true, reported: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, done, reported := &failingAppender{fails: test.fails}, false, 0
			r := &audit.Recorder{Log: log, Optional: test.optional, Unrecorded: func(*audit.Operation, string,
				error) {
				reported++
			}}
			err := r.Do(t.Context(), &audit.Operation{Action: "plugin.approve"},
				func() error { done = true; return test.failure })
			if !errors.Is(err, test.want) || done != test.done || reported != test.reported ||
				!slices.Equal(log.outcomes, test.outcomes) {
				t.Errorf("error %v, done %t, reported %d, recorded %q", err, done, reported, log.outcomes)
			}
		})
	}
	if err := new(audit.Recorder).Do(t.Context(), new(audit.Operation), func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("without a log: %v", err)
	}
}

// TestRecorderRecordsTheEnd: an operation whose context ends while it runs has a record of its end.
func TestRecorderRecordsTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var ended error
	r := &audit.Recorder{Log: appenderFunc(func(ctx context.Context, _ *audit.Event) error {
		ended = ctx.Err()
		return nil
	})}
	if err := r.Do(ctx, new(audit.Operation), func() error { cancel(); return nil }); err != nil || ended != nil {
		t.Errorf("%v; the context of the last record: %v", err, ended)
	}
}

type appenderFunc func(context.Context, *audit.Event) error

func (f appenderFunc) Append(ctx context.Context, e *audit.Event) error { return f(ctx, e) }
