package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/mcpserver/transport"
)

// restore connects the SDK to a session that has no connection at this replica, with the state that is in the store.
func (h *replicas) restore(ctx context.Context, session *session) error {
	session.restoring.Lock()
	defer session.restoring.Unlock()
	if conn, _ := h.server.sessions.connectionOf(session); conn != nil {
		return nil
	}
	found, err := h.store.Find(ctx, session.key)
	if err != nil {
		return err
	}
	opened := new(mcp.InitializeParams)
	if err := json.Unmarshal(found.Opening, opened); err != nil {
		return err
	}
	conn := transport.NewConn(session.id, h.store.Replica())
	state := &mcp.ServerSessionState{
		InitializeParams: opened, InitializedParams: new(mcp.InitializedParams),
		NegotiatedProtocolVersion: opened.ProtocolVersion,
		//lint:ignore SA1019 deprecated in 2026-07-28, and still there for clients of its time
		LogLevel: mcp.LoggingLevel(found.Level),
	}
	sdk, err := h.server.sdk.Connect(context.Background(), conn, &mcp.ServerSessionOptions{State: state})
	if err != nil {
		return err
	}
	if !h.server.sessions.attach(session, conn, sdk) {
		_ = sdk.Close() // the session has ended meanwhile
		return sessionstore.ErrNone
	}
	h.server.subscriptions.set(sdk, conn, tenantOf(session.identity), found.Subscriptions)
	return nil
}

// changed takes over the subscriptions that a session has made at another replica.
func (h *replicas) changed(session *session) {
	session.restoring.Lock()
	defer session.restoring.Unlock()
	conn, sdk := h.server.sessions.connectionOf(session)
	if sdk == nil {
		return // restore reads them from the store later
	}
	if found, err := h.store.Find(h.ctx, session.key); err == nil {
		h.server.subscriptions.set(sdk, conn, tenantOf(session.identity), found.Subscriptions)
	}
}

// receive acts on mail of another replica.
func (h *replicas) receive(mail sessionstore.Mail) {
	switch mail.Kind {
	case sessionstore.Updated:
		var topics []string
		if json.Unmarshal([]byte(mail.Body), &topics) == nil {
			h.server.subscriptions.handleRemoteUpdates(topics)
		}
		return
	case sessionstore.Request:
		h.serveForwarded(mail)
		return
	case sessionstore.Left:
		h.forwarded.cancel(mail.Body)
		return
	}
	session := h.server.sessions.byStoreKey(mail.Session)
	if session == nil {
		return // the session is not here, so nobody waits
	}
	switch mail.Kind {
	case sessionstore.Ended:
		h.server.sessions.drop(session)
	case sessionstore.Changed:
		h.work.Go(func() { h.changed(session) })
	case sessionstore.Message:
		body, err := sessionstore.Unseal(session.id, sessionstore.MailPlace(mail.Kind, ""), mail.Body)
		if err != nil {
			return
		}
		if message, err := jsonrpc.DecodeMessage(body); err == nil {
			h.work.Go(func() { h.deliver(session, message) })
		}
	}
}

// deliver delivers a message that arrived at another replica to the request that waits for it here.
func (h *replicas) deliver(session *session, message jsonrpc.Message) {
	h.server.cancelled(session, message)
	if conn, _ := h.server.sessions.connectionOf(session); conn != nil {
		conn.Deliver(message)
	}
}

// sendUpdates notifies the other replicas of resources that have changed.
func (h *replicas) sendUpdates(topics []string) {
	ctx, cancel := context.WithTimeout(h.ctx, lookupTime)
	defer cancel()
	mail := sessionstore.Mail{Kind: sessionstore.Updated, Body: string(mustJSON(topics))}
	if err := h.store.Send(ctx, mail); err != nil && h.ctx.Err() == nil {
		h.server.options.Logger.Warn("clients at other replicas are not notified of resources that changed", "err", err)
	}
}

// route sends messages of a session to the replicas that wait for them: a response to the replica that sent the
// request, a cancellation to all. It returns the messages for this replica.
func (h *replicas) route(ctx context.Context, session *session, messages []jsonrpc.Message) ([]jsonrpc.Message, error) {
	var own []jsonrpc.Message
	for _, message := range messages {
		switch m := message.(type) {
		case *jsonrpc.Response:
			replica, bare, ok := transport.Untag(m)
			if ok && replica != h.store.Replica() {
				mail, err := h.mailOf(session, bare)
				if err == nil {
					_, err = h.store.SendTo(ctx, replica, mail) // a replica that has ended waits for nothing
				}
				if err != nil {
					return nil, err
				}
				continue
			}
			if ok {
				message = bare
			}
		case *jsonrpc.Request:
			if m.Method == transport.MethodCancelled {
				mail, err := h.mailOf(session, m)
				if err == nil {
					err = h.store.Send(ctx, mail)
				}
				if err != nil {
					return nil, err
				}
				h.server.cancelled(session, m)
			}
		}
		own = append(own, message)
	}
	return own, nil
}

func (h *replicas) mailOf(session *session, message jsonrpc.Message) (sessionstore.Mail, error) {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return sessionstore.Mail{}, err
	}
	return sessionstore.Mail{Kind: sessionstore.Message, Session: session.key,
		Body: sessionstore.Seal(session.id, sessionstore.MailPlace(sessionstore.Message, ""), data)}, nil
}

// mustJSON encodes values that always have a form in JSON.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
