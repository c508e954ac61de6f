package sqlbroker

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/pdk/abi"
)

// maxRequest limits a statement's head and blobs, in bytes.
const maxRequest = 8 << 20

// Module returns the import module "hako:sql/1", which docs/abi.md describes.
func (b *Broker) Module() broker.Module {
	i32 := broker.I32
	statement := []broker.Type{i32, i32, i32, i32}
	return broker.Module{Name: abi.SQLModule, Functions: []broker.Function{
		{Name: "query", Params: statement, Result: &i32, Do: b.query},
		{Name: "exec", Params: statement, Result: &i32, Do: b.exec},
		{Name: "blobs", Result: &i32, Do: b.blobs},
		{Name: "begin", Params: []broker.Type{i32}, Result: &i32, Do: b.begin},
		{Name: "commit", Result: &i32, Do: b.commit},
		{Name: "rollback", Result: &i32, Do: b.rollback},
	}}
}

func (b *Broker) query(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	return b.statement(ctx, call, "query", params, (*database.Session).Query)
}

func (b *Broker) exec(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	return b.statement(ctx, call, "exec", params, (*database.Session).Exec)
}

type runFunc func(*database.Session, context.Context, *abi.SQLStatement) *abi.SQLResult

// statement runs a guest's statement and returns the result to the guest.
func (b *Broker) statement(ctx context.Context, call *broker.Call, function string,
	params []uint64, run runFunc) uint64 {
	s := b.session(call)
	s.blobs = nil
	result := s.do(ctx, function, params[1]+params[3], func() *abi.SQLResult {
		statement, failure := fromGuest(call, function, params)
		if failure != nil {
			return &abi.SQLResult{Error: failure}
		}
		return s.run(ctx, statement, run)
	})
	head, blobs, err := result.Encode()
	if err != nil {
		head, _, _ = (&abi.SQLResult{Error: invalid(err)}).Encode()
	}
	s.blobs = blobs
	return call.Give(head)
}

// fromGuest copies a statement out of the guest's memory.
func fromGuest(call *broker.Call, function string, params []uint64) (*abi.SQLStatement, *abi.Error) {
	if params[1]+params[3] > maxRequest {
		return nil, errTooLarge
	}
	head, blobs := call.Bytes(function, params[0], params[1]), call.Bytes(function, params[2], params[3])
	statement, err := abi.DecodeSQLStatement(head, blobs)
	if err != nil {
		return nil, abi.Errorf(abi.CodeInvalid, "the statement is not JSON as docs/abi.md describes it: %v", err)
	}
	return statement, nil
}

var errTooLarge = abi.Errorf(abi.CodeLimit, "a statement with its parameters may have at most 8 MiB")

// invalid returns the *abi.Error in err, or one for a value that cannot be passed.
func invalid(err error) *abi.Error {
	var own *abi.Error
	if errors.As(err, &own) {
		return own
	}
	return abi.Errorf(abi.CodeInvalid, "%v", err)
}

func (b *Broker) blobs(_ context.Context, call *broker.Call, _ []uint64) uint64 {
	s := b.session(call)
	blobs := s.blobs
	s.blobs = nil
	return call.Give(blobs)
}

func (b *Broker) begin(ctx context.Context, call *broker.Call, params []uint64) uint64 {
	return giveResult(call, b.Begin(ctx, call, params[0] != 0))
}

func (b *Broker) commit(ctx context.Context, call *broker.Call, _ []uint64) uint64 {
	return giveResult(call, b.Commit(ctx, call))
}

func (b *Broker) rollback(ctx context.Context, call *broker.Call, _ []uint64) uint64 {
	return giveResult(call, b.Rollback(ctx, call))
}

// giveResult returns 0, or the length of the error for the guest.
func giveResult(call *broker.Call, err *abi.Error) uint64 {
	if err == nil {
		return 0
	}
	head, _, _ := (&abi.SQLResult{Error: err}).Encode() // encoding an error cannot fail
	return call.Give(head)
}
