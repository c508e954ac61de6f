package sessionstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hako-run/hako/host/store"
)

// Bounds of a stored stream, in events and bytes.
const (
	maxEvents = 1000
	maxBytes  = 8 << 20
)

// Stream is the state of a stream in the store.
type Stream struct {
	// Replica is the replica that runs its requests.
	Replica string
	// Requests are the IDs of those that are not answered.
	Requests []json.RawMessage
	// Ended reports whether there is no more to come.
	Ended bool
	// Events are those after a number, in order.
	Events []Event
}

// Event is one message that was sent, as Seal has made it.
type Event struct {
	Number int
	Data   string
}

// OpenStream keeps that this replica answers these requests, by their IDs, on a new stream.
func (s *SQL) OpenStream(ctx context.Context, key, stream string, requests []json.RawMessage) error {
	ids, err := json.Marshal(requests)
	if err != nil {
		return err
	}
	return s.update(ctx, func(tx *sql.Tx, now int64) error {
		return openStream(ctx, tx, now, key, stream, s.Replica(), string(ids))
	})
}

func openStream(ctx context.Context, tx *sql.Tx, now int64, key, stream, replica, requests string) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO mcp_stream (session, id, replica, requests, ended, opened) VALUES ($1, $2, $3, $4, 0, $5)
		ON CONFLICT DO NOTHING`, key, stream, replica, requests, now)
	return err
}

// Append keeps a message, whose number is the next one. With last the stream ends. The same message may be appended
// again; one of a stream that is no more is not kept.
func (s *SQL) Append(ctx context.Context, key, stream string, event Event, last bool) error {
	return s.update(ctx, func(tx *sql.Tx, now int64) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO mcp_event (session, stream, number, data)
			SELECT session, id, CAST($1 AS BIGINT), CAST($2 AS TEXT) FROM mcp_stream WHERE session = $3 AND id = $4 ON CONFLICT DO NOTHING`,
			event.Number, event.Data, key, stream)
		switch {
		case err != nil:
			return err
		case last:
			return s.endStream(ctx, tx, now, key, stream)
		}
		return s.store.Announce(ctx, tx, streamTopic(stream))
	})
}

// End ends a stream without another message.
func (s *SQL) End(ctx context.Context, key, stream string) error {
	return s.update(ctx, func(tx *sql.Tx, now int64) error { return s.endStream(ctx, tx, now, key, stream) })
}

func (s *SQL) endStream(ctx context.Context, tx *sql.Tx, now int64, key, stream string) error {
	if _, err := tx.ExecContext(ctx, "UPDATE mcp_stream SET ended = $1 WHERE session = $2 AND id = $3", now, key,
		stream); err != nil {
		return err
	}
	return s.store.Announce(ctx, tx, streamTopic(stream))
}

// Drop removes a stream that nobody will fetch again.
func (s *SQL) Drop(ctx context.Context, key, stream string) error {
	return s.store.Update(ctx, func(tx *sql.Tx) error {
		for _, query := range []string{
			"DELETE FROM mcp_event WHERE session = $1 AND stream = $2",
			"DELETE FROM mcp_stream WHERE session = $1 AND id = $2",
		} {
			if _, err := tx.ExecContext(ctx, query, key, stream); err != nil {
				return err
			}
		}
		return nil
	})
}

// Room reports whether a stream with so many events and bytes is kept.
func Room(events, bytes int) bool { return events <= maxEvents && bytes <= maxBytes }

func streamTopic(stream string) string { return "mcp stream " + stream }

// StreamChanges receives when there may be more on the stream, until ctx ends.
func (s *SQL) StreamChanges(ctx context.Context, stream string) <-chan struct{} {
	return s.store.Changes(ctx, streamTopic(stream))
}

// Stream returns a stream with its events after that number, or ErrNone.
func (s *SQL) Stream(ctx context.Context, key, stream string, after int) (*Stream, error) {
	var found Stream
	err := s.store.View(ctx, func(tx *sql.Tx) error {
		found = Stream{}
		var requests string
		var ended int64
		row := tx.QueryRowContext(ctx, "SELECT replica, requests, ended FROM mcp_stream WHERE session = $1 AND id = $2",
			key, stream)
		if err := row.Scan(&found.Replica, &requests, &ended); err != nil {
			return err
		}
		found.Ended = ended > 0
		if err := json.Unmarshal([]byte(requests), &found.Requests); err != nil {
			return fmt.Errorf("stream %s: %w", stream, err)
		}
		var err error
		found.Events, err = store.Select(ctx, tx, scanEvent,
			"SELECT number, data FROM mcp_event WHERE session = $1 AND stream = $2 AND number > $3 ORDER BY number",
			key, stream, after)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	return &found, nil
}

func scanEvent(rows *sql.Rows) (e Event, err error) {
	err = rows.Scan(&e.Number, &e.Data)
	return e, err
}

// Lives reports whether the replica is alive.
func (s *SQL) Lives(ctx context.Context, replica string) (bool, error) {
	others, err := s.others(ctx)
	return replica == s.Replica() || slices.Contains(others, replica), err
}
