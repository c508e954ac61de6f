package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// guest calls the interfaces as a component does.
type guest struct {
	t         *testing.T
	functions map[string]broker.InterfaceFunc
	ctx       context.Context
	call      *broker.Call
	spent     int64
	log       bytes.Buffer
}

// newGuest returns a guest in a call that ends with the test.
func newGuest(t *testing.T, o wasi.Options) *guest {
	t.Helper()
	g := &guest{t: t, functions: map[string]broker.InterfaceFunc{}, ctx: t.Context()}
	o.Print = func(_ context.Context, level abi.LogLevel, p []byte) { fmt.Fprintf(&g.log, "%d:%s", level, p) }
	o.Log = func(_ context.Context, level abi.LogLevel, text string) { fmt.Fprintf(&g.log, "%d:%s\n", level, text) }
	g.call = &broker.Call{Plugin: "weather", Tool: "now", Spend: func(steps int64) error {
		g.spent += steps
		return g.ctx.Err()
	}}
	for _, i := range wasi.New(&o) {
		for name, f := range i.Functions {
			g.functions[i.Name+"#"+name] = f
		}
	}
	t.Cleanup(g.end)
	return g
}

// end ends the call.
func (g *guest) end() {
	if err := g.call.Close(); err != nil {
		g.t.Error(err)
	}
}

func (g *guest) do(function string, args ...any) any {
	g.t.Helper()
	f := g.functions[function]
	if f == nil {
		g.t.Fatalf("there is no %s", function)
	}
	result := f(g.ctx, g.call, args)
	checkTypes(g.t, function, args, result)
	return result
}

// ok returns the value of a successful result.
func (g *guest) ok(function string, args ...any) any {
	g.t.Helper()
	result := g.do(function, args...).(component.Case)
	if result.Number != 0 {
		g.t.Fatalf("%s: %+v", function, result)
	}
	return result.Value
}

// failed returns the error of a failed result.
func (g *guest) failed(function string, args ...any) any {
	g.t.Helper()
	result := g.do(function, args...).(component.Case)
	if result.Number != 1 {
		g.t.Fatalf("%s succeeded: %+v", function, result)
	}
	return result.Value
}

// trap returns the error that ended the call.
func (g *guest) trap(function string, args ...any) (err error) {
	g.t.Helper()
	defer func() {
		r := recover()
		if err, _ = r.(error); err == nil {
			g.t.Fatalf("%s did not end the call: %v", function, r)
		}
	}()
	g.do(function, args...)
	return nil
}

func (g *guest) want(got, want any) {
	g.t.Helper()
	if !reflect.DeepEqual(got, want) {
		g.t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

// drop drops a resource.
func drop(resource any) {
	if d, ok := resource.(component.Dropper); ok {
		d.Drop()
	}
}

var closed = component.Case{Number: 1} // stream-error.closed

func TestCLI(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{Environment: [][2]string{{"A", "1"}, {"B", ""}}})
	g.want(g.do("wasi:cli/environment#get-environment"), []any{[]any{"A", "1"}, []any{"B", ""}})
	g.want(g.do("wasi:cli/environment#get-arguments"), []any{})
	g.want(g.do("wasi:cli/environment#initial-cwd"), component.None)
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		g.want(g.do("wasi:cli/terminal-"+name+"#get-terminal-"+name), component.None)
	}
	for function, arg := range map[string]any{"exit": component.Failed(nil), "exit-with-code": uint64(1)} {
		var exit *wasi.ExitError
		if err := g.trap("wasi:cli/exit#"+function, arg); !errors.As(err, &exit) || exit.Code != 1 {
			t.Errorf("%s: %v", function, err)
		}
	}
}

// Standard streams last longer than a call: an image may hold them.
func TestStandardStreams(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	in := g.do("wasi:cli/stdin#get-stdin")
	for _, function := range []string{"read", "blocking-read", "skip", "blocking-skip"} {
		g.want(g.failed("wasi:io/streams#[method]input-stream."+function, in, uint64(9)), closed)
	}
	const output = "wasi:io/streams#[method]output-stream."
	out, errors := g.do("wasi:cli/stdout#get-stdout"), g.do("wasi:cli/stderr#get-stderr")
	g.want(g.ok(output+"check-write", out), uint64(1<<20))
	g.ok(output+"write", out, []byte("a "))
	g.ok(output+"blocking-write-and-flush", errors, []byte("b "))
	g.ok(output+"write-zeroes", out, uint64(2))
	g.ok(output+"flush", out)
	g.ok(output+"blocking-flush", out)
	g.want(g.failed(output+"splice", out, in, uint64(3)), closed)
	g.want(g.log.String(), "0:a 4:b 0:\x00\x00")
	for _, stream := range []any{in, out, errors, g.do(output+"subscribe", out),
		g.do("wasi:io/streams#[method]input-stream.subscribe", in)} {
		if _, ok := stream.(component.Lasting); !ok {
			t.Errorf("%T does not last", stream)
		}
	}
	g.want(g.do("wasi:io/poll#poll", []any{g.do(output+"subscribe", out)}), []any{uint64(0)})
	for function, arg := range map[string]any{"write": make([]byte, 1<<20+1), "write-zeroes": uint64(math.MaxUint64),
		"blocking-write-zeroes-and-flush": uint64(1<<20 + 1)} {
		if err := g.trap(output+function, out, arg); !strings.Contains(err.Error(), "check-write permits 1048576") {
			t.Errorf("%s: %v", function, err)
		}
	}
}

func TestLogging(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	g.do("wasi:logging/logging#log", component.Case{Number: 3}, "cache", "is full")
	g.do("wasi:logging/logging#log", component.Case{Number: 5}, "", "it burns")
	g.want(g.log.String(), "4:cache: is full\n8:it burns\n")
}

func TestClocks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 0, 0, 7, 5, time.UTC)
	g := newGuest(t, wasi.Options{Now: func() time.Time { return now }, Monotonic: func() uint64 { return 42 }})
	g.want(g.do("wasi:clocks/wall-clock#now"), []any{uint64(now.Unix()), uint64(5)})
	g.want(g.do("wasi:clocks/wall-clock#resolution"), []any{uint64(0), uint64(1)})
	g.want(g.do("wasi:clocks/monotonic-clock#now"), uint64(42))
	for _, at := range []uint64{0, 41, 42} {
		g.want(g.do("wasi:io/poll#[method]pollable.ready", g.do("wasi:clocks/monotonic-clock#subscribe-instant", at)), true)
	}
	for _, d := range []uint64{1, math.MaxUint64} {
		timer := g.do("wasi:clocks/monotonic-clock#subscribe-duration", d)
		g.want(g.do("wasi:io/poll#[method]pollable.ready", timer), false)
	}
	g.want(g.do("wasi:clocks/timezone#utc-offset", []any{uint64(0), uint64(0)}), int64(0))
}

func TestPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuest(t, wasi.Options{})
		timer := func(d time.Duration) any {
			return g.do("wasi:clocks/monotonic-clock#subscribe-duration", uint64(d))
		}
		start := time.Now()
		day, hour := timer(24*time.Hour), timer(time.Hour)
		g.want(g.do("wasi:io/poll#poll", []any{day, hour, hour}), []any{uint64(1), uint64(2)})
		g.want(time.Since(start), time.Hour)
		g.do("wasi:io/poll#[method]pollable.block", day)
		g.want(time.Since(start), 24*time.Hour)
		g.want(g.do("wasi:io/poll#poll", []any{day, hour}), []any{uint64(0), uint64(1)})

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g.ctx = ctx
		if err := g.trap("wasi:io/poll#poll", []any{timer(time.Hour)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the deadline does not end a poll: %v", err)
		}
		g.ctx = t.Context()
	})
}

func TestHostilePoll(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	ready := g.do("wasi:clocks/monotonic-clock#subscribe-instant", uint64(0))
	for text, list := range map[string][]any{
		"empty list":        {},
		"at most 1024":      slices.Repeat([]any{ready}, 1025),
		"other types than":  {ready, "a string"},
		"other types  than": {nil},
	} {
		if err := g.trap("wasi:io/poll#poll", list); !strings.Contains(err.Error(), strings.Join(strings.Fields(text), " ")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	before := g.spent
	g.do("wasi:io/poll#poll", slices.Repeat([]any{ready}, 1024))
	g.want(g.spent-before, int64(1024*broker.EntrySteps))
}

func TestRandom(t *testing.T) {
	t.Parallel()
	drawn := 0
	g := newGuest(t, wasi.Options{RandomDrawn: func(context.Context) { drawn++ }})
	a := g.do("wasi:random/random#get-random-bytes", uint64(1<<20)).([]byte)
	b := g.do("wasi:random/insecure#get-insecure-random-bytes", uint64(1<<20)).([]byte)
	if len(a) != 1<<20 || bytes.Equal(a, b) {
		t.Error("they are not random")
	}
	g.want(g.spent, int64(2<<20))
	g.want(g.do("wasi:random/random#get-random-bytes", uint64(0)), []byte{})
	if g.do("wasi:random/random#get-random-u64") == g.do("wasi:random/insecure#get-insecure-random-u64") {
		t.Error("the numbers are equal")
	}
	g.want(drawn, 5)
	if seed := g.do("wasi:random/insecure-seed#insecure-seed").([]any); seed[0] == seed[1] {
		t.Errorf("the seed is %v", seed)
	}
	g.want(drawn, 5)
	err := g.trap("wasi:random/random#get-random-bytes", uint64(math.MaxUint64))
	if !strings.Contains(err.Error(), "at most 1048576") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.ctx = ctx
	if err = g.trap("wasi:random/random#get-random-bytes", uint64(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call still draws random numbers: %v", err)
	}
}

func TestSockets(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	denied := component.Case{Number: 1}
	network := g.do("wasi:sockets/instance-network#instance-network")
	g.want(g.failed("wasi:sockets/tcp-create-socket#create-tcp-socket", component.Case{}), denied)
	g.want(g.failed("wasi:sockets/udp-create-socket#create-udp-socket", component.Case{}), denied)
	g.want(g.failed("wasi:sockets/ip-name-lookup#resolve-addresses", network, "example.com"), denied)
	if n := strings.Count(g.log.String(), "use wasi:http"); n != 3 {
		t.Errorf("the log has the remedy %d times: %s", n, &g.log)
	}
	if err := g.trap("wasi:sockets/tcp#[method]tcp-socket.accept", "forged"); !strings.Contains(err.Error(), "wasi:http") {
		t.Error(err)
	}
}

// The types of a component's imports are its own: values of other types, and resources of other interfaces, end the
// call with an error that names the function, not the process.
func TestHostileTypes(t *testing.T) {
	t.Parallel()
	g := newGuest(t, wasi.Options{})
	headers := g.do("wasi:http/types#[constructor]fields")
	values := []any{nil, "text", uint64(1), int64(-1), 0.5, true, uint32(1), []byte("x"), []any{}, []any{"x", []any{"x"}},
		component.None, component.Some("x"), component.Case{Number: math.MaxUint32, Value: []any{component.None}},
		headers, g.do("wasi:http/types#[constructor]outgoing-request", headers), g.preopen(0),
		g.do("wasi:http/types#[constructor]request-options"), g.do("wasi:cli/stdout#get-stdout"),
		g.do("wasi:cli/stdin#get-stdin"), g.do("wasi:clocks/monotonic-clock#subscribe-duration", uint64(0))}
	try := func(name string, args ...any) {
		defer func() {
			r := recover()
			switch err, ok := r.(error); {
			case r != nil && !ok, errors.As(err, new(runtime.Error)):
				t.Errorf("%s%v: %v", name, args, r)
			case err != nil && strings.Contains(err.Error(), "other types") && !strings.HasPrefix(err.Error(), name+": "):
				t.Errorf("%s%v is not named: %v", name, args, err)
			}
		}()
		g.functions[name](g.ctx, g.call, args)
	}
	for name := range g.functions {
		try(name)
		for _, a := range values {
			for _, b := range values {
				try(name, a, b, a, b, a)
				try(name, a, a, b, b, b)
			}
		}
	}
}
