package mcpserver

import (
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/pdk/abi"
)

// methods are those that the SDK takes from clients, by whether they are requests that need params, requests that do
// not, or notifications.
var methods = map[string]methodKind{
	abi.CallTool: requestWithParams, abi.ReadResource: requestWithParams, abi.GetPrompt: requestWithParams,
	abi.Complete: requestWithParams,
	"initialize": requestWithParams, "logging/setLevel": requestWithParams, "resources/subscribe": requestWithParams,
	"resources/unsubscribe": requestWithParams,
	methodListen:            requestWithParams,
	"ping":                  requestAlone, "tools/list": requestAlone, "resources/list": requestAlone,
	"resources/templates/list": requestAlone,
	"prompts/list":             requestAlone, "server/discover": requestAlone,
	"notifications/cancelled": oneWay, "notifications/initialized": oneWay, "notifications/progress": oneWay,
	"notifications/roots/list_changed": oneWay,
}

type methodKind int

const (
	requestWithParams methodKind = 1 + iota
	requestAlone
	oneWay
)

// checkMethod returns what is wrong with the method of a message, or nil. The SDK answers the same over HTTP with plain
// text, in which clients see a broken connection and not an error of one request.
func checkMethod(message jsonrpc.Message) *messageError {
	request, ok := message.(*jsonrpc.Request)
	if !ok {
		return nil
	}
	switch kind := methods[request.Method]; {
	case kind == 0 && request.IsCall():
		return &messageError{request.ID, jsonrpc.CodeMethodNotFound,
			fmt.Sprintf("method not found: %q", request.Method)}
	case kind == oneWay && request.IsCall():
		return &messageError{request.ID, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("%q is a notification: send it without an id", request.Method)}
	case kind != 0 && kind != oneWay && !request.IsCall():
		return &messageError{jsonrpc.ID{}, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("%q is a request: send it with an id", request.Method)}
	case kind == requestWithParams && len(request.Params) == 0:
		return &messageError{request.ID, jsonrpc.CodeInvalidParams, fmt.Sprintf("%q needs params", request.Method)}
	}
	return nil
}

// isUnknownNotification reports whether message is a notification that means nothing to the server. JSON-RPC has it
// ignored.
func isUnknownNotification(message jsonrpc.Message) bool {
	request, ok := message.(*jsonrpc.Request)
	return ok && !request.IsCall() && methods[request.Method] == 0
}

// refuseMethod answers a message of a session whose method is wrong, or ignores it, and reports whether it did. A
// request that has an ID is answered with status 200, as any other error of a request: clients take another status for
// a failure of the connection.
func (s *Server) refuseMethod(w http.ResponseWriter, size messageSize) bool {
	switch {
	case size.wrong != nil:
		status := http.StatusOK
		if !size.wrong.id.IsValid() {
			status = http.StatusBadRequest
		}
		writeError(w, status, size.wrong.id, size.wrong.code, size.wrong.text)
	case size.ignored:
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}
