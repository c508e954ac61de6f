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

// This file is how a client goes on with a stream that was cut off (MCP 2025-11-25, transports, resumability and redelivery), at any
// replica. The stream of a request is sent from the store, until its last answer is there. Of a session's own stream nothing is kept: all
// that is sent there are hints that lists or resources have changed, so one that goes on begins with all of them.

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

// follow sends what is in the store of a stream, and what comes, until the stream ends.
func (h *shared) follow(w *response, r *http.Request, session *session, stream string, after int) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.server.base, cancel)()
	rings := h.store.StreamChanges(ctx, stream)
	poll := time.NewTicker(followPoll)
	defer poll.Stop()
	f := &follower{shared: h, w: w, key: session.key, stream: stream, after: after}
	for {
		if done, err := f.send(ctx); done || err != nil {
			if err != nil && !f.started {
				f.refuse(err)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-rings:
		case <-poll.C:
		}
	}
}

// follower sends one stream from the store.
type follower struct {
	*shared
	w           *response
	key, stream string
	after       int
	started     bool
}

// send sends what there is, and reports whether that was all.
func (f *follower) send(ctx context.Context) (done bool, err error) {
	found, err := f.store.Stream(ctx, f.key, f.stream, f.after)
	if err != nil {
		return false, err
	}
	for _, event := range found.Events {
		if event.Number != f.after+1 && event.Number > 1 {
			return false, errMissing
		}
		if err := f.write(event); err != nil {
			return false, err
		}
	}
	f.start()
	if found.Ended {
		return true, nil
	}
	lives, err := f.store.Lives(ctx, found.Replica)
	if err != nil || lives {
		return false, nil // one that cannot be asked will be
	}
	return true, f.bury(found)
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

func (f *follower) write(event sessionstore.Event) error {
	f.start()
	if _, err := fmt.Fprintf(f.w, "event: message\nid: %s_%d\ndata: %s\n\n", f.stream, event.Number, event.Data); err != nil {
		return err
	}
	f.after = event.Number
	return f.w.FlushError()
}

// lostText is what a client learns of a call whose replica is no more.
const lostText = "the replica that ran this has ended in the midst of it: whether it has taken effect is not known"

// bury answers the requests of a replica that is no more.
func (f *follower) bury(stream *sessionstore.Stream) error {
	for _, id := range stream.Requests {
		data := mustJSON(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": jsonrpc.CodeInternalError, "message": lostText}})
		if err := f.write(sessionstore.Event{Number: f.after + 1, Data: data}); err != nil {
			return err
		}
	}
	return nil
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
