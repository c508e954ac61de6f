package results_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/memorytest"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/pdk/abi"
)

// TestKeptResultIsACopy: a kept result does not keep the response of which its texts are parts.
func TestKeptResultIsACopy(t *testing.T) {
	t.Parallel()
	var tracker memorytest.Tracker
	k := results.New(&results.Options{PerCaller: 100 << 10})
	id := func() string {
		large := tracker.Text("the response", strings.Repeat("one line\n", 1<<17)+"text/csv")
		response := &abi.Response{Content: []abi.Content{{Type: abi.Embedded, Resource: &abi.ResourceContents{
			URI: "test://x", Text: large[:64<<10], MIMEType: large[len(large)-len("text/csv"):]}}}}
		return keep(t, k, "ann", response)
	}()
	tracker.Check(t)
	if body, _, err := read(k, "ann", 1<<10, `{"id":"`+id+`"}`); err != nil || !strings.HasPrefix(body, "one line\n") {
		t.Errorf("read: %q, %v", body, err)
	}
	runtime.KeepAlive(k)
}
