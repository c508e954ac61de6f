// Command slack is a plugin with one tool, which sends a direct message to a member of a Slack workspace.
//
// A message is opened for (conversations.open) and then posted (chat.postMessage). The host puts the bot's token in; nothing
// here knows it. What a model writes is text: it cannot mention a channel or disguise a link, and nothing in it is unfurled.
// A post is sent once: if the answer is lost, the caller is told that the message may have arrived.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hako-run/hako/pdk"
)

func init() {
	pdk.HandleTool("send_slack_dm", func(ctx context.Context, in arguments) (*pdk.Result, error) {
		result, err := send(ctx, in)
		var f *failure
		if errors.As(err, &f) {
			return nil, errors.New(pick(ctx, f.en, f.ja))
		}
		return result, err
	})
}

func main() {}

// arguments are the tool's; the manifest's input schema says what they mean, and bounds the message.
type arguments struct {
	User    string `json:"user_id"`
	Message string `json:"message"`
}

// sent is the tool's structured content.
type sent struct {
	User    string `json:"user_id"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

func send(ctx context.Context, in arguments) (*pdk.Result, error) {
	slack, err := newClient(ctx)
	if err != nil {
		return nil, err
	}
	channel, err := slack.open(ctx, in.User)
	if err != nil {
		return nil, err
	}
	ts, err := slack.post(ctx, channel, escape(in.Message))
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(pick(ctx, "Sent to %s.", "%s に送信しました。"), in.User)
	return pdk.Text(text).WithStructured(sent{in.User, channel, ts}), nil
}

// escape makes text of what Slack would read as a mention or a link (https://docs.slack.dev/messaging/formatting-message-text).
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// failure is a text in two languages, safe to show to a model.
type failure struct{ en, ja string }

func (f *failure) Error() string { return f.en }

// fail formats a failure; both formats get the same arguments.
func fail(en, ja string, args ...any) *failure {
	return &failure{fmt.Sprintf(en, args...), fmt.Sprintf(ja, args...)}
}

// pick returns the text in the caller's language.
func pick(ctx context.Context, en, ja string) string {
	if language, _, _ := strings.Cut(pdk.Locale(ctx), "-"); strings.EqualFold(language, "ja") {
		return ja
	}
	return en
}
