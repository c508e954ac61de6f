package mcpserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/pdk/abi"
)

// The methods of MCP, and what answers them:
//
//	tools/call                             answerCall over HTTP (directcall.go), else callTool
//	resources/read                         readResource
//	prompts/get                            getPrompt
//	completion/complete                    complete
//	tools/list and the other lists         listTools, listSelected (lists.go), or the SDK
//	resources/subscribe, unsubscribe,
//	subscriptions/listen                   subscriptions (subscription.go)
//	initialize, server/discover            the SDK, completed by introduce (introduce.go)
//	ping, logging/setLevel, notifications  the SDK

// dispatch also passes requests for names that the SDK does not list to the pipeline, which records them and has better
// errors.
func (s *Server) dispatch(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result,
	error) {
	switch req := req.(type) {
	case *mcp.ListToolsRequest, *mcp.ListResourcesRequest, *mcp.ListResourceTemplatesRequest, *mcp.ListPromptsRequest:
		if view := s.viewFor(req); view.Selected {
			return s.listSelected(ctx, req, view)
		}
		if tools, ok := req.(*mcp.ListToolsRequest); ok {
			return s.listTools(ctx, method, tools, next)
		}
	case *mcp.CallToolRequest:
		if !s.extended[req.Params.Name] {
			return orError(s.callTool(ctx, req))
		}
	case *mcp.GetPromptRequest:
		if _, ok := s.catalog.View().Prompt(req.Params.Name); !ok && !s.extended[req.Params.Name] {
			return orError(s.getPrompt(ctx, req))
		}
	case *mcp.ReadResourceRequest:
		if !hasResource(s.catalog.View(), req.Params.URI) && !s.extended[req.Params.URI] {
			return orError(s.readResource(ctx, req))
		}
	}
	return next(ctx, method, req)
}

// toolResult is the result of a tools/call for the SDK. The encoder of this package encodes it.
type toolResult struct {
	mcp.ResultBase
	reply reply
}

// MarshalJSON implements json.Marshaler.
func (r *toolResult) MarshalJSON() ([]byte, error) {
	data, err := r.reply.appendResult(nil)
	if err != nil { // the SDK would not answer at all
		failed := reply{response: failedTool(internalText), server: r.reply.server}
		return failed.appendResult(nil)
	}
	return data, nil
}

// callTool answers a tools/call that the SDK has decoded.
func (s *Server) callTool(ctx context.Context, req *mcp.CallToolRequest) (*toolResult, error) {
	call := s.newCall(req, req.Params.Meta, abi.Request{
		Method: abi.CallTool, Name: req.Params.Name, Arguments: req.Params.Arguments,
	})
	call.Progress = progress(ctx, req)
	result := new(toolResult)
	var err error
	result.reply.response, result.reply.state, result.reply.requests, err = s.answer(ctx,
		requestOf(req, round{req.Params.RequestState, req.Params.InputResponses}), call,
		func(ctx context.Context, call *pipeline.Call) (*abi.Response, error) {
			response, _, err := s.useTool(ctx, call)
			return response, err
		})
	if err != nil {
		return nil, err
	}
	if version := req.ProtocolVersion(); version >= transport.Sessionless {
		result.reply.server = s.info
	} else {
		fit(result.reply.response, version)
	}
	return result, nil
}

// useTool passes a tools/call to the pipeline. Its errors are for the client. missing are the scopes that the caller's
// token lacks, if the call was refused for that.
func (s *Server) useTool(ctx context.Context, call *pipeline.Call) (response *abi.Response,
	missing []string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.logPanic(abi.CallTool, cause)
			response, missing, err = failedTool(internalText), nil, nil
		}
	}()
	call.MaxResult = s.options.MaxResult
	answer, err := s.pipeline.Call(ctx, call)
	if denied, ok := errors.AsType[*pipeline.NotAllowedError](err); ok && denied.Rule != "" {
		// Nothing is wrong with the request, and the model should know.
		return failedTool(denied.Error()), denied.MissingScopes, nil
	}
	if err != nil {
		return nil, nil, s.protocolError(call, err)
	}
	return answer.Response, nil, nil
}

func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	call := s.newCall(req, req.Params.Meta, abi.Request{Method: abi.ReadResource, URI: req.Params.URI})
	response, state, requests, err := s.answer(ctx,
		requestOf(req, round{req.Params.RequestState, req.Params.InputResponses}), call, s.call)
	if requests != nil {
		return &mcp.ReadResourceResult{RequestState: state, InputRequests: requests}, nil
	}
	if err != nil {
		return nil, err
	}
	result := &mcp.ReadResourceResult{Contents: make([]*mcp.ResourceContents, 0, len(response.Contents))}
	for i := range response.Contents {
		result.Contents = append(result.Contents, resourceContents(&response.Contents[i]))
	}
	return result, nil
}

func (s *Server) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	request := abi.Request{Method: abi.GetPrompt, Name: req.Params.Name}
	if len(req.Params.Arguments) > 0 {
		var err error
		if request.Arguments, err = json.Marshal(req.Params.Arguments); err != nil {
			return nil, err
		}
	}
	call := s.newCall(req, req.Params.Meta, request)
	response, state, requests, err := s.answer(ctx,
		requestOf(req, round{req.Params.RequestState, req.Params.InputResponses}), call, s.call)
	if requests != nil {
		return &mcp.GetPromptResult{RequestState: state, InputRequests: requests}, nil
	}
	if err != nil {
		return nil, err
	}
	result := &mcp.GetPromptResult{
		Description: response.Description, Messages: make([]*mcp.PromptMessage, 0, len(response.Messages)),
	}
	for i := range response.Messages {
		message := &response.Messages[i]
		result.Messages = append(result.Messages, &mcp.PromptMessage{
			Role: mcp.Role(message.Role), Content: content(&message.Content),
		})
	}
	return result, nil
}

func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	argument := &abi.Argument{Name: req.Params.Argument.Name, Value: req.Params.Argument.Value}
	if req.Params.Context != nil {
		argument.Resolved = req.Params.Context.Arguments
	}
	ctx, release := s.bound(ctx, exchangeOf(req.Extra))
	defer release()
	response, err := s.call(ctx, s.newCall(req, req.Params.Meta, abi.Request{
		Method:   abi.Complete,
		Ref:      &abi.Ref{Type: req.Params.Ref.Type, Name: req.Params.Ref.Name, URI: req.Params.Ref.URI},
		Argument: argument,
	}))
	if err != nil {
		return nil, err
	}
	return &mcp.CompleteResult{Completion: completion(response.Completion)}, nil
}

// call passes a request without tool errors, such as prompts/get, to the pipeline.
func (s *Server) call(ctx context.Context, call *pipeline.Call) (*abi.Response, error) {
	answer, err := s.pipeline.Call(ctx, call)
	if err != nil {
		return nil, s.protocolError(call, err)
	}
	return answer.Response, nil
}

// callListedTool is the handler of every tool at the SDK. dispatch does not let a call get there.
func (s *Server) callListedTool(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: internalText}
}

func hasResource(view *catalog.View, uri string) bool {
	if _, ok := view.Resource(uri); ok {
		return true
	}
	_, _, ok := view.Template(uri)
	return ok
}

// orError keeps a nil result a nil interface.
func orError[R mcp.Result](result R, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}
