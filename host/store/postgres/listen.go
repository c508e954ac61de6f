package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// channel is the PostgreSQL channel of all notifications. Their payload is the topic.
const channel = "hako"

const (
	// A connection without notifications is checked after listenPing, with the timeout listenAnswer.
	listenPing   = 10 * time.Second
	listenAnswer = 5 * time.Second
	// reconnectAfter and reconnectMost are the first and the longest pause after a lost connection.
	reconnectAfter = 50 * time.Millisecond
	reconnectMost  = 5 * time.Second
)

// Listen keeps a connection open that receives notifications.
func (e *engine) Listen(ctx context.Context, notify func(topic string)) {
	wait, said := reconnectAfter, ""
	heard := func(topic string) {
		if said != "" {
			e.options.Logger.Info("the database sends change notifications again")
			said = ""
		}
		notify(topic)
	}
	for ctx.Err() == nil {
		start := time.Now()
		err := e.listenOnce(ctx, heard)
		if ctx.Err() != nil {
			return
		}
		if err = e.explainWithin(listenAnswer, err); err.Error() != said {
			said = err.Error()
			e.options.Logger.Warn("the database sends no change notifications until it can be reached again", "err",
				err)
		}
		if time.Since(start) > time.Minute {
			wait = reconnectAfter
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)): // replicas reconnect at different times
		case <-ctx.Done():
		}
		wait = min(2*wait, reconnectMost)
	}
}

// listenOnce listens until the connection is lost. Notifications before it listens may be missed.
func (e *engine) listenOnce(ctx context.Context, notify func(topic string)) error {
	connecting, cancel := context.WithTimeout(ctx, e.connectBound()+listenAnswer)
	defer cancel()
	conn, err := e.connect(connecting)
	if err != nil {
		return e.explainWithin(e.connectBound(), err)
	}
	defer func() { _ = conn.Close(connecting) }()
	if _, err := conn.Exec(connecting, "LISTEN "+channel); err != nil {
		return err
	}
	notify("")
	for {
		n, err := await(ctx, conn)
		if err != nil {
			return err
		}
		if n != nil && n.Payload != "" {
			notify(n.Payload)
		}
	}
}

// await returns the next notification, or nil if there was none for listenPing but the server answers.
func await(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	waiting, cancel := context.WithTimeout(ctx, listenPing)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	if err == nil || waiting.Err() == nil || ctx.Err() != nil {
		return n, err
	}
	answering, cancel := context.WithTimeout(ctx, listenAnswer)
	defer cancel()
	return nil, conn.Ping(answering)
}
