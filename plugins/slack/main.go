// Command slack is a plugin that finds members of a Slack workspace by name and sends direct messages to them.
//
// A message is opened for (conversations.open) and then posted (chat.postMessage). The host puts the bot's token in;
// nothing here knows it. What a model writes is text: it cannot mention a channel or disguise a link, and nothing in it
// is unfurled. A post is sent once: if the answer is lost, the result says that the message may have arrived.
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/locale"
)

func init() {
	pdk.HandleTool("send_slack_dm", send)
	pdk.HandleTool("find_slack_user", find)
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
	text := fmt.Sprintf(locale.Text{"en": "Sent to %s.", "ja": "%s に送信しました。"}.In(pdk.Locale(ctx)), in.User)
	return pdk.Text(text).WithStructured(sent{in.User, channel, ts}), nil
}

// escape makes text of what Slack would read as a mention or a link
// (https://docs.slack.dev/messaging/formatting-message-text).
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// fail formats a failure, safe to show to a model; both formats get the same arguments.
func fail(en, ja string, args ...any) error { return locale.Text{"en": en, "ja": ja}.Errorf(args...) }
