//go:build unix

package approval_test

import (
	"context"
	"testing"
	"time"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/internal/postgrestest"
)

// TestQuestionOutlivesAnOutage checks that a question survives an outage of the database.
func TestQuestionOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	d := approvals(t, server.Database(t), &approval.Options{Operators: true})
	asked, ended := make(chan string, 1), make(chan error, 1)
	defer d.Watch(nil, func(q *approval.Question) { asked <- q.ID })()
	go func() {
		_, err := d.Ask(t.Context(), question(`{}`), approval.Prompter{})
		ended <- err
	}()
	id := <-asked
	server.Stop(t)
	select {
	case err := <-ended:
		t.Fatalf("it ends with the database: %v", err)
	case <-time.After(3 * time.Second): // it polls for answers meanwhile
	}
	server.Start(t)
	if err := d.Answer(t.Context(), id, approval.Answer{Yes: true,
		By: approval.Person{User: "ops", Operator: true}}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAnswerDuringAnOutage checks that an answer during an outage is not lost.
func TestAnswerDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	d := approvals(t, server.Database(t), nil)
	answering, back := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(back)
		<-answering
		server.Stop(t)
		answering <- struct{}{}
		time.Sleep(100 * time.Millisecond) // the answer cannot be stored meanwhile
		server.Start(t)
	}()
	way := saying(true)
	yes := way.Ask
	way.Ask = func(ctx context.Context, q *approval.Question) (bool, error) {
		answering <- struct{}{}
		<-answering
		return yes(ctx, q)
	}
	if by, err := d.Ask(t.Context(), question(`{}`), way); err != nil || by != "aki" {
		t.Errorf("%q, %v", by, err)
	}
	<-back
}
