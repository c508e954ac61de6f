package slackbot

import (
	"context"

	"github.com/slack-go/slack"
)

// All requests that post messages, except streamed ones, which are never unfurled (docs.slack.dev/reference/methods).

// quiet prevents Slack from fetching and showing linked pages and images.
var quiet = slack.MsgOptionCompose(slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())

// post posts a message and returns its timestamp.
func (w *workspace) post(ctx context.Context, channel string, options ...slack.MsgOption) (in, ts string, err error) {
	return w.account.Load().api.PostMessageContext(ctx, channel, append(options, quiet)...)
}

// postTo posts a message that only user sees.
func (w *workspace) postTo(ctx context.Context, channel, user string, options ...slack.MsgOption) error {
	_, err := w.account.Load().api.PostEphemeralContext(ctx, channel, user, append(options, quiet)...)
	return err
}

// rewrite updates a message.
func (w *workspace) rewrite(ctx context.Context, channel, ts string, options ...slack.MsgOption) error {
	_, _, _, err := w.account.Load().api.UpdateMessageContext(ctx, channel, ts, append(options, quiet)...)
	return err
}
