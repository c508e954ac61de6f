package sandbox_test

import (
	"context"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

type brokerModule = broker.Module

var i32 = broker.I32

// deniedHTTP stands for the http broker where a test needs no network.
var deniedHTTP = broker.Module{Name: abi.HTTPModule, Functions: []broker.Function{
	{Name: "request", Params: []broker.Type{i32, i32, i32, i32}, Result: &i32,
		Do: func(_ context.Context, c *broker.Call, _ []uint64) uint64 {
			return c.GiveJSON(abi.HTTPResponse{Error: &abi.Error{Code: abi.CodeNotGranted, Message: "no"}})
		}},
	{Name: "read", Params: []broker.Type{i32, i32, i32}, Result: &i32,
		Do: func(context.Context, *broker.Call, []uint64) uint64 { return 0 }},
	{Name: "close", Params: []broker.Type{i32}, Do: func(context.Context, *broker.Call, []uint64) uint64 { return 0 }},
}}
