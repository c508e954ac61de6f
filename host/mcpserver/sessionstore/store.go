package sessionstore

import (
	"context"
	"encoding/json"
)

// Store keeps sessions and connects replicas. It is safe for concurrent use.
type Store interface {
	// Replica returns the ID of this process, or empty if it is alone.
	Replica() string

	// Add keeps a new session. If there are more than limits allow, it ends others and returns their keys: first
	// sessions of the same client, then of whichever client has most, each time the one that was used longest ago, and
	// those in use last.
	Add(ctx context.Context, session *Session, limits *Limits) (ended []string, err error)
	// Find returns a session, or ErrNone.
	Find(ctx context.Context, key string) (*Session, error)
	// List returns up to n sessions, those that were used last first as far as it knows.
	List(ctx context.Context, n int) ([]Listed, error)
	// Remove ends a session. It reports whether there was one.
	Remove(ctx context.Context, key string) (there bool, err error)
	// Release is called when the session has been idle for long at this replica. If there is no other replica, the
	// session ends.
	Release(key string)
	// Touch records that used sessions were used just now and that held ones are in use. It returns those of known
	// that have ended.
	Touch(ctx context.Context, used, held, known []string) (ended []string, err error)
	// SetLevel keeps the level of logging/setLevel.
	SetLevel(ctx context.Context, key, level string) error
	// Subscribe keeps a subscription, Unsubscribe ends it.
	Subscribe(ctx context.Context, key, uri string) error
	Unsubscribe(ctx context.Context, key, uri string) error

	// OpenStream begins to keep the events of a stream on which this replica answers these requests, by their IDs. It
	// returns ErrNotKept if they cannot be kept.
	OpenStream(ctx context.Context, key, stream string, requests []json.RawMessage) error
	// Append keeps an event, whose number is the next one. With last the stream ends.
	Append(ctx context.Context, key, stream string, event Event, last bool) error
	// End ends a stream without another event, Drop removes it.
	End(ctx context.Context, key, stream string) error
	Drop(ctx context.Context, key, stream string) error
	// Stream returns a stream with its events after that number, or ErrNone.
	Stream(ctx context.Context, key, stream string, after int) (*Stream, error)
	// StreamChanges receives when there may be more on the stream, until ctx ends.
	StreamChanges(ctx context.Context, stream string) <-chan struct{}

	// Lives reports whether a replica is alive.
	Lives(ctx context.Context, replica string) (bool, error)
	// Send sends mail to all other replicas.
	Send(ctx context.Context, mail Mail) error
	// SendTo sends mail to one replica, and reports false if that lives no more.
	SendTo(ctx context.Context, replica string, mail Mail) (sent bool, err error)
	// Ask forwards a Request to a replica, with a stream for the answer, and reports false if that lives no more.
	Ask(ctx context.Context, replica string, mail Mail) (sent bool, err error)
	// Receive calls receive with mail of other replicas until ctx ends, and failed with failures of the store.
	Receive(ctx context.Context, receive func(Mail), failed func(error))
}
