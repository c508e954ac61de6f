package audit_test

import (
	"testing"

	"github.com/hako-run/hako/host/govern/audit"
)

// TestStats counts records, those that could not be written, and signatures.
func TestStats(t *testing.T) {
	t.Parallel()
	log, err := audit.Open(&audit.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), &audit.Event{Type: "tools/call"}); err != nil {
		t.Fatal(err)
	}
	if s := log.Stats(); s.Records != 1 || s.Bytes == 0 || s.Failures != 0 || s.Unsigned != 1 || !s.Signed.IsZero() {
		t.Errorf("after a record: %+v", s)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if s := log.Stats(); s.Records != 2 || s.Unsigned != 0 || s.Signed.IsZero() {
		t.Errorf("after its signature: %+v", s)
	}
	if err := log.Append(t.Context(), &audit.Event{Type: "tools/call"}); err == nil {
		t.Fatal("a closed log takes records")
	}
	if s := log.Stats(); s.Failures != 1 {
		t.Errorf("after a failure: %+v", s)
	}
}
