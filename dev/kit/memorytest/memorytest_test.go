package memorytest

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTracker(t *testing.T) {
	t.Parallel()
	var tracker Tracker
	kept := tracker.Text("kept", strings.Repeat("a", 1<<16))[100:110]
	_ = tracker.Text("copied", strings.Repeat("b", 1<<16))
	_ = tracker.Bytes("bytes", make([]byte, 1<<16))
	recorder := new(recorder)
	tracker.Check(recorder)
	if want := []string{"kept"}; !slices.Equal(recorder.names, want) {
		t.Errorf("in memory are %q, want %q", recorder.names, want)
	}
	runtime.KeepAlive(kept)
}

// recorder is a test that records errors.
type recorder struct {
	testing.TB
	names []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(_ string, args ...any) { r.names = append(r.names, args[0].(string)) }
