package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// receive acts on mail of another replica.
func (rs *replicas) receive(mail sessionstore.Mail) {
	switch mail.Kind {
	case sessionstore.Updated:
		var topics []string
		if json.Unmarshal([]byte(mail.Body), &topics) == nil {
			rs.server.subscriptions.handleRemoteUpdates(topics)
		}
		return
	case sessionstore.Request:
		rs.serveForwarded(mail)
		return
	case sessionstore.Left:
		rs.forwarded.cancel(mail.Body)
		return
	}
	session := rs.server.sessions.byStoreKey(mail.Session)
	if session == nil {
		return // the session is not here, so nobody waits
	}
	switch mail.Kind {
	case sessionstore.Ended:
		rs.server.sessions.drop(session)
	case sessionstore.Changed:
		rs.work.Go(func() { rs.changed(session) })
	case sessionstore.Message:
		body, err := sessionstore.Unseal(session.id, sessionstore.MailPlace(mail.Kind, ""), mail.Body)
		if err != nil {
			return
		}
		if message, err := jsonrpc.DecodeMessage(body); err == nil {
			rs.work.Go(func() { rs.deliver(session, message) })
		}
	}
}

// deliver delivers a message that arrived at another replica to the request that waits for it here.
func (rs *replicas) deliver(session *session, message jsonrpc.Message) {
	rs.server.cancelled(session, message)
	if conn, _ := rs.server.sessions.connectionOf(session); conn != nil {
		conn.Deliver(message)
	}
}

// sendUpdates notifies the other replicas of resources that have changed.
func (rs *replicas) sendUpdates(topics []string) {
	if rs.shared == nil {
		return
	}
	ctx, cancel := context.WithTimeout(rs.ctx, lookupTime)
	defer cancel()
	mail := sessionstore.Mail{Kind: sessionstore.Updated, Body: string(mustJSON(topics))}
	if err := rs.shared.Send(ctx, mail); err != nil && rs.ctx.Err() == nil {
		rs.server.options.Logger.Warn("clients at other replicas are not notified of resources that changed",
			"err", err)
	}
}

// route sends messages of a session to the replicas that wait for them: a response to the replica that sent the
// request, a cancellation to all. It returns the messages for this replica.
func (rs *replicas) route(ctx context.Context, session *session,
	messages []jsonrpc.Message) ([]jsonrpc.Message, error) {
	var own []jsonrpc.Message
	for _, message := range messages {
		switch m := message.(type) {
		case *jsonrpc.Response:
			replica, bare, ok := transport.Untag(m)
			if ok && replica != rs.own() {
				if err := rs.sendMessage(ctx, session, bare, replica); err != nil {
					return nil, err
				}
				continue
			}
			if ok {
				message = bare
			}
		case *jsonrpc.Request:
			if m.Method == transport.MethodCancelled {
				if err := rs.sendMessage(ctx, session, m, ""); err != nil {
					return nil, err
				}
				rs.server.cancelled(session, m)
			}
		}
		own = append(own, message)
	}
	return own, nil
}

// sendMessage sends a message of a session's client to a replica, or to all others if replica is empty.
func (rs *replicas) sendMessage(ctx context.Context, session *session, message jsonrpc.Message, replica string) error {
	if rs.shared == nil {
		return nil
	}
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	mail := sessionstore.Mail{Kind: sessionstore.Message, Session: session.key,
		Body: sessionstore.Seal(session.id, sessionstore.MailPlace(sessionstore.Message, ""), data)}
	if replica == "" {
		return rs.shared.Send(ctx, mail)
	}
	_, err = rs.shared.SendTo(ctx, replica, mail) // a replica that has ended waits for nothing
	return err
}

// mustJSON encodes values that always have a form in JSON.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
