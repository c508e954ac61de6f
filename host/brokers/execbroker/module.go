package execbroker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/fuel"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	// maxRequest limits a guest's request, in bytes.
	maxRequest = 256 << 10
	// maxRead limits the bytes that one "read" returns.
	maxRead = 64 << 10
)

// Module returns the import module "hako:exec/1", which docs/abi.md describes.
func (b *Broker) Module() broker.Module {
	i32, i64 := broker.I32, broker.I64
	return broker.Module{Name: abi.ExecModule, Functions: []broker.Function{
		{Name: "start", Params: []broker.Type{i32, i32}, Result: &i32, Do: b.start},
		{Name: "read", Params: []broker.Type{i32, i32, i32}, Result: &i64, Do: b.read},
		{Name: "wait", Params: []broker.Type{i32}, Result: &i32, Do: b.wait},
		{Name: "close", Params: []broker.Type{i32}, Do: b.close},
	}}
}

// session holds the commands of one guest call. Handle n is commands[n-1].
type session struct{ commands []*command }

func (b *Broker) session(call *broker.Call) *session {
	return broker.State(call, b, func() *session { return new(session) })
}

// Private implements broker.Private.
func (*session) Private() {}

// Close stops all commands and waits for their end.
func (s *session) Close() error {
	for _, c := range s.commands {
		c.stop(errClosed)
	}
	for _, c := range s.commands {
		<-c.done
	}
	return nil
}

func (s *session) command(handle int32) *command {
	if handle < 1 || int(handle) > len(s.commands) {
		return nil
	}
	return s.commands[handle-1]
}

func (b *Broker) start(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	s := b.session(call)
	if params[1] > maxRequest {
		return call.GiveJSON(abi.ExecStarted{Error: abi.Errorf(abi.CodeLimit,
			"the command is longer than %d bytes", maxRequest)})
	}
	call.Charge(broker.CommandSteps + int64(params[1])*fuel.TextSteps)
	request, err := decodeRequest(call.Bytes("exec.start", params[0], params[1]))
	if err != nil {
		return call.GiveJSON(abi.ExecStarted{Error: abi.Errorf(abi.CodeInvalid,
			"the command is not JSON as docs/abi.md describes it: %v", err)})
	}
	if _, failure := s.start(ctx, b, call, request); failure != nil {
		return call.GiveJSON(abi.ExecStarted{Error: failure})
	}
	return call.GiveJSON(abi.ExecStarted{Handle: int32(len(s.commands))})
}

// start starts a command of the call.
func (s *session) start(ctx context.Context, b *Broker, call *broker.Call, request *abi.ExecRequest) (*command,
	*abi.Error) {
	if len(s.commands) == maxHandles {
		return nil, abi.Errorf(abi.CodeLimit, "one call may start at most %d commands", maxHandles)
	}
	c, failure := b.launch(ctx, call, request)
	if failure == nil {
		s.commands = append(s.commands, c)
	}
	return c, failure
}

// Run runs a command for call, as a guest does that waits for it, and returns its output and its end. The result has
// Error alone if the command was refused.
func (b *Broker) Run(ctx context.Context, call *broker.Call, request *abi.ExecRequest) (stdout, stderr []byte,
	exit *abi.ExecExit) {
	size := len(request.Line) + len(request.Cwd)
	for _, argument := range request.Argv {
		size += len(argument) + 1 // an empty one takes memory too
	}
	call.Charge(broker.CommandSteps + int64(size)*fuel.TextSteps)
	failure := check(request)
	if size > maxRequest {
		failure = fmt.Errorf("it is longer than %d bytes", maxRequest)
	}
	if failure != nil {
		return nil, nil, &abi.ExecExit{Error: abi.Errorf(abi.CodeInvalid, "the command cannot be run: %v", failure)}
	}
	c, refused := b.session(call).start(ctx, b, call, request)
	if refused != nil {
		return nil, nil, &abi.ExecExit{Error: refused}
	}
	output := map[int][]byte{}
	for {
		stream, data, err := c.output.read(ctx, maxRead)
		if err != nil {
			return nil, nil, &abi.ExecExit{Error: abi.Errorf(endCode(err), "%v", err)}
		}
		if stream == 0 {
			break
		}
		call.Charge(fuel.CopySteps(uint64(len(data))))
		output[stream] = append(output[stream], data...)
	}
	<-c.done
	return output[abi.ExecStdout], output[abi.ExecStderr], c.exit
}

// maxTimeout limits timeoutMs, so that it does not overflow. The deadline of the call is earlier anyway.
const maxTimeout = 24 * time.Hour

func decodeRequest(data []byte) (*abi.ExecRequest, error) {
	request := new(abi.ExecRequest)
	if err := strictjson.UnmarshalKnown(data, request); err != nil {
		return nil, err
	}
	return request, check(request)
}

// check returns an error if a request is malformed.
func check(request *abi.ExecRequest) error {
	switch {
	case (len(request.Argv) > 0) == (request.Line != ""):
		return errors.New("set exactly one of argv and line")
	case len(request.Argv) > 0 && request.Argv[0] == "":
		return errors.New("argv names no program")
	case request.TimeoutMS < 0 || request.TimeoutMS > maxTimeout.Milliseconds():
		return errors.New("timeoutMs is out of range")
	}
	for _, argument := range append([]string{request.Line}, request.Argv...) {
		if strings.IndexByte(argument, 0) >= 0 {
			return errors.New("it contains a NUL character")
		}
	}
	return nil
}

func (b *Broker) read(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	c := b.session(call).command(int32(params[0]))
	if c == nil {
		return giveError(call, abi.Errorf(abi.CodeInvalid, "no command has the handle %d", int32(params[0])))
	}
	capacity := min(params[2], maxRead)
	if capacity == 0 {
		return giveError(call, abi.Errorf(abi.CodeInvalid, "read needs a capacity of at least one byte"))
	}
	stream, data, err := c.output.read(ctx, int(capacity))
	if err != nil {
		return giveError(call, abi.Errorf(endCode(err), "%v", err))
	}
	call.Put("exec.read", params[1], data)
	return uint64(stream)<<32 | uint64(len(data))
}

// giveError is Call.GiveError for read, which returns an i64.
func giveError(call *broker.Call, err *abi.Error) uint64 {
	return uint64(int64(int32(call.GiveError(err))))
}

// endCode returns the ABI code for a context's error.
func endCode(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return abi.CodeTimeout
	}
	return abi.CodeCanceled
}

func (b *Broker) wait(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	c := b.session(call).command(int32(params[0]))
	if c == nil {
		return call.GiveJSON(abi.ExecExit{Error: abi.Errorf(abi.CodeInvalid,
			"no command has the handle %d", int32(params[0]))})
	}
	select {
	case <-c.done:
		return call.GiveJSON(c.exit)
	case <-ctx.Done():
		return call.GiveJSON(abi.ExecExit{Error: abi.Errorf(endCode(ctx.Err()), "%v", ctx.Err())})
	}
}

func (b *Broker) close(_ context.Context, call *broker.Call, params []uint64) uint64 {
	if c := b.session(call).command(int32(params[0])); c != nil {
		c.stop(errClosed)
		<-c.done
	}
	return 0
}
