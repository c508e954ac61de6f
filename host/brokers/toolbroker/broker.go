// Package toolbroker lets guests call other tools of the host, in parallel.
//
// New returns a Broker for the tools that one plugin may call. Broker.Module is its import module, "hako:tools/1", and
// Broker.CallAll serves components. The calls themselves are made by broker.Call.Tools: they pass policy, approvals,
// quotas and audit as every call of the same caller does.
package toolbroker

import (
	"context"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/toolpattern"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	// maxArguments limits the arguments of the calls of one guest call that have not ended, in bytes.
	maxArguments = 8 << 20
	// maxName limits the name of a tool, in bytes. No tool has a longer one.
	maxName = 256
	// maxQuery limits a query, in bytes, and maxListed the tools of its answer.
	maxQuery  = 4 << 10
	maxListed = 100
)

// Broker calls tools for the guests of one plugin. It is safe for concurrent use.
type Broker struct {
	granted         broker.Granted
	calls, parallel int
}

// New returns a Broker for the tools that names match (manifest.ToolsPermission). One guest call may make at most calls
// calls, of which parallel run at once; the others wait.
func New(names []string, calls, parallel int) *Broker {
	return &Broker{Granted(names), calls, parallel}
}

// Granted returns whether names match a tool. It is nil without names.
func Granted(names []string) broker.Granted {
	if len(names) == 0 {
		return nil
	}
	patterns := make([]toolpattern.Pattern, len(names))
	for i, name := range names {
		patterns[i] = toolpattern.Compile(name)
	}
	return func(plugin, tool string) bool {
		return slices.ContainsFunc(patterns,
			func(p toolpattern.Pattern) bool { return p.MatchesTool(tool, plugin+"/"+tool) })
	}
}

// Module returns the import module "hako:tools/1", which docs/abi.md describes.
func (b *Broker) Module() broker.Module {
	i32 := broker.I32
	return broker.Module{Name: abi.ToolsModule, Functions: []broker.Function{
		{Name: "start", Params: []broker.Type{i32, i32}, Result: &i32, Do: b.start},
		{Name: "wait", Result: &i32, Do: b.wait},
		{Name: "list", Params: []broker.Type{i32, i32}, Result: &i32, Do: b.list},
	}}
}

// session holds the calls of one guest call.
type session struct {
	call *broker.Call
	// slots has an entry for each call that runs or whose end the guest has not got, so that few results are held.
	slots   chan struct{}
	ended   chan ended
	cancel  context.CancelFunc // of all calls; nil before the first
	ctx     context.Context
	group   sync.WaitGroup
	started int // so far
	// uncollected is the number of calls whose end the guest has not got, arguments the size of their arguments.
	uncollected, arguments int
	// deferred is a call that was begun but not started, while it is the only uncollected one. next runs it on the
	// guest's goroutine, because two goroutine switches cost more than a small call. Beginning a second call starts it
	// in a goroutine.
	deferred func()
}

// ended is the end of a call.
type ended struct {
	*abi.ToolEnd
	steps     int64
	arguments int
	slot      bool // it has one
}

func (b *Broker) session(call *broker.Call) *session {
	return broker.State(call, b, func() *session {
		return &session{call: call, slots: make(chan struct{}, b.parallel), ended: make(chan ended, b.calls)}
	})
}

// Private implements broker.Private.
func (*session) Private() {}

// Close cancels the calls that run, and charges for those whose end the guest has not got.
func (s *session) Close() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.group.Wait()
	close(s.ended)
	steps := int64(0)
	for end := range s.ended {
		steps += end.steps
	}
	if steps == 0 || s.call.Spend == nil {
		return nil
	}
	return s.call.Spend(steps)
}

// begin starts a call and returns its handle.
func (b *Broker) begin(ctx context.Context, call *broker.Call, request *abi.ToolCall) (int32, *abi.Error) {
	s := b.session(call)
	switch {
	case call.Tools == nil:
		return 0, abi.Errorf(abi.CodeNotGranted, "no other tools can be called here")
	case len(request.Name) > maxName:
		return 0, abi.Errorf(abi.CodeInvalid, "the name of the tool has %d bytes, and names have at most %d",
			len(request.Name), maxName)
	case s.started == b.calls:
		return 0, abi.Errorf(abi.CodeLimit, "one call may call other tools %d times (limits.calls)", b.calls)
	case s.arguments+len(request.Arguments) > maxArguments:
		return 0, abi.Errorf(abi.CodeLimit,
			"the arguments of the calls that run exceed %d bytes: wait for one of them first",
			maxArguments)
	}
	if s.cancel == nil {
		s.ctx, s.cancel = context.WithCancel(ctx)
	}
	s.started++
	s.uncollected++
	s.arguments += len(request.Arguments)
	handle := int32(s.started)
	run := func() { s.run(call.Tools, handle, request, b.granted) }
	if s.uncollected == 1 {
		s.deferred = run
		return handle, nil
	}
	s.startDeferred()
	s.group.Go(run)
	return handle, nil
}

// startDeferred starts the deferred call, if there is one, in a goroutine.
func (s *session) startDeferred() {
	if s.deferred != nil {
		s.group.Go(s.deferred)
		s.deferred = nil
	}
}

// run makes a call once there is a slot.
func (s *session) run(tools broker.Tools, handle int32, request *abi.ToolCall, granted broker.Granted) {
	end := ended{arguments: len(request.Arguments)}
	select {
	case s.slots <- struct{}{}:
		end.slot = true
		end.ToolEnd, end.steps = tools.Call(s.ctx, request, granted)
	case <-s.ctx.Done():
		end.ToolEnd = &abi.ToolEnd{Error: abi.Errorf(abi.CodeCanceled,
			"%s was not called: the call has ended", request.Name)}
	}
	end.Handle = handle
	s.ended <- end
}

// next waits for a call to end.
func (s *session) next(ctx context.Context) (*abi.ToolEnd, *abi.Error) {
	if s.uncollected == 0 {
		return nil, abi.Errorf(abi.CodeInvalid, "no call runs that could be waited for: each is waited for once")
	}
	if run := s.deferred; run != nil {
		s.deferred = nil
		run()
	}
	select {
	case end := <-s.ended:
		s.uncollected--
		s.arguments -= end.arguments
		if end.slot {
			<-s.slots
		}
		s.call.Charge(end.steps)
		return end.ToolEnd, nil
	case <-ctx.Done():
		return nil, abi.Errorf(abi.CodeCanceled, "%v", ctx.Err())
	}
}

func (b *Broker) start(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	if params[1] > maxArguments {
		return call.GiveError(abi.Errorf(abi.CodeLimit, "the call is longer than %d bytes", maxArguments))
	}
	call.Charge(broker.ToolCallSteps + int64(params[1])*fuel.TextSteps)
	request := new(abi.ToolCall)
	data := call.Bytes("tools.start", params[0], params[1])
	if !utf8.Valid(data) {
		return call.GiveError(abi.Errorf(abi.CodeInvalid, "the call is not UTF-8"))
	}
	if err := strictjson.UnmarshalKnown(data, request); err != nil {
		return call.GiveError(abi.Errorf(abi.CodeInvalid, "the call is not JSON as docs/abi.md describes it: %v", err))
	}
	handle, failure := b.begin(ctx, call, request)
	if failure != nil {
		return call.GiveError(failure)
	}
	return uint64(handle)
}

func (b *Broker) wait(ctx context.Context, call *broker.Call, _ []uint64) uint64 {
	end, failure := b.session(call).next(ctx)
	if failure != nil {
		end = &abi.ToolEnd{Error: failure}
	}
	return call.GiveJSON(end)
}

func (b *Broker) list(_ context.Context, call *broker.Call, params []uint64) uint64 {
	if params[1] > maxQuery {
		return call.GiveJSON(abi.ToolList{Error: errQuery})
	}
	query := new(abi.ToolQuery)
	if err := strictjson.UnmarshalKnown(call.Bytes("tools.list", params[0], params[1]), query); err != nil {
		return call.GiveJSON(abi.ToolList{
			Error: abi.Errorf(abi.CodeInvalid, "the query is not JSON as docs/abi.md describes it: %v", err)})
	}
	return call.GiveJSON(b.List(call, query))
}

// errQuery is the error for a query of more than maxQuery bytes: what a search costs grows with its words.
var errQuery = abi.Errorf(abi.CodeLimit, "the query is longer than %d bytes", maxQuery)

// List returns the tools that match a query.
func (b *Broker) List(call *broker.Call, query *abi.ToolQuery) *abi.ToolList {
	call.Charge(broker.ToolCallSteps)
	switch {
	case call.Tools == nil:
		return &abi.ToolList{Error: abi.Errorf(abi.CodeNotGranted, "no other tools can be called here")}
	case query.Limit < 0 || query.Limit > maxListed:
		return &abi.ToolList{Error: abi.Errorf(abi.CodeInvalid, "the limit is %d, and must be 0 to %d",
			query.Limit, maxListed)}
	case len(query.Query) > maxQuery:
		return &abi.ToolList{Error: errQuery}
	case query.Limit == 0:
		query.Limit = maxListed
	}
	b.session(call) // the list is the caller's: see Private
	list := call.Tools.List(query, b.granted)
	call.Charge(int64(list.Total) * broker.EntrySteps)
	return list
}

// CallAll makes calls for a guest that waits for all of them, and returns their ends in the same order. The results
// together have at most memory bytes, those that the guest has room for; an error takes the place of what is beyond.
func (b *Broker) CallAll(ctx context.Context, call *broker.Call, requests []*abi.ToolCall,
	memory int64) []*abi.ToolEnd {
	ends := make([]*abi.ToolEnd, len(requests))
	positions := map[int32]int{}
	for i, request := range requests {
		call.Charge(broker.ToolCallSteps + int64(len(request.Arguments))*fuel.TextSteps)
		handle, failure := b.begin(ctx, call, request)
		if failure != nil {
			ends[i] = &abi.ToolEnd{Error: failure}
			continue
		}
		positions[handle] = i
	}
	for range positions {
		end, failure := b.session(call).next(ctx)
		if failure != nil {
			break
		}
		size := resultBytes(end)
		if size > memory {
			end = &abi.ToolEnd{Handle: end.Handle, Error: abi.Errorf(abi.CodeLimit, "the tool was called, and its result of "+
				"%d bytes is dropped: with the results of the other calls it has more than limits.memory allows: make fewer "+
				"calls at once, or raise it", size)}
			size = 0
		}
		memory -= size
		ends[positions[end.Handle]] = end
	}
	for i := range ends {
		if ends[i] == nil {
			ends[i] = &abi.ToolEnd{Error: abi.Errorf(abi.CodeCanceled, "the call has ended")}
		}
	}
	return ends
}

// resultBytes returns the size of a tool's result or error.
func resultBytes(end *abi.ToolEnd) int64 {
	size := len(end.StructuredContent)
	if end.Error != nil {
		size += len(end.Error.Message)
	}
	for i := range end.Content {
		content := &end.Content[i]
		size += len(content.Text) + len(content.Data)
		if content.Resource != nil {
			size += len(content.Resource.Text)
		}
	}
	return int64(size)
}
