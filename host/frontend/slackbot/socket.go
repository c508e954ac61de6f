package slackbot

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/outbound"
)

// handlers bounds the concurrent envelopes of a connection. Each waits for the store, which commits many at once.
const handlers = 256

// socket handles a Socket Mode connection until it fails permanently or ctx ends. The library reconnects when Slack
// requests it.
func (w *workspace) socket(ctx context.Context, api *slack.Client) error {
	proxy := outbound.Through(func() *url.URL { return w.bot.options.Proxy })
	dialer := &websocket.Dialer{Proxy: proxy, HandshakeTimeout: requestTime}
	client := socketmode.New(api, socketmode.OptionDialer(dialer))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	w.bot.work.Go(func() {
		defer cancel()
		failed <- client.RunContext(ctx)
	})
	group := &errgroup.Group{}
	group.SetLimit(handlers)
	for {
		select {
		case e := <-client.Events:
			switch e.Type {
			case socketmode.EventTypeConnecting:
				w.became(Connecting, nil)
			case socketmode.EventTypeConnected:
				w.logger.Info("connected to Slack in Socket Mode")
				w.became(Up, nil)
				w.opened()
			}
			group.Go(func() error { w.envelope(ctx, client, e); return nil })
		case <-ctx.Done():
			_ = group.Wait() // the functions return no errors
			return <-failed
		}
	}
}

// envelope handles an envelope and acknowledges it after the event is stored.
func (w *workspace) envelope(ctx context.Context, client *socketmode.Client, e socketmode.Event) {
	id, answer := "", any(nil)
	if e.Request != nil {
		id = e.Request.EnvelopeID
	}
	switch data := e.Data.(type) {
	case slackevents.EventsAPIEvent:
		if err := w.event(ctx, data); err != nil {
			w.logger.Error("storing an event failed: Slack will send it again", "err", err)
			return
		}
	case slack.InteractionCallback:
		answer = w.interaction(ctx, &data)
	case slack.SlashCommand:
		answer = w.command(ctx, &data)
	case *socketmode.ErrorBadMessage:
		w.bot.options.Observer.SlackEvent(kindOther, resultInvalid)
		w.logger.Warn("ignored an unknown event from Slack", "err", data.Cause)
		id = envelopeOf(data.Message)
	}
	if id == "" {
		return
	}
	if err := client.AckCtx(ctx, id, answer); err != nil && ctx.Err() == nil {
		w.logger.Warn("sending an acknowledgement failed", "err", err)
	}
}

// envelopeOf returns the ID of an envelope that was not understood. It is acknowledged, because Slack would only repeat
// it.
func envelopeOf(raw json.RawMessage) string {
	var envelope struct {
		ID string `json:"envelope_id"`
	}
	_ = json.Unmarshal(raw, &envelope) // nothing can be acknowledged without an ID
	return envelope.ID
}
