package slackbot

import (
	"context"

	"github.com/slack-go/slack"
)

// This file has all requests that put a message into Slack, streamed ones aside: those have no unfurling
// (docs.slack.dev/reference/methods).

// quiet keeps Slack from fetching what a message links to, pages and pictures, and from showing it.
var quiet = slack.MsgOptionCompose(slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())

// post makes a message, and returns where it is.
func (w *workspace) post(ctx context.Context, channel string, options ...slack.MsgOption) (in, ts string, err error) {
	return w.account.Load().api.PostMessageContext(ctx, channel, append(options, quiet)...)
}

// postTo makes a message that only user sees.
func (w *workspace) postTo(ctx context.Context, channel, user string, options ...slack.MsgOption) error {
	_, err := w.account.Load().api.PostEphemeralContext(ctx, channel, user, append(options, quiet)...)
	return err
}

// rewrite changes a message.
func (w *workspace) rewrite(ctx context.Context, channel, ts string, options ...slack.MsgOption) error {
	_, _, _, err := w.account.Load().api.UpdateMessageContext(ctx, channel, ts, append(options, quiet)...)
	return err
}
