package limits

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Limits{Sessions: 1, SessionsPerClient: 1, Calls: 3, CallsPerClient: 2, Rate: 2, Burst: 4})
		enter := func(key string, stream bool) (leave func(), everyone bool) {
			t.Helper()
			leave, err := l.Enter(key, 1)
			if stream {
				leave, err = l.EnterStream(key, func() { t.Error("a stream is ended for one that gains nothing") })
			}
			if busy, ok := errors.AsType[*BusyError](err); ok {
				return nil, busy.Everyone
			}
			return leave, false
		}
		first, _ := enter("a", false)
		if second, _ := enter("a", false); second == nil {
			t.Fatal("a second call of a client with two is refused")
		}
		if third, everyone := enter("a", false); third != nil || everyone {
			t.Error("a third call of a client with two is not its own limit")
		}
		if other, _ := enter("b", false); other == nil {
			t.Error("another client is refused")
		}
		if fourth, everyone := enter("c", false); fourth != nil || !everyone {
			t.Error("a fourth call of three is not everybody's limit")
		}
		first()
		if again, _ := enter("c", false); again == nil {
			t.Error("the place that became free is refused")
		}
		stream, _ := enter("a", true)
		if second, everyone := enter("b", true); second != nil || !everyone {
			t.Error("a second stream of one")
		}
		stream()
		if again, _ := enter("b", true); again == nil {
			t.Error("the stream that became free is refused")
		}

		for i := range 4 {
			if err := l.Allow("a", 1); err != nil {
				t.Errorf("request %d of a burst of 4: %v", i, err)
			}
		}
		err := l.Allow("a", 1)
		if busy, ok := errors.AsType[*BusyError](err); !ok || busy.Retry != 500*time.Millisecond {
			t.Errorf("request 5: %v", err)
		}
		if err := l.Allow("b", 1); err != nil {
			t.Errorf("another client: %v", err)
		}
		time.Sleep(500 * time.Millisecond)
		if err := l.Allow("a", 1); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}

func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Limits{Calls: 10, CallsPerClient: 10, Rate: 1, Burst: 1})
		busy, err := l.Enter("busy", 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range minSweep - 1 {
			l.Allow(fmt.Sprint(i), 1)
		}
		time.Sleep(time.Hour)
		l.Allow("one more", 1)
		if len(l.clients) != 2 {
			t.Errorf("%d clients are remembered, want the busy one and the new one", len(l.clients))
		}
		busy()
	})
}
