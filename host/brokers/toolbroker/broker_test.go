package toolbroker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hako-run/hako/dev/kit/brokertest"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/toolbroker"
	"github.com/hako-run/hako/pdk/abi"
)

// tools answers calls when they are released.
type tools struct {
	running, most atomic.Int32
	release       chan struct{}
}

func (s *tools) Call(ctx context.Context, request *abi.ToolCall, granted broker.Granted) (*abi.ToolEnd, int64) {
	if !granted("plugin", request.Name) {
		return &abi.ToolEnd{Error: &abi.Error{Code: abi.CodeDenied}}, 0
	}
	if n := s.running.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.running.Add(-1)
	select {
	case <-s.release:
		return &abi.ToolEnd{StructuredContent: request.Arguments}, 7
	case <-ctx.Done():
		return &abi.ToolEnd{Error: &abi.Error{Code: abi.CodeCanceled}}, 3
	}
}

func (s *tools) List(query *abi.ToolQuery, _ broker.Granted) *abi.ToolList {
	return &abi.ToolList{Tools: []abi.ListedTool{}, Total: query.Limit}
}

// guest calls the functions of the module.
type guest struct {
	t     *testing.T
	call  *broker.Call
	do    map[string]broker.Function
	steps int64
}

func newGuest(t *testing.T, b *toolbroker.Broker, s broker.Tools) *guest {
	g := &guest{t: t, call: &broker.Call{Memory: make(brokertest.Memory, 1<<16), Tools: s}, do: map[string]broker.Function{}}
	g.call.Spend = func(steps int64) error {
		g.steps += steps
		return nil
	}
	for _, f := range b.Module().Functions {
		g.do[f.Name] = f
	}
	return g
}

// pass calls a function with a text.
func (g *guest) pass(function, text string) int32 {
	g.call.Memory.Write(0, []byte(text))
	return int32(g.do[function].Do(g.t.Context(), g.call, []uint64{0, uint64(len(text))}))
}

// taken is the answer as the guest would take it.
func (g *guest) taken() (text string) {
	for _, part := range g.call.Take() {
		text += string(part)
	}
	return text
}

func (g *guest) wait() (end abi.ToolEnd) {
	g.t.Helper()
	g.do["wait"].Do(g.t.Context(), g.call, nil)
	if err := json.Unmarshal([]byte(g.taken()), &end); err != nil {
		g.t.Fatal(err)
	}
	return end
}

// TestParallel: at most so many calls run at once as the limit says, also while their ends are not fetched, and those
// whose end nobody fetches are ended and paid for.
func TestParallel(t *testing.T) {
	t.Parallel()
	s := &tools{release: make(chan struct{}, 10)}
	g := newGuest(t, toolbroker.New([]string{"a*"}, 10, 2), s)
	for i := range 6 {
		if handle := g.pass("start", fmt.Sprintf(`{"name":"a","arguments":{"n":%d}}`, i)); handle != int32(i+1) {
			t.Fatalf("call %d has the handle %d: %s", i, handle, g.taken())
		}
	}
	seen := map[int32]bool{}
	for range 4 {
		s.release <- struct{}{}
		end := g.wait()
		if want := fmt.Sprintf(`{"n":%d}`, end.Handle-1); end.Error != nil || string(end.StructuredContent) != want || seen[end.Handle] {
			t.Errorf("%+v, want %s", end, want)
		}
		seen[end.Handle] = true
	}
	if most := s.most.Load(); most > 2 {
		t.Errorf("%d calls ran at once", most)
	}
	before := g.steps
	if err := g.call.Close(); err != nil {
		t.Error(err)
	}
	if left := s.running.Load(); left != 0 || g.steps-before > 6 {
		t.Errorf("%d calls run after the end, which cost %d steps", left, g.steps-before)
	}
}

// TestStartAlone: a call begins when the guest waits for it or starts another, and one for which nobody waits is never
// made.
func TestStartAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &tools{release: make(chan struct{}, 10)}
		g := newGuest(t, toolbroker.New([]string{"a"}, 10, 4), s)
		start := func(running int32) {
			t.Helper()
			if handle := g.pass("start", `{"name":"a"}`); handle <= 0 {
				t.Fatal(g.taken())
			}
			synctest.Wait()
			if n := s.running.Load(); n != running {
				t.Errorf("%d calls run, want %d", n, running)
			}
		}
		start(0)
		s.release <- struct{}{}
		if end := g.wait(); end.Handle != 1 || end.Error != nil {
			t.Errorf("alone: %+v", end)
		}
		start(0)
		start(2)
		start(3)
		for range 3 {
			s.release <- struct{}{}
			if end := g.wait(); end.Error != nil {
				t.Errorf("of three: %+v", end)
			}
		}
		start(0)
		before := g.steps
		if err := g.call.Close(); err != nil || g.steps != before {
			t.Errorf("%v, and a call for which nobody waited cost %d steps", err, g.steps-before)
		}
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s := &tools{release: make(chan struct{}, 10)}
	g := newGuest(t, toolbroker.New([]string{"a*"}, 3, 2), s)
	for text, want := range map[string]string{
		``: abi.CodeInvalid, `{`: abi.CodeInvalid, `[]`: abi.CodeInvalid, `{"name":1}`: abi.CodeInvalid,
		`{"name":"a","unknown":1}`: abi.CodeInvalid, "{\"name\":\"\xff\"}": abi.CodeInvalid,
		`{"name":"a` + strings.Repeat("a", 256) + `"}`: abi.CodeInvalid,
	} {
		handle := g.pass("start", text)
		var failure abi.Error
		if err := json.Unmarshal([]byte(g.taken()), &failure); err != nil || handle >= 0 || failure.Code != want {
			t.Errorf("%q: %d, %+v, %v", text, handle, failure, err)
		}
	}
	if end := g.wait(); end.Error == nil || end.Error.Code != abi.CodeInvalid {
		t.Errorf("waiting for nothing: %+v", end)
	}
	if g.pass("start", `{"name":"b"}`) != 1 {
		t.Fatal(g.taken())
	}
	if end := g.wait(); end.Error == nil || end.Error.Code != abi.CodeDenied || end.Handle != 1 {
		t.Errorf("outside of the names: %+v", end)
	}
	g.pass("start", `{"name":"a"}`)
	g.pass("start", `{"name":"a"}`)
	if handle := g.pass("start", `{"name":"a"}`); handle >= 0 {
		t.Errorf("the fourth call has the handle %d", handle)
	}
	g.taken()
	for query, want := range map[string]string{
		`{"limit":-1}`: abi.CodeInvalid, `{"limit":101}`: abi.CodeInvalid, `{"q":""}`: abi.CodeInvalid, `{}`: "",
	} {
		g.pass("list", query)
		var list abi.ToolList
		if err := json.Unmarshal([]byte(g.taken()), &list); err != nil || list.Error != nil && list.Error.Code != want ||
			list.Error == nil && want != "" {
			t.Errorf("%s: %+v, %v", query, list, err)
		}
	}
	if err := g.call.Close(); err != nil {
		t.Error(err)
	}
	none := newGuest(t, toolbroker.New([]string{"*"}, 3, 2), nil)
	none.call.Tools = nil
	if handle := none.pass("start", `{"name":"a"}`); handle >= 0 {
		t.Errorf("without tools: %d", handle)
	}
}

// TestHostileQuery: a component passes a query of any length, which is refused like that of a module, before a search.
func TestHostileQuery(t *testing.T) {
	t.Parallel()
	b := toolbroker.New([]string{"*"}, 3, 2)
	g := newGuest(t, b, &tools{})
	for length, refused := range map[int]bool{4 << 10: false, 4<<10 + 1: true, 32 << 20: true} {
		list := b.List(g.call, &abi.ToolQuery{Query: strings.Repeat("a ", length/2) + "a"[:length%2]})
		if (list.Error != nil) != refused || refused && list.Error.Code != abi.CodeLimit {
			t.Errorf("%d bytes: %+v", length, list)
		}
	}
}

// TestHostileResults: a guest that waits for all calls gets as many bytes of results as it has room for. Errors say
// that the others were dropped.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	const calls, size = 20, 1000
	s := &tools{release: make(chan struct{}, calls)}
	b := toolbroker.New([]string{"*"}, calls, 4)
	g := newGuest(t, b, s)
	requests := make([]*abi.ToolCall, calls)
	for i := range requests {
		s.release <- struct{}{}
		requests[i] = &abi.ToolCall{Name: "a", Arguments: json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)}
	}
	got, dropped := 0, 0
	for _, end := range b.CallAll(t.Context(), g.call, requests, 5*size+1) {
		switch {
		case end.Error == nil:
			got += len(end.StructuredContent)
		case end.Error.Code == abi.CodeLimit && strings.Contains(end.Error.Message, "limits.memory"):
			dropped++
		default:
			t.Errorf("%+v", end.Error)
		}
	}
	if got != 5*size || dropped != calls-5 {
		t.Errorf("%d bytes, %d results are dropped", got, dropped)
	}
	if err := g.call.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzStart: whatever a guest passes, it gets a handle or an error.
func FuzzStart(f *testing.F) {
	f.Add(`{"name":"a","arguments":{}}`)
	f.Add(`{"name":"a","arguments":[`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		s := &tools{release: make(chan struct{}, 1)}
		s.release <- struct{}{}
		g := newGuest(t, toolbroker.New([]string{"*"}, 1, 1), s)
		handle := g.pass("start", text)
		if handle == 1 {
			if end := g.wait(); end.Handle != 1 {
				t.Errorf("%+v", end)
			}
		} else if !json.Valid([]byte(g.taken())) {
			t.Errorf("%d", handle)
		}
		if err := g.call.Close(); err != nil {
			t.Error(err)
		}
	})
}
