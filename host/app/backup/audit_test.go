package backup_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/govern/audit"
)

// TestAuditLog copies a log that is written to, and goes on with the copy.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	log := openLog(t, data)
	for range 50 {
		if err := log.Append(t.Context(), &audit.Event{Type: audit.TypeCall}); err != nil {
			t.Fatal(err)
		}
	}
	var writing sync.WaitGroup
	stop := make(chan struct{})
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := log.Append(t.Context(), &audit.Event{Type: audit.TypeCall}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	to := filepath.Join(t.TempDir(), "backup")
	_, err := backup.Create(t.Context(), data, to)
	close(stop)
	writing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "hako.store")
	if _, err := backup.Restore(t.Context(), to, restored); err != nil {
		t.Fatal(err)
	}
	again := openLog(t, restored)
	if err := again.Append(t.Context(), &audit.Event{Type: audit.TypeCall}); err != nil {
		t.Fatal(err)
	}
	report, err := audit.Dir(filepath.Join(restored, "audit")).Verify(t.Context(), nil)
	if err != nil || !report.OK() || report.Records < 51 || !report.EndChecked {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := backup.Restore(t.Context(), to, restored); err == nil {
		t.Error("restored over a log")
	}
}

func openLog(t *testing.T, data string) *audit.Log {
	t.Helper()
	log, err := audit.Open(&audit.Options{Dir: filepath.Join(data, "audit"), SegmentBytes: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}
