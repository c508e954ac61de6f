package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/internal/jsonstring"
	"github.com/hako-run/hako/pdk/abi"
)

// reply is the answer to a tools/call and its only encoder; the SDK's would copy the result three times.
type reply struct {
	id       jsonrpc.ID
	response *abi.Response
	// err, if not nil, is the answer instead of the response.
	err error
	// requests, if not nil, are the questions of a call without a response yet, and state is the requestState that the
	// client sends with the answers (multi round-trip requests).
	requests mcp.InputRequestMap
	state    string
	// server describes the server in each result of 2026-07-28; nil before.
	server json.RawMessage
}

// appendTo appends the answer as one line of JSON.
func (r *reply) appendTo(dst []byte) []byte {
	if r.err == nil {
		whole, err := r.appendResult(transport.AppendResult(slices.Grow(dst, r.room()), r.id))
		if err == nil {
			return append(whole, '}')
		}
		r.err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: internalText}
	}
	// A code and a text always have a form in JSON.
	data, _ := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: r.id, Error: r.err})
	return append(dst, data...)
}

// room estimates the length of the answer in bytes.
func (r *reply) room() int {
	if r.response == nil {
		return 1024
	}
	n := 256 + len(r.server) + len(r.response.StructuredContent) + len(r.response.Meta)
	for i := range r.response.Content {
		block := &r.response.Content[i]
		n += 64 + len(block.Text) + len(block.Text)/16 + len(block.Data)*4/3
	}
	return n
}

// appendResult appends the result alone.
func (r *reply) appendResult(dst []byte) ([]byte, error) {
	dst = r.appendMeta(append(dst, '{'))
	if r.requests != nil {
		return r.appendRequests(dst)
	}
	dst, err := appendBlocks(dst, r.response.Content)
	if err != nil {
		return nil, err
	}
	if structured := r.response.StructuredContent; len(structured) > 0 {
		dst = append(dst, `,"structuredContent":`...)
		if dst, err = appendLine(dst, structured); err != nil {
			return nil, err
		}
	}
	if r.response.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	if r.server != nil {
		dst = append(dst, `,"resultType":"complete"`...)
	}
	return append(dst, '}'), nil
}

// appendRequests appends the questions of the call.
func (r *reply) appendRequests(dst []byte) ([]byte, error) {
	requests, err := json.Marshal(r.requests)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `"content":null,"requestState":`...)
	dst = jsonstring.AppendQuote(dst, r.state)
	dst = append(dst, `,"resultType":"input_required","inputRequests":`...)
	dst = append(dst, requests...)
	return append(dst, '}'), nil
}

// appendMeta appends the member _meta with a comma after it, or nothing.
func (r *reply) appendMeta(dst []byte) []byte {
	begin := len(dst)
	dst = append(dst, `"_meta":{`...)
	empty := len(dst)
	if r.server != nil {
		dst = append(dst, `"`+mcp.MetaKeyServerInfo+`":`...)
		dst = append(append(dst, r.server...), ',')
	}
	if r.response != nil && r.response.Replayed {
		dst = append(dst, `"`+metaReplayed+`":true,`...)
	}
	if r.response != nil && len(r.response.Meta) > 2 { // an object of a server, as encoding/json writes it
		dst = append(append(dst, r.response.Meta[1:len(r.response.Meta)-1]...), ',')
	}
	if len(dst) == empty {
		return dst[:begin]
	}
	dst[len(dst)-1] = '}'
	return append(dst, ',')
}

func appendBlocks(dst []byte, blocks []abi.Content) ([]byte, error) {
	dst = append(dst, `"content":[`...)
	for i := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		if block := &blocks[i]; block.Type == abi.Text && block.Annotations == nil && block.Meta == nil {
			dst = append(dst, `{"type":"text","text":`...)
			dst = append(jsonstring.AppendQuote(dst, block.Text), '}')
			continue
		}
		data, err := json.Marshal(content(&blocks[i]))
		if err != nil {
			return nil, err
		}
		dst = append(dst, data...)
	}
	return append(dst, ']'), nil
}

// appendLine appends JSON that is known to be valid without the line breaks that would end a server-sent event's data.
func appendLine(dst []byte, value json.RawMessage) ([]byte, error) {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(dst, value...), nil
	}
	line := bytes.NewBuffer(dst)
	err := json.Compact(line, value)
	return line.Bytes(), err
}
