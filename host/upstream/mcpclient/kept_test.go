package mcpclient

import (
	"context"
	"runtime"
	"testing"

	"github.com/hako-run/hako/dev/kit/memorytest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/pdk/abi"
)

// TestCanceledCallIsFree: a session remembers for a minute who has canceled a call, and not the call.
func TestCanceledCallIsFree(t *testing.T) {
	t.Parallel()
	var tracker memorytest.Tracker
	x := &session{calls: map[*ongoing]bool{}}
	for range 3 {
		func() {
			arguments := tracker.Bytes("the request", make([]byte, 1<<20))
			_, end := x.begin(context.Background(), &catalog.Invocation{Tenant: "acme", Session: "one",
				Request: &abi.Request{Arguments: arguments}}, nil, "")
			end(true)
		}()
	}
	tracker.Check(t)
	if len(x.past) != 3 || !x.past[0].caller.isSame(caller{"acme", "one"}) {
		t.Errorf("the session remembers %+v", x.past)
	}
	runtime.KeepAlive(x)
}
