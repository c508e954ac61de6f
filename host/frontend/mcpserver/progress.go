package mcpserver

import (
	"context"
	"encoding/json"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/pdk/abi"
)

// progress returns a function that reports a call's progress to the client, or nil if the client did not request it.
func progress(ctx context.Context, req *mcp.CallToolRequest) func(abi.Progress) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return increasing(func(p abi.Progress) {
		// A client that has left misses nothing.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: p.Progress, Total: p.Total, Message: p.Message,
		})
	})
}

// increasing returns report with values that increase, as they must (MCP, progress): guests do not know what was
// reported before they ran. JSON has no infinite numbers, so those are left out.
func increasing(report func(abi.Progress)) func(abi.Progress) {
	last := math.Inf(-1)
	return func(p abi.Progress) {
		if math.IsNaN(p.Progress) || math.IsInf(p.Progress, 0) {
			return
		}
		p.Progress = max(p.Progress, math.Nextafter(last, math.Inf(1)))
		last = p.Progress
		report(p)
	}
}

// progressOf returns a function that reports a call's progress on its stream.
func progressOf(token json.RawMessage, stream *transport.Stream) func(abi.Progress) {
	return increasing(func(p abi.Progress) {
		params, err := json.Marshal(&mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: p.Progress, Total: p.Total, Message: p.Message,
		})
		if err != nil {
			return
		}
		data, err := jsonrpc.EncodeMessage(&jsonrpc.Request{Method: "notifications/progress", Params: params})
		if err == nil {
			_ = stream.Send(data) // a client that has left misses nothing
		}
	})
}
