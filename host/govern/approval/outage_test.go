//go:build unix

package approval_test

import (
	"context"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/govern/approval"
)

// outages returns a channel that receives after an attempt has failed because of an outage.
func outages(d *approval.Queue, attempt string) <-chan struct{} {
	failed := make(chan struct{}, 1)
	d.OnOutage(func(a string) {
		if a == attempt {
			select {
			case failed <- struct{}{}:
			default:
			}
		}
	})
	return failed
}

// TestQuestionOutlivesAnOutage checks that a question survives an outage of the database.
func TestQuestionOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	d := approvals(t, server.Database(t), &approval.Options{Operators: true})
	outage := outages(d, "claim")
	asked, ended := make(chan string, 1), make(chan error, 1)
	defer d.Watch(nil, func(q *approval.Question) { asked <- q.ID })()
	go func() {
		_, err := d.Ask(t.Context(), question(`{}`), approval.Prompter{})
		ended <- err
	}()
	id := <-asked
	server.Stop(t)
	for range 2 {
		select {
		case err := <-ended:
			t.Fatalf("it ends with the database: %v", err)
		case <-outage:
		}
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

// TestAnswerDuringAnOutage checks that an answer that cannot be stored at first is not lost.
func TestAnswerDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	d := approvals(t, server.Database(t), nil)
	outage := outages(d, "answer")
	answering, stopped, back := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(back)
		<-answering
		server.Stop(t)
		close(stopped)
		<-outage
		server.Start(t)
	}()
	yes := saying(true)
	by, err := d.Ask(t.Context(), question(`{}`), approval.Prompter{By: yes.By,
		Ask: func(ctx context.Context, q *approval.Question) (bool, error) {
			close(answering)
			<-stopped
			return yes.Ask(ctx, q)
		}})
	if err != nil || by != "aki" {
		t.Errorf("%q, %v", by, err)
	}
	<-back
}
