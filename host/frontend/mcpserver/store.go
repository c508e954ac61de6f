package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
)

// SessionStore keeps sessions. It is safe for concurrent use. *sessionstore.Memory and *sessionstore.SQL implement it.
type SessionStore interface {
	// Add keeps a new session. If there are more than limits allow, it ends others and returns their keys: first
	// sessions of the same client, then of whichever client has most, each time the one that was used longest ago, and
	// those in use last.
	Add(ctx context.Context, session *sessionstore.Session, limits *sessionstore.Limits) (ended []string, err error)
	// Find returns a session, or sessionstore.ErrNone.
	Find(ctx context.Context, key string) (*sessionstore.Session, error)
	// List returns up to n sessions, those that were used last first as far as it knows.
	List(ctx context.Context, n int) ([]sessionstore.Listed, error)
	// Remove ends a session. It reports whether there was one.
	Remove(ctx context.Context, key string) (there bool, err error)
	// Release is called when the session has been idle for long at this replica. If there is no other replica, the
	// session ends.
	Release(key string)
	// SetLevel keeps the level of logging/setLevel.
	SetLevel(ctx context.Context, key, level string) error
	// Subscribe keeps a subscription, Unsubscribe ends it.
	Subscribe(ctx context.Context, key, uri string) error
	Unsubscribe(ctx context.Context, key, uri string) error
}

// sharedStore is an optional ability of a SessionStore: it also keeps the events of streams, and connects replicas.
type sharedStore interface {
	eventStore
	replicaMail
	// Touch records that used sessions were used just now and that held ones are in use. It returns those of known
	// that have ended.
	Touch(ctx context.Context, used, held, known []string) (ended []string, err error)
}

// eventStore keeps the events of streams.
type eventStore interface {
	// OpenStream begins to keep the events of a stream on which this replica answers these requests, by their IDs.
	OpenStream(ctx context.Context, key, stream string, requests []json.RawMessage) error
	// Append keeps an event, whose number is the next one. With last the stream ends.
	Append(ctx context.Context, key, stream string, event sessionstore.Event, last bool) error
	// End ends a stream without another event, Drop removes it.
	End(ctx context.Context, key, stream string) error
	Drop(ctx context.Context, key, stream string) error
	// Stream returns a stream with its events after that number, or sessionstore.ErrNone.
	Stream(ctx context.Context, key, stream string, after int) (*sessionstore.Stream, error)
	// StreamChanges receives when there may be more on the stream, until ctx ends.
	StreamChanges(ctx context.Context, stream string) <-chan struct{}
}

// replicaMail carries mail between replicas.
type replicaMail interface {
	// Replica returns the ID of this process.
	Replica() string
	// Lives reports whether a replica is alive.
	Lives(ctx context.Context, replica string) (bool, error)
	// Send sends mail to all other replicas.
	Send(ctx context.Context, mail sessionstore.Mail) error
	// SendTo sends mail to one replica, and reports false if it has ended.
	SendTo(ctx context.Context, replica string, mail sessionstore.Mail) (sent bool, err error)
	// Ask forwards a Request to a replica, with a stream for the answer, and reports false if the replica has ended.
	Ask(ctx context.Context, replica string, mail sessionstore.Mail) (sent bool, err error)
	// Receive calls receive with mail of other replicas until ctx ends, and failed with failures of the store.
	Receive(ctx context.Context, receive func(sessionstore.Mail), failed func(error))
}

var _ sharedStore = (*sessionstore.SQL)(nil)
