package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
)

// revive makes the SDK's session where this replica has none yet.
func (h *shared) revive(ctx context.Context, session *session) error {
	session.reviving.Lock()
	defer session.reviving.Unlock()
	if h.server.sessions.sdkOf(session) != nil {
		return nil
	}
	if err := h.server.sessions.closed(ctx, session.id); err != nil {
		return err
	}
	found, err := h.store.Find(ctx, session.key)
	if err != nil {
		return err
	}
	var answer discard
	r := session.request(h.ctx, once("initialize", found.Opening))
	r.Header.Del("Mcp-Session-Id")
	h.naming.serve(h.server.legacy, session.id, &answer, r)
	if answer.status != http.StatusOK || h.server.sessions.sdkOf(session) == nil {
		return fmt.Errorf("the session cannot be made anew: %d", answer.status)
	}
	h.replay(session, notification("notifications/initialized"))
	h.align(session, found)
	return nil
}

// align makes the SDK's session have the level and the subscriptions that the store has. Nobody else does so at the
// same time.
func (h *shared) align(session *session, found *sessionstore.Session) {
	if found.Level != "" && found.Level != session.level {
		h.replay(session, once("logging/setLevel", mustJSON(map[string]string{"level": found.Level})))
		session.level = found.Level
	}
	have := h.server.subscriptions.of(h.server.sessions.sdkOf(session))
	for _, uri := range found.Subscriptions {
		if !slices.Contains(have, uri) {
			h.replay(session, once("resources/subscribe", mustJSON(map[string]string{"uri": uri})))
		}
	}
	for _, uri := range have {
		if !slices.Contains(found.Subscriptions, uri) {
			h.replay(session, once("resources/unsubscribe", mustJSON(map[string]string{"uri": uri})))
		}
	}
}

// replay sends a message of the session's client to the SDK once more. What the SDK has to say to it was said when it
// came first.
func (h *shared) replay(session *session, body []byte) {
	h.server.legacy.ServeHTTP(new(discard), session.request(h.ctx, body))
}

// request is one as the session's client would send it.
func (s *session) request(ctx context.Context, body []byte) *http.Request {
	r := &http.Request{Method: http.MethodPost, Header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Session-Id": {s.id},
	}, Body: io.NopCloser(bytes.NewReader(body))}
	if withSession[s.version] {
		r.Header.Set("Mcp-Protocol-Version", s.version)
	}
	over := &exchange{identity: s.identity, address: s.address, again: s}
	return over.forSDK(r.WithContext(ctx))
}

func once(method string, params json.RawMessage) []byte {
	return mustJSON(map[string]any{"jsonrpc": "2.0", "id": "again", "method": method, "params": params})
}

func notification(method string) []byte {
	return mustJSON(map[string]any{"jsonrpc": "2.0", "method": method})
}

// mustJSON encodes what always has a form in JSON.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// discard takes an answer that nobody reads.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header {
	if d.header == nil {
		d.header = http.Header{}
	}
	return d.header
}

func (d *discard) WriteHeader(status int) {
	if d.status == 0 {
		d.status = status
	}
}

func (d *discard) Write(data []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	return len(data), nil
}

func (d *discard) Flush() {}

// take acts on what another replica tells.
func (h *shared) take(mail sessionstore.Mail) {
	switch mail.Kind {
	case sessionstore.Updated:
		var topics []string
		if json.Unmarshal([]byte(mail.Body), &topics) == nil {
			h.server.subscriptions.updatedElsewhere(topics)
		}
		return
	case sessionstore.Request:
		h.serveHandedOn(mail)
		return
	case sessionstore.Left:
		h.handed.leave(mail.Body)
		return
	}
	session := h.server.sessions.byStoreKey(mail.Session)
	if session == nil {
		return // it is not known here, and then has nobody who waits
	}
	switch mail.Kind {
	case sessionstore.Ended:
		h.server.sessions.drop(session)
	case sessionstore.Changed:
		h.work.Go(func() { h.changed(session) })
	case sessionstore.Message:
		if body, err := sessionstore.Unseal(session.id, sessionstore.MailPlace(mail.Kind, ""), mail.Body); err == nil {
			h.work.Go(func() { h.passOn(session, body) })
		}
	}
}

// sendUpdates tells the other replicas which resources have changed.
func (h *shared) sendUpdates(topics []string) {
	ctx, cancel := context.WithTimeout(h.ctx, lookupTime)
	defer cancel()
	if err := h.store.Send(ctx, sessionstore.Mail{Kind: sessionstore.Updated, Body: string(mustJSON(topics))}); err != nil && h.ctx.Err() == nil {
		h.server.options.Logger.Warn("clients at other replicas are not told of resources that changed", "err", err)
	}
}

// changed takes up another level and other subscriptions.
func (h *shared) changed(session *session) {
	session.reviving.Lock()
	defer session.reviving.Unlock()
	if h.server.sessions.sdkOf(session) == nil {
		return // it will be made of what is in the store then
	}
	if found, err := h.store.Find(h.ctx, session.key); err == nil {
		h.align(session, found)
	}
}

// passOn hands a message that arrived at another replica to whoever waits for it here.
func (h *shared) passOn(session *session, body []byte) {
	e := envelopeOf(body)
	if e.Method == methodCancelled {
		var cancelled struct{ Params mcp.CancelledParams }
		if json.Unmarshal(body, &cancelled) == nil {
			h.server.sessions.cancel(session.id, cancelled.Params.RequestID)
		}
	}
	if h.server.sessions.sdkOf(session) != nil {
		h.replay(session, body)
	}
}
