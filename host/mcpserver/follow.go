package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
)

// This file is how a client goes on with a stream that was cut off (MCP 2025-11-25, transports, resumability and
// redelivery), at any replica. The stream of a request is sent from the store, until its last answer is there. Of a
// session's own stream nothing is kept: all that is sent there are hints that lists or resources have changed, so one
// that goes on begins with all of them.

// listen serves a session's event streams.
func (h *shared) listen(w *response, r *http.Request, session *session) {
	stream, after, resumed := parseEventID(r.Header.Get("Last-Event-Id"))
	switch {
	case len(r.Header.Values("Last-Event-Id")) > 0 && !resumed:
		http.Error(w, "The Last-Event-ID is none of this server's.", http.StatusBadRequest)
		return
	case resumed && stream != "" && !h.events.runs(stream):
		h.follow(w, r, session, stream, after)
		return
	}
	if err := h.revive(r.Context(), session); err != nil {
		h.fail(w, err)
		return
	}
	w.replica = h.store.Replica()
	if resumed && stream == "" {
		r.Header.Del("Last-Event-Id")
		w.greeting = h.hints(session)
	}
	h.server.legacy.ServeHTTP(w, r)
}

// parseEventID reads an event's ID as the SDK makes it.
func parseEventID(id string) (stream string, number int, ok bool) {
	stream, digits, ok := strings.Cut(id, "_")
	number, err := strconv.Atoi(digits)
	return stream, number, ok && err == nil && number >= 0
}

// hints say that everything may have changed.
func (h *shared) hints(session *session) (all []byte) {
	for _, list := range []string{"tools", "resources", "prompts"} {
		all = append(all, event(notification("notifications/"+list+"/list_changed"))...)
	}
	for _, uri := range h.server.subscriptions.of(h.server.sessions.sdkOf(session)) {
		all = append(all, event(mustJSON(map[string]any{
			"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": map[string]string{"uri": uri},
		}))...)
	}
	return all
}

// followPoll is how often it is looked whether the replica that answers still lives.
const followPoll = 5 * time.Second

// tail reads a stream from the store.
type tail struct {
	*shared
	// id is that of the session, or of the call that waits.
	id, stream string
	// after is the number of the last event that was read.
	after int
}

// follow passes on what there is of the stream, which may be nothing, and what comes, until it ends. lost is the stream
// if the replica that writes it has ended before.
func (t *tail) follow(ctx context.Context, pass func(data [][]byte) error) (lost *sessionstore.Stream, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rings := t.store.StreamChanges(ctx, t.stream)
	poll := time.NewTicker(followPoll)
	defer poll.Stop()
	for rung := false; ; {
		found, err := t.read(ctx, pass)
		if err != nil || found.Ended {
			return nil, err
		}
		if !rung {
			if lives, err := t.store.Lives(ctx, found.Replica); err == nil &&
				!lives { // one that cannot be asked will be
				// It may have written its last before it went.
				if found, err = t.read(ctx, pass); err != nil || found.Ended {
					return nil, err
				}
				return found, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-rings:
			rung = true
		case <-poll.C:
			rung = false
		}
	}
}

// read passes on what there is.
func (t *tail) read(ctx context.Context, pass func(data [][]byte) error) (*sessionstore.Stream, error) {
	found, err := t.store.Stream(ctx, sessionstore.Key(t.id), t.stream, t.after)
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

// follow sends what is in the store of a stream, and what comes, until the stream ends.
func (h *shared) follow(w *response, r *http.Request, session *session, stream string, after int) {
	ctx, cancel := h.server.boundTo(r)
	defer cancel()
	leave, err := h.server.limiter.EnterStream(session.clientKey, cancel)
	if err != nil {
		h.server.refuse(w, RefusedSessions, err)
		return
	}
	defer leave()
	f := &follower{tail: tail{h, session.id, stream, after}, w: w}
	lost, err := f.tail.follow(ctx, f.write)
	switch {
	case err != nil && !f.started:
		f.refuse(err)
	case lost != nil:
		f.bury(lost)
	}
}

// follower sends one stream from the store.
type follower struct {
	tail
	w       *response
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
		if _, err := fmt.Fprintf(f.w, "event: message\nid: %s_%d\ndata: %s\n\n", f.stream, f.after+1+i, data); err != nil {
			return err
		}
	}
	return f.w.FlushError()
}

// lostText is what a client learns of a call whose replica is no more.
const lostText = "the replica that ran this has ended in the midst of it: whether it has taken effect is not known"

// bury answers the requests of a replica that is no more.
func (f *follower) bury(stream *sessionstore.Stream) {
	var answers [][]byte
	for _, id := range stream.Requests {
		answers = append(answers, mustJSON(map[string]any{"jsonrpc": "2.0", "id": id,
			"error": map[string]any{"code": jsonrpc.CodeInternalError, "message": lostText}}))
	}
	_ = f.write(answers) // a client that has gone misses nothing
}

// refuse says why a stream cannot go on. 404 would mean that the session is no more.
func (f *follower) refuse(err error) {
	if errors.Is(err, sessionstore.ErrNone) || errors.Is(err, errMissing) {
		http.Error(f.w, "What was sent on this stream is not kept any more.", http.StatusBadRequest)
		return
	}
	f.unreachable(f.w, err)
}

// fail answers a request whose session cannot be used here.
func (h *shared) fail(w http.ResponseWriter, err error) {
	if errors.Is(err, sessionstore.ErrNone) {
		http.Error(w, notFound, http.StatusNotFound)
		return
	}
	h.unreachable(w, err)
}

// notFound is what the SDK says of a session that there is not.
const notFound = "session not found"
