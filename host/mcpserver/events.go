package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/sessionstore"
)

// events keep what is sent on the streams of requests in sessions of all replicas, so that a client that was cut off
// can have it from any of them. On a session's own stream only hints are sent, that something is to be looked at again;
// they are not kept: see follow.
type events struct {
	store *sessionstore.Store

	mu      sync.Mutex // guards streams
	streams map[string]*openStream
}

// openStream is a stream of a request that runs here.
type openStream struct {
	session string // its ID
	mu      sync.Mutex
	// next is the number of the next event.
	next, bytes int
	// waiting are the requests without an answer.
	waiting int
	dropped bool
}

var _ mcp.EventStore = (*events)(nil)

func newEvents(store *sessionstore.Store) *events {
	return &events{store: store, streams: map[string]*openStream{}}
}

// runs reports whether the requests of a stream run here.
func (e *events) runs(stream string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams[stream] != nil
}

// Open implements mcp.EventStore.
func (e *events) Open(ctx context.Context, sessionID, streamID string) error {
	over, ok := ctx.Value(exchangeKey{}).(*exchange)
	if streamID == "" || !ok || over.again != nil || len(over.requests) == 0 {
		return nil
	}
	if err := e.store.OpenStream(ctx, sessionstore.Key(sessionID), streamID, over.requests); err != nil {
		return nil // then it cannot be resumed, and whether the call is made without the store is not up to its stream
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams[streamID] = &openStream{session: sessionID, waiting: len(over.requests)}
	return nil
}

// Append implements mcp.EventStore.
func (e *events) Append(ctx context.Context, sessionID, streamID string, data []byte) error {
	e.mu.Lock()
	stream := e.streams[streamID]
	e.mu.Unlock()
	if stream == nil {
		return nil
	}
	stream.mu.Lock()
	defer stream.mu.Unlock()
	number := stream.next
	stream.next++
	if len(data) == 0 {
		return nil // it only lets the client know where it is
	}
	stream.bytes += len(data)
	if isAnswer(data) {
		stream.waiting--
	}
	last := stream.waiting == 0
	if last {
		e.mu.Lock()
		delete(e.streams, streamID)
		e.mu.Unlock()
	}
	stream.dropped = stream.dropped || !sessionstore.Room(stream.next, stream.bytes)
	if stream.dropped && !last {
		return nil
	}
	// The answer must be there also when whoever has sent the request has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
	defer cancel()
	sealed := sessionstore.Seal(sessionID, sessionstore.EventPlace(streamID, number), tagged(data, e.store.Replica()))
	event := sessionstore.Event{Number: number, Data: sealed}
	return e.store.Append(ctx, sessionstore.Key(sessionID), streamID, event, last)
}

func isAnswer(data []byte) bool {
	var message struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(data, &message) == nil && message.Method == ""
}

// errMissing says that events are missing between those that are kept.
var errMissing = errors.New("the stream was longer than what is kept of it")

// After implements mcp.EventStore.
func (e *events) After(ctx context.Context, sessionID, streamID string, index int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if streamID == "" {
			return
		}
		stream, err := e.store.Stream(ctx, sessionstore.Key(sessionID), streamID, index)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, event := range stream.Events {
			if event.Number != index+1 && event.Number > 1 {
				yield(nil, errMissing)
				return
			}
			index = event.Number
			data, err := sessionstore.Unseal(sessionID, sessionstore.EventPlace(streamID, index), event.Data)
			if !yield(data, err) || err != nil {
				return
			}
		}
	}
}

// SessionClosed implements mcp.EventStore. A session that this replica closes goes on at others.
func (e *events) SessionClosed(_ context.Context, sessionID string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.streams, func(_ string, s *openStream) bool { return s.session == sessionID })
	return nil
}
