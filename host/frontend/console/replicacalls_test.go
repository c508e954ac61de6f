package console_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/pipeline"
)

// TestRunningCallsOfOtherReplicas: the console of each replica lists the calls of all, says where they run, and stops
// them.
func TestRunningCallsOfOtherReplicas(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(testing.TB) string{
		"directory":  func(t testing.TB) string { return filepath.Join(t.TempDir(), "store") },
		"PostgreSQL": postgrestest.Start,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRunningElsewhere(t, place(t))
		})
	}
}

func testRunningElsewhere(t *testing.T, place string) {
	there, here := newWorldIn(t, place, nil), newWorldIn(t, place, nil)
	admin := here.as(console.Admin)
	_, ended := there.running("report", `{"city":"Tokyo"}`)
	share := there.Sharing()
	if err := share(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := admin.running(); len(list.Items) != 0 {
		t.Errorf("of a replica that is not there: %+v", list)
	}
	for _, w := range []*world{there, here} {
		if err := w.store.Join(t.Context(), "1.0.0"); err != nil {
			t.Fatal(err)
		}
	}
	list := admin.running()
	if len(list.Items) != 1 {
		t.Fatalf("%+v", list)
	}
	call := &list.Items[0]
	if call.Tool != "report" || call.User != "aki" || call.Tenant != "acme" || call.Client != "Claude 1.2" ||
		!strings.Contains(call.Replica, there.store.Replica()[:12]) {
		t.Errorf("%+v", call)
	}
	if got := admin.get("calls/" + call.ID); got.status != http.StatusOK || !strings.Contains(got.body, `"kept":false`) ||
		!strings.Contains(got.body, there.store.Replica()[:12]) || strings.Contains(got.body, "Tokyo") {
		t.Errorf("its page: %d %s", got.status, got.body)
	}
	if got := admin.post("calls/call_X/stop", struct{}{}); got.status != http.StatusConflict {
		t.Errorf("a call that does not run: %d %s", got.status, got.body)
	}
	if got := admin.post("calls/"+call.ID+"/stop", struct{}{}); got.status != http.StatusOK {
		t.Fatalf("stop: %d %s", got.status, got.body)
	}
	if there.store.Shared() {
		ctx, stop := context.WithCancel(t.Context())
		run := make(chan error, 1)
		go func() { run <- there.Run(ctx) }()
		defer func() {
			stop()
			<-run
		}()
	} else if err := there.StopRequested(t.Context()); err != nil {
		t.Fatal(err)
	}
	if result := <-ended; result == nil || result.Outcome != pipeline.Stopped {
		t.Errorf("ended: %+v", result)
	}
	if records := here.records(); !strings.Contains(records, "call.stop ok admin") {
		t.Errorf("records: %s", records)
	}
	if err := share(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := admin.running(); len(list.Items) != 0 {
		t.Errorf("after its end: %+v", list)
	}
}

// TestSharedCallsFit: clients and users with long names do not hide the calls of their replica.
func TestSharedCallsFit(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "store")
	there, here := newWorldIn(t, place, nil), newWorldIn(t, place, nil)
	for _, w := range []*world{there, here} {
		if err := w.store.Join(t.Context(), "1.0.0"); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("<", 256)
	for i := range 150 {
		there.traffic.CallStarted(&pipeline.Running{ID: fmt.Sprint("call_", i), Method: "tools/call", Started: time.Now(),
			Caller: pipeline.Caller{User: long, Tenant: long, Client: long, ClientVersion: long}})
	}
	if err := there.Sharing()(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := here.as(console.Viewer).running(); len(list.Items) != 100 || list.More != 50 {
		t.Errorf("%d calls and %d more", len(list.Items), list.More)
	}
}
