package httpbroker

import (
	"context"
	"errors"
	"io"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	// maxHead limits a guest's request head, in bytes.
	maxHead = 64 << 10
	// maxRead limits the bytes that one "read" returns.
	maxRead = 64 << 10
)

// Module returns the import module "hako:http/1", which docs/abi.md describes.
func (b *Broker) Module() broker.Module {
	i32 := broker.I32
	return broker.Module{Name: abi.HTTPModule, Functions: []broker.Function{
		{Name: "request", Params: []broker.Type{i32, i32, i32, i32}, Result: &i32, Do: b.request},
		{Name: "start", Params: []broker.Type{i32, i32, i32, i32}, Result: &i32, Do: b.start},
		{Name: "wait", Params: []broker.Type{i32}, Result: &i32, Do: b.wait},
		{Name: "read", Params: []broker.Type{i32, i32, i32}, Result: &i32, Do: b.read},
		{Name: "close", Params: []broker.Type{i32}, Do: b.close},
	}}
}

func (b *Broker) request(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	head, body, failure := b.fromGuest("http.request", call, params)
	if failure != nil {
		return call.GiveJSON(abi.HTTPResponse{Error: failure})
	}
	resp, err := b.Do(ctx, call, head, body)
	return giveHead(call, len(b.session(call).transactions), resp, err)
}

func (b *Broker) start(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	head, body, failure := b.fromGuest("http.start", call, params)
	if failure != nil {
		return call.GiveError(failure)
	}
	if _, err := b.Start(ctx, call, head, body); err != nil {
		return call.GiveError(ownError(err))
	}
	return uint64(len(b.session(call).transactions))
}

func (b *Broker) wait(_ context.Context, call *broker.Call, params []uint64) uint64 {
	handle := int32(params[0])
	e := b.session(call).transaction(handle)
	if e == nil || e.pending == nil {
		return call.GiveJSON(abi.HTTPResponse{Error: abi.Errorf(abi.CodeInvalid,
			"no started request has the handle %d: each is waited for once", handle)})
	}
	resp, err := e.Wait()
	return giveHead(call, int(handle), resp, err)
}

// fromGuest copies a request out of the guest's memory. The first two parameters are the head, the others the body.
func (b *Broker) fromGuest(function string, call *broker.Call, params []uint64) (
	head *abi.HTTPRequest, body []byte, failure *abi.Error) {
	headLength, bodyLength := params[1], params[3]
	if headLength > maxHead || int64(bodyLength) > b.limits.RequestBody {
		return nil, nil, abi.Errorf(abi.CodeLimit,
			"a request has at most %d bytes of head and %d of body; this one has %d and %d", maxHead,
			b.limits.RequestBody, headLength, bodyLength)
	}
	head, err := decodeHead(call.Bytes(function, params[0], headLength))
	if err != nil {
		return nil, nil, abi.Errorf(abi.CodeInvalid,
			"the request's head is not JSON as docs/abi.md describes it: %v", err)
	}
	if bodyLength > 0 {
		body = call.Bytes(function, params[2], bodyLength)
	}
	return head, body, nil
}

// giveHead leaves the response's head, or the error, for the guest and returns its length.
func giveHead(call *broker.Call, handle int, resp *Response, err error) uint64 {
	if err != nil {
		return call.GiveJSON(abi.HTTPResponse{Error: ownError(err)})
	}
	return call.GiveJSON(abi.HTTPResponse{Handle: int32(handle), Status: resp.Status, Headers: resp.Header,
		URL: resp.URL, Credential: resp.Credential})
}

func decodeHead(data []byte) (*abi.HTTPRequest, error) {
	head := new(abi.HTTPRequest)
	if err := strictjson.UnmarshalKnown(data, head); err != nil {
		return nil, err
	}
	return head, nil
}

func (b *Broker) read(_ context.Context, call *broker.Call, params []uint64) uint64 {
	s := b.session(call)
	e := s.transaction(int32(params[0]))
	if e == nil {
		return call.GiveError(abi.Errorf(abi.CodeInvalid, "no response has the handle %d", int32(params[0])))
	}
	if e.pending != nil {
		return call.GiveError(abi.Errorf(abi.CodeInvalid,
			"the request with the handle %d is running: wait for it before its body is read", int32(params[0])))
	}
	capacity := min(params[2], maxRead)
	if capacity == 0 {
		return call.GiveError(abi.Errorf(abi.CodeInvalid, "read needs a capacity of at least one byte"))
	}
	if s.scratch == nil {
		s.scratch = make([]byte, maxRead)
	}
	n, err := io.ReadAtLeast(e, s.scratch[:capacity], 1)
	call.Charge(int64(n) * fuel.TextSteps)
	if err == io.EOF {
		return 0
	}
	if err != nil {
		return call.GiveError(ownError(err))
	}
	call.Put("http.read", params[1], s.scratch[:n])
	return uint64(n)
}

func (b *Broker) close(_ context.Context, call *broker.Call, params []uint64) uint64 {
	if e := b.session(call).transaction(int32(params[0])); e != nil {
		e.Cancel()
		e.chargeRedirects()
	}
	return 0
}

// ownError returns the *abi.Error in err, which every error of this package contains.
func ownError(err error) *abi.Error {
	var own *abi.Error
	if errors.As(err, &own) {
		return own
	}
	return abi.Errorf(abi.CodeInternal, "%v", err)
}
