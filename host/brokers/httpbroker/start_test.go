package httpbroker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

// start starts a request for url, as a guest does, and returns its handle or the error.
func (g *guest) start(url, body string) (int32, *abi.Error) {
	g.t.Helper()
	head := fmt.Sprintf(`{"method":"POST","url":%q}`, url)
	g.call.Memory.Write(0, []byte(head+body))
	n := g.do("start", 0, uint64(len(head)), uint64(len(head)), uint64(len(body)))
	if n > 0 {
		return n, nil
	}
	failure := new(abi.Error)
	g.taken(-n, failure)
	return 0, failure
}

func (g *guest) mustStart(url string) int32 {
	g.t.Helper()
	handle, failure := g.start(url, "")
	if failure != nil {
		g.t.Fatal(failure)
	}
	return handle
}

func (g *guest) wait(handle int32) (resp abi.HTTPResponse) {
	g.t.Helper()
	g.taken(g.do("wait", uint64(uint32(handle))), &resp)
	return resp
}

// wantError holds that a guest got an error.
func wantError(t *testing.T, got *abi.Error, code string, words ...string) {
	t.Helper()
	if got == nil {
		t.Fatalf("no error, want %s", code)
	}
	wantCode(t, got, code, words...)
}

// held is a server that answers only once n requests are there, and when release is closed.
func held(t *testing.T, n int, release <-chan struct{}) (url string) {
	t.Helper()
	var mu sync.Mutex
	arrived, all := 0, make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if arrived++; arrived == n {
			close(all)
		}
		mu.Unlock()
		for _, event := range []<-chan struct{}{all, release} {
			select {
			case <-event:
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, r.URL.Path)
	})
	return s.URL
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// TestStart has as many requests under way as may be, and waits for them in another order.
func TestStart(t *testing.T) {
	t.Parallel()
	url := held(t, maxPending, closed())
	b := newBroker(t, nil, everything(url))
	g := newGuest(t, b)
	var handles []int32
	for i := range maxPending {
		handles = append(handles, g.mustStart(fmt.Sprint(url, "/", i)))
	}
	for i := maxPending - 1; i >= 0; i-- {
		resp := g.wait(handles[i])
		if resp.Error != nil || resp.Handle != handles[i] || resp.Status != 200 {
			t.Fatalf("got %+v, %v", resp, resp.Error)
		}
		if body := g.readAll(resp.Handle); body != fmt.Sprint("/", i) {
			t.Errorf("request %d has the body %q", i, body)
		}
	}
	if len(b.slots) != 0 {
		t.Errorf("%d slots are taken", len(b.slots))
	}
}

// TestStartChecks checks that a request that is started is checked as any other.
func TestStartChecks(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "https://elsewhere.test/", http.StatusFound)
		case "/on":
			http.Redirect(w, r, "/", http.StatusFound)
		}
	})
	b := newBroker(t, &Options{Limits: Limits{PerCall: 5, RequestBody: 10}}, everything(s.URL))
	g := newGuest(t, b)
	var steps int64
	g.call.Spend = func(n int64) error { steps += n; return nil }
	wantError(t, g.wait(g.mustStart("https://elsewhere.test/")).Error, abi.CodeNotGranted, "elsewhere.test")
	wantError(t, g.wait(g.mustStart(s.URL+"/away")).Error, abi.CodeNotGranted, "elsewhere.test")
	before := steps
	if resp := g.wait(g.mustStart(s.URL + "/on")); resp.Status != 200 || steps-before < 2*50_000 {
		t.Errorf("got %+v for %d steps: the redirect is not charged", resp, steps-before)
	}
	_, failure := g.start("not a URL", "")
	wantError(t, failure, abi.CodeInvalid)
	_, failure = g.start(s.URL, "12345678901")
	wantError(t, failure, abi.CodeLimit, "10 of body")
	one, failure := g.start(s.URL, "123456")
	if failure != nil {
		t.Fatal(failure)
	}
	_, failure = g.start(s.URL, "123456")
	wantError(t, failure, abi.CodeLimit, "exceed 10 bytes")
	g.wait(one)
	g.mustStart(s.URL)
	_, failure = g.start(s.URL, "")
	wantError(t, failure, abi.CodeLimit, "5 requests")
}

// TestHostileStart is a guest that starts too many, never waits, waits twice, and uses what is under way.
func TestHostileStart(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	url := held(t, 1, release)
	var mu sync.Mutex
	var seen []Observation
	b := newBroker(t, &Options{Observe: func(o Observation) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, o)
	}}, everything(url))
	g := newGuest(t, b)
	for range maxPending {
		g.mustStart(url)
	}
	for range 3 {
		_, failure := g.start(url, "")
		wantError(t, failure, abi.CodeLimit, "8 running requests", "wait for one")
	}
	wantError(t, g.readError(1, 10), abi.CodeInvalid, "wait for it")
	for _, handle := range []int32{0, -1, maxPending + 1, 1 << 30} {
		wantError(t, g.wait(handle).Error, abi.CodeInvalid)
	}
	g.do("close", 8) // cancels it
	wantError(t, g.wait(8).Error, abi.CodeInvalid, "waited for once")
	wantError(t, g.readError(8, 10), abi.CodeCanceled)
	close(release)
	if resp := g.wait(1); resp.Error != nil {
		t.Fatal(resp.Error)
	}
	wantError(t, g.wait(1).Error, abi.CodeInvalid, "waited for once")
	g.mustStart(url) // there is room again
	if err := g.call.Close(); err != nil || len(b.slots) != 0 {
		t.Errorf("after the call %d slots are taken, %v", len(b.slots), err)
	}
	if mu.Lock(); len(seen) != maxPending+1 {
		t.Errorf("%d requests were observed, want all %d", len(seen), maxPending+1)
	}
	mu.Unlock()
}

// TestCallEndsUnderWay checks that the end of a call cancels what it started, and waits for it.
func TestCallEndsUnderWay(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(cancel context.CancelFunc, g *guest){
		"closed":                func(_ context.CancelFunc, g *guest) { _ = g.call.Close() },
		"canceled, then closed": func(cancel context.CancelFunc, g *guest) { cancel(); _ = g.call.Close() },
		"canceled in wait": func(cancel context.CancelFunc, g *guest) {
			cancel()
			wantError(g.t, g.wait(1).Error, abi.CodeCanceled)
			_ = g.call.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			entered, left := make(chan struct{}, maxPending), make(chan struct{}, maxPending)
			b := newBroker(t, nil, everything("https://a.test"))
			network(func(r *http.Request) (*http.Response, error) {
				entered <- struct{}{}
				<-r.Context().Done()
				left <- struct{}{}
				return nil, r.Context().Err()
			}).under(b)
			g := newGuest(t, b)
			g.ctx = ctx
			for range maxPending {
				g.mustStart("https://a.test/")
				<-entered
			}
			end(cancel, g)
			if len(left) != maxPending || len(b.slots) != 0 {
				t.Errorf("%d of %d requests have ended, %d slots are taken", len(left), maxPending, len(b.slots))
			}
		})
	}
}

// TestStartLeavesRoom checks that calls with many requests under way do not keep others from having one.
func TestStartLeavesRoom(t *testing.T) {
	t.Parallel()
	url := held(t, 1, make(chan struct{}))
	b := newBroker(t, &Options{Limits: Limits{Concurrent: 4}}, everything(url))
	greedy, modest := newGuest(t, b), newGuest(t, b)
	greedy.mustStart(url)
	greedy.mustStart(url)
	_, failure := greedy.start(url, "")
	wantError(t, failure, abi.CodeBusy, "many running requests")
	modest.mustStart(url)
}

// TestStartRecordings checks that what is started is recorded, and answered from recordings, in the order in which it
// was started.
func TestStartRecordings(t *testing.T) {
	t.Parallel()
	n := 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { n++; fmt.Fprint(w, n) })
	var recordings Recordings
	g := newGuest(t,
		newBroker(t, &Options{Record: func(x Exchange) { recordings.Exchanges = append(recordings.Exchanges, x) }},
			everything(s.URL)))
	g.mustStart(s.URL)
	g.mustStart(s.URL)
	g = newGuest(t, newBroker(t, &Options{Replay: &recordings}, everything(s.URL)))
	one, two := g.mustStart(s.URL), g.mustStart(s.URL)
	g.wait(two)
	g.wait(one)
	if first, second := g.readAll(one), g.readAll(two); first != "1" || second != "2" || !g.call.Replayed {
		t.Errorf("got %q and %q, replayed %v", first, second, g.call.Replayed)
	}
}

// TestStartPanic checks that a mistake of the host's traps the guest that waits, and no more.
func TestStartPanic(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil, everything("https://a.test"))
	network(func(*http.Request) (*http.Response, error) { panic(errors.New("a mistake")) }).under(b)
	g := newGuest(t, b)
	handle := g.mustStart("https://a.test/")
	g.mustStart("https://a.test/") // nobody waits for it
	func() {
		defer func() {
			if v := fmt.Sprint(recover()); !strings.Contains(v, "a mistake") {
				t.Errorf("recovered %s", v)
			}
		}()
		g.wait(handle)
	}()
	if err := g.call.Close(); err != nil || len(b.slots) != 0 {
		t.Errorf("%d slots are taken, %v", len(b.slots), err)
	}
}
