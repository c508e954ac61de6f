package transport

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/pdk/abi"
)

// Methods that are treated apart.
const (
	methodCallTool = abi.CallTool
	MethodListen   = "subscriptions/listen"
)

type kind int

const (
	requestWithParams kind = 1 + iota
	requestAlone
	notification
)

// kinds are the methods that the SDK takes from clients, by what they need.
var kinds = map[string]kind{
	abi.CallTool: requestWithParams, abi.ReadResource: requestWithParams, abi.GetPrompt: requestWithParams,
	abi.Complete: requestWithParams, "initialize": requestWithParams, "logging/setLevel": requestWithParams,
	"resources/subscribe": requestWithParams, "resources/unsubscribe": requestWithParams,
	MethodListen: requestWithParams,

	"ping": requestAlone, "tools/list": requestAlone, "resources/list": requestAlone,
	"resources/templates/list": requestAlone, "prompts/list": requestAlone, "server/discover": requestAlone,

	MethodCancelled: notification, "notifications/initialized": notification, "notifications/progress": notification,
	"notifications/roots/list_changed": notification,
}

// Known reports whether the method is one of MCP's for servers.
func Known(method string) bool { return kinds[method] != 0 }

// checkMethod returns what is wrong with the method of a message, or nil.
func checkMethod(message jsonrpc.Message) *Refusal {
	request, ok := message.(*jsonrpc.Request)
	if !ok {
		return nil
	}
	switch kind := kinds[request.Method]; {
	case kind == 0 && request.IsCall():
		return &Refusal{request.ID, jsonrpc.CodeMethodNotFound, fmt.Sprintf("method not found: %q", request.Method)}
	case kind == notification && request.IsCall():
		return &Refusal{request.ID, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("%q is a notification: send it without an id", request.Method)}
	case kind != 0 && kind != notification && !request.IsCall():
		return &Refusal{jsonrpc.ID{}, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("%q is a request: send it with an id", request.Method)}
	case kind == requestWithParams && len(request.Params) == 0:
		return &Refusal{request.ID, jsonrpc.CodeInvalidParams, fmt.Sprintf("%q needs params", request.Method)}
	}
	return nil
}
