package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// A client that was cut off resumes a stream at any replica (MCP 2025-11-25, transports, resumability and redelivery).
// The stream of a request is sent from the store, until its last answer. The session's own stream is not stored: it has
// only hints that lists or resources have changed, so a resumed one begins with all of them.

// eventLog keeps the events of a stream in the store.
type eventLog struct {
	store         eventStore
	session, id   string
	events, bytes int
	dropped       bool
}

// ID implements transport.EventLog.
func (l *eventLog) ID() string { return l.id }

// Append implements transport.EventLog. The stream calls it for one event after the other.
func (l *eventLog) Append(number int, data []byte, last bool) {
	l.events, l.bytes = l.events+1, l.bytes+len(data)
	l.dropped = l.dropped || !sessionstore.Room(l.events, l.bytes)
	if l.dropped && !last {
		return
	}
	// The answer must be kept although its client has left.
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	sealed := sessionstore.Seal(l.session, sessionstore.EventPlace(l.id, number), data)
	// An event that cannot be stored is missing when the client resumes; the reader of the store reports it.
	_ = l.store.Append(ctx, sessionstore.Key(l.session), l.id, sessionstore.Event{Number: number, Data: sealed}, last)
}

// keep stores the events of a stream from now on, so that the client can resume it. It reports false if no
// event is kept, or the store cannot be reached; the request is served nevertheless.
func (rs *replicas) keep(stream *transport.Stream, session string, requests []*jsonrpc.Request, prime bool) bool {
	if rs.shared == nil {
		return false
	}
	ids := make([]json.RawMessage, 0, len(requests))
	for _, request := range requests {
		ids = append(ids, mustJSON(request.ID.Raw()))
	}
	log := &eventLog{store: rs.shared, session: session, id: rand.Text()}
	ctx, cancel := context.WithTimeout(rs.ctx, lookupTime)
	defer cancel()
	if err := rs.shared.OpenStream(ctx, sessionstore.Key(session), log.id, ids); err != nil {
		return false
	}
	stream.Keep(log, prime)
	return true
}

// missed returns notifications that everything may have changed, for a client that returns to its session's own stream.
// Notifications of that stream are not stored: this is never wrong and costs no writes.
func (s *Server) missed(session *session) (all [][]byte) {
	for _, list := range []string{"tools", "resources", "prompts"} {
		all = append(
			all,
			mustJSON(map[string]any{"jsonrpc": "2.0", "method": "notifications/" + list + "/list_changed"}),
		)
	}
	_, sdk := s.sessions.connectionOf(session)
	for _, uri := range s.subscriptions.of(sdk) {
		all = append(all, mustJSON(map[string]any{
			"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": map[string]string{"uri": uri},
		}))
	}
	return all
}

// parseEventID reads the ID of an event: the ID of the stream, which is empty for a session's own, and a number.
func parseEventID(id string) (stream string, number int, ok bool) {
	stream, digits, ok := strings.Cut(id, "_")
	number, err := strconv.Atoi(digits)
	return stream, number, ok && err == nil && number >= 0 && utf8.ValidString(stream)
}

// errMissing means that stored events are not consecutive.
var errMissing = errors.New("the stream is longer than the stored events")

// followPoll is the interval of checks that the replica that answers still lives.
const followPoll = 5 * time.Second

// tail reads a stream from the store.
type tail struct {
	*replicas
	// id identifies the session, or the pending call.
	id, stream string
	// after is the number of the last event that was read.
	after int
}

// follow sends the stored and the coming events of the stream until it ends. lost is the stream if its replica ended
// first.
func (t *tail) follow(ctx context.Context, pass func(data [][]byte) error) (lost *sessionstore.Stream, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := t.shared.StreamChanges(ctx, t.stream)
	poll := time.NewTicker(followPoll)
	defer poll.Stop()
	for notified := false; ; {
		found, err := t.read(ctx, pass)
		if err != nil || found.Ended {
			return nil, err
		}
		if !notified {
			// On an error it is asked again.
			if lives, err := t.shared.Lives(ctx, found.Replica); err == nil && !lives {
				// It may have written its last events before it ended.
				if found, err = t.read(ctx, pass); err != nil || found.Ended {
					return nil, err
				}
				return found, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changes:
			notified = true
		case <-poll.C:
			notified = false
		}
	}
}

// read sends the stored events.
func (t *tail) read(ctx context.Context, pass func(data [][]byte) error) (*sessionstore.Stream, error) {
	found, err := t.shared.Stream(ctx, sessionstore.Key(t.id), t.stream, t.after)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for i, event := range found.Events {
		if event.Number != t.after+i+1 {
			return nil, errMissing
		}
		data, err := sessionstore.Unseal(t.id, sessionstore.EventPlace(t.stream, event.Number), event.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	if err := pass(all); err != nil {
		return nil, err
	}
	if n := len(found.Events); n > 0 {
		t.after = found.Events[n-1].Number
	}
	return found, nil
}

// follow sends the stored and the coming events of a stream until the stream ends.
func (rs *replicas) follow(w *transport.Response, r *http.Request, session *session, stream string, after int) {
	ctx, cancel := rs.server.bound(r.Context(), nil)
	defer cancel()
	leave, err := rs.server.limiter.EnterStream(session.clientKey, cancel)
	if err != nil {
		rs.server.refuse(w, refusedSessions, err)
		return
	}
	defer leave()
	f := &follower{tail: tail{rs, session.id, stream, after}, w: w}
	if rs.shared == nil {
		f.refuse(sessionstore.ErrNone)
		return
	}
	lost, err := f.tail.follow(ctx, f.write)
	switch {
	case err != nil && !f.started:
		f.refuse(err)
	case lost != nil:
		f.failRequests(lost)
	}
}

// follower sends one stream from the store.
type follower struct {
	tail
	w       *transport.Response
	started bool
}

func (f *follower) start() {
	if !f.started {
		f.started = true
		f.w.Header().Set("Cache-Control", "no-cache, no-transform")
		f.w.Header().Set("Content-Type", "text/event-stream")
		f.w.WriteHeader(http.StatusOK)
		_ = f.w.FlushError() // the next write tells of a broken connection
	}
}

func (f *follower) write(messages [][]byte) error {
	f.start()
	for i, data := range messages {
		_, err := fmt.Fprintf(f.w, "event: message\nid: %s_%d\ndata: %s\n\n", f.stream, f.after+1+i, data)
		if err != nil {
			return err
		}
	}
	return f.w.FlushError()
}

// lostText answers a call whose replica has ended.
const lostText = "the replica that ran this request has ended: it is unknown whether the request had an effect"

// failRequests answers the requests of a replica that has ended with an error.
func (f *follower) failRequests(stream *sessionstore.Stream) {
	var answers [][]byte
	for _, id := range stream.Requests {
		answers = append(answers, mustJSON(map[string]any{"jsonrpc": "2.0", "id": id,
			"error": map[string]any{"code": jsonrpc.CodeInternalError, "message": lostText}}))
	}
	_ = f.write(answers) // a client that has gone misses nothing
}

// refuse answers a stream that cannot continue. Status 404 would mean that the session has ended.
func (f *follower) refuse(err error) {
	if errors.Is(err, sessionstore.ErrNone) || errors.Is(err, errMissing) {
		http.Error(f.w, "The events of this stream are no longer stored.", http.StatusBadRequest)
		return
	}
	f.unreachable(f.w, err)
}

// fail answers a request whose session cannot be used here.
func (rs *replicas) fail(w http.ResponseWriter, err error) {
	if errors.Is(err, sessionstore.ErrNone) {
		http.Error(w, notFound, http.StatusNotFound)
		return
	}
	rs.unreachable(w, err)
}

// notFound answers a request whose session does not exist.
const notFound = "session not found"
