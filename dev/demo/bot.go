package demo

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/dev/fakes"
)

// RunBot runs a bot, and once it is connected to the fake Slack, people. It ends when one of them does.
func RunBot(ctx context.Context, bot func(context.Context) error, f *fakes.Fakes,
	people func(context.Context) error) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return bot(ctx) })
	group.Go(func() error {
		defer leave()
		for f.Slack.Connections() == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(10 * time.Millisecond):
			}
		}
		return people(ctx)
	})
	return group.Wait()
}
