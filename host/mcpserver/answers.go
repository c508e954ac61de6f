package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
)

// This file is how requests of the server's to clients, such as for a form, are answered at any replica. The SDK
// numbers them, for each session and replica anew; on their way to the client the replica's ID goes before the number.
// An answer with another replica's ID is sent there. Answers of the era without sessions are whole requests: see
// handon.go.

// outgoing is how a request to a client begins in the SDK's encoding, withdrawal how the news begins that one needs no
// answer any more.
var (
	outgoing   = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":(\d+),"method":"`)
	withdrawal = []byte(`{"jsonrpc":"2.0","method":"` + methodCancelled + `"`)
)

const methodCancelled = "notifications/cancelled"

// tagged puts the replica into the ID of a request to a client, also where that is withdrawn. Other messages stay as
// they are.
func tagged(data []byte, replica string) []byte {
	if bytes.HasPrefix(data, withdrawal) {
		return taggedWithdrawal(data, replica)
	}
	at := outgoing.FindSubmatchIndex(data)
	if at == nil {
		return data
	}
	return bytes.Join([][]byte{data[:at[2]], []byte(`"` + replica + "-"), data[at[2]:at[3]], []byte(`"`), data[at[3]:]},
		nil)
}

func taggedWithdrawal(data []byte, replica string) []byte {
	var message struct {
		Params map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(data, &message) != nil {
		return data
	}
	number := message.Params["requestId"]
	if _, err := strconv.ParseUint(string(number), 10, 63); err != nil {
		return data
	}
	message.Params["requestId"] = mustJSON(replica + "-" + string(number))
	end := data[len(bytes.TrimRight(data, "\n")):]
	return append(mustJSON(map[string]any{"jsonrpc": "2.0", "method": methodCancelled, "params": message.Params}),
		end...)
}

// taggedEvent is tagged for a whole server-sent event.
func taggedEvent(event []byte, replica string) []byte {
	before, data, ok := bytes.Cut(event, []byte("data: "))
	if !ok {
		return event
	}
	return slices.Concat(before, []byte("data: "), tagged(data, replica))
}

// untagged takes the replica out of the ID of a client's answer. ok is false for every other message.
func untagged(body []byte) (replica string, bare []byte, ok bool) {
	var members map[string]json.RawMessage
	var id string
	if json.Unmarshal(body, &members) != nil || members["method"] != nil || json.Unmarshal(members["id"], &id) != nil {
		return "", nil, false
	}
	replica, number, ok := strings.Cut(id, "-")
	if _, err := strconv.ParseUint(number, 10, 63); !ok || err != nil {
		return "", nil, false
	}
	members["id"] = json.RawMessage(number)
	return replica, mustJSON(members), true
}

// route sends messages, one or a batch, to the replicas that wait for them. It returns what the SDK here is to have of
// it, or nil if that is nothing.
func (h *shared) route(ctx context.Context, session *session, body []byte) ([]byte, error) {
	var batch, rest []json.RawMessage
	switch {
	case json.Unmarshal(body, &batch) != nil:
		return h.routeOne(ctx, session, body)
	}
	for _, message := range batch {
		own, err := h.routeOne(ctx, session, message)
		if err != nil {
			return nil, err
		}
		if own != nil {
			rest = append(rest, own)
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	return mustJSON(rest), nil
}

func (h *shared) routeOne(ctx context.Context, session *session, body []byte) ([]byte, error) {
	mail := func(body []byte) sessionstore.Mail {
		sealed := sessionstore.Seal(session.id, sessionstore.MailPlace(sessionstore.Message, ""), body)
		return sessionstore.Mail{Kind: sessionstore.Message, Session: session.key, Body: sealed}
	}
	if envelopeOf(body).Method == methodCancelled {
		return body, h.store.Send(ctx, mail(body))
	}
	replica, bare, ok := untagged(body)
	switch {
	case !ok:
		return body, nil
	case replica == h.store.Replica():
		return bare, nil
	}
	_, err := h.store.SendTo(ctx, replica, mail(bare)) // at a replica that is no more nobody waits
	return nil, err
}

// serve serves a request in a session, by this replica's SDK or by sending it on.
func (h *shared) serve(w *response, r *http.Request, over *exchange, session *session, body []byte) {
	body, err := h.route(r.Context(), session, body)
	if err == nil && body == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if err == nil {
		err = h.revive(r.Context(), session)
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	w.replica = h.store.Replica()
	over.requests = requestIDs(body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.server.legacy.ServeHTTP(w, r)
}

// requestIDs are those of the requests in a message or a batch.
func requestIDs(body []byte) (ids []json.RawMessage) {
	type part struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	var one part
	var batch []part
	if json.Unmarshal(body, &one) == nil {
		batch = []part{one}
	} else if json.Unmarshal(body, &batch) != nil {
		return nil
	}
	for _, p := range batch {
		if p.Method != "" && p.ID != nil {
			ids = append(ids, p.ID)
		}
	}
	return ids
}
