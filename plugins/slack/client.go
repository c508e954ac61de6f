package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	defaultBaseURL = "https://slack.com/api"
	userAgent      = "hako-slack/0.1 (+https://github.com/hako-run/hako)"
	// maxBody bounds an answer, in bytes; those of the methods used here have less than 4 KiB.
	maxBody = 256 << 10
)

// client calls methods of Slack's Web API.
type client struct{ base string }

func newClient(ctx context.Context) (*client, error) {
	config := struct {
		BaseURL string `json:"base_url"`
	}{defaultBaseURL}
	if err := pdk.Config(ctx, &config); err != nil {
		return nil, err
	}
	return &client{strings.TrimRight(config.BaseURL, "/")}, nil
}

// answer is the response of both methods, as far as it is used.
type answer struct {
	OK       bool       `json:"ok"`
	Error    string     `json:"error"`
	Needed   string     `json:"needed"`
	Provided string     `json:"provided"`
	TS       string     `json:"ts"`
	Channel  channelRef `json:"channel"`
	Details  struct {
		Messages []string `json:"messages"`
	} `json:"response_metadata"`
}

// channelRef is a conversation: an object with an ID from one method, the bare ID from the other.
type channelRef struct{ id string }

func (c *channelRef) UnmarshalJSON(data []byte) error {
	var object struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &c.id) == nil {
		return nil
	}
	err := json.Unmarshal(data, &object)
	c.id = object.ID
	return err
}

// open returns the conversation with a user. It sends nothing that anybody sees.
func (c *client) open(ctx context.Context, user string) (channel string, err error) {
	a, err := c.call(ctx, "conversations.open", map[string]any{"users": user})
	if err == nil && a.Channel.id == "" {
		err = fail("Slack opened the conversation but did not name it (no channel.id)",
			"Slack の応答に会話の ID (channel.id) がありません")
	}
	if u := (*uncertain)(nil); errors.As(err, &u) {
		return "", fail("%w. Nothing was sent: try again", "%w。メッセージは送られていません。もう一度試してください", u.error)
	}
	if err != nil {
		return "", err
	}
	return a.Channel.id, nil
}

// post posts text and returns the message's timestamp, its name in the conversation.
func (c *client) post(ctx context.Context, channel, text string) (ts string, err error) {
	a, err := c.call(ctx, "chat.postMessage", map[string]any{"channel": channel, "text": text, "unfurl_links": false,
		"unfurl_media": false})
	if err == nil && a.TS == "" {
		err = &uncertain{fail("Slack did not say that the message was posted (no ts)", "Slack の応答に投稿の時刻 (ts) がありません")}
	}
	if u := (*uncertain)(nil); errors.As(err, &u) {
		return "", fail("%w. The message may have been sent: ask the user before sending it again",
			"%w。メッセージが送られた可能性があります。再送してよいか利用者に確認してください", u.error)
	}
	if err != nil {
		return "", err
	}
	return a.TS, nil
}

// uncertain is a failure after which Slack may nevertheless have done what it was asked to.
type uncertain struct{ error }

// call calls a method and returns its answer if it says ok.
func (c *client) call(ctx context.Context, method string, arguments map[string]any) (*answer, error) {
	body, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{
		Method: "POST", URL: c.base + "/" + method, Body: body, MaxBody: maxBody,
		Header: map[string]string{"Content-Type": "application/json; charset=utf-8", "User-Agent": userAgent},
	})
	if err != nil {
		return nil, unreached(err)
	}
	var a answer
	broken := json.Unmarshal(response.Body, &a)
	switch {
	case response.Status == 429 || a.Error == "ratelimited" || a.Error == "rate_limited":
		return nil, fail(
			"Slack limits how often messages are sent (%s). This one was not sent: try again in %s seconds",
			"Slack の送信回数の上限に達しました (%s)。このメッセージは送られていません。%s 秒後にもう一度試してください",
			cmp.Or(a.Error, "HTTP 429"), pause(response))
	case response.Status != 200:
		return nil, &uncertain{fail("Slack failed (%s: HTTP %d)", "Slack でエラーが起きました (%s: HTTP %d)", method,
			response.Status)}
	case broken != nil:
		return nil, &uncertain{fail("Slack's answer is not of the expected shape (%s: %v)",
			"Slack の応答が想定した形ではありません (%s: %v)", method, broken)}
	case !a.OK:
		return nil, refused(method, &a)
	}
	return &a, nil
}

// unreached explains an error of the host: no answer, or not all of it.
func unreached(err error) error {
	own := &abi.Error{Code: abi.CodeNetwork, Message: err.Error()}
	errors.As(err, &own)
	if own.Code == abi.CodeNotGranted || own.Code == abi.CodeInvalid || own.Code == abi.CodeCredential {
		return err
	}
	return &uncertain{fail("no answer from Slack (%s)", "Slack から応答がありません (%s)", own.Message)}
}

// pause is for how many seconds a service wants to be left alone. It may also name a date; 30 are good enough
// then.
func pause(response *pdk.HTTPResponse) string {
	if seconds := response.Header["Retry-After"]; seconds != "" && len(seconds) < 6 &&
		strings.Trim(seconds, "0123456789") == "" {
		return seconds
	}
	return "30"
}
