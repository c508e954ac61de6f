//go:build unix

package audit_test

import (
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/govern/audit"
)

// While the database is away calls cannot be recorded, which Ready knows without waiting long; afterwards they can.
func TestTableOutage(t *testing.T) {
	t.Parallel()
	server := postgrestest.NewServer(t)
	s := storetest.Open(t, server.Database(t))
	l := open(t, audit.Options{Store: s, Key: key})
	appendCalls(t, l, 2)
	server.Kill()
	if err := l.Append(t.Context(), call("lost")); err == nil {
		t.Error("recorded nowhere")
	}
	if err := l.Ready(); err == nil {
		t.Error("ready without a database")
	}
	server.Start(t)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() { _ = l.Ready() }) // of many who ask at once, one tries
	}
	asking.Wait()
	if err := l.Ready(); err != nil {
		t.Errorf("not ready after the outage: %v", err)
	}
	appendCalls(t, l, 2)
	if report := verifyTable(t, s); !report.OK() || report.Records != 5 || report.Checkpoints != 1 {
		t.Errorf("%+v", report)
	}
}
