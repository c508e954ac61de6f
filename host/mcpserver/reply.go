package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/pdk/abi"
)

// reply is the answer to a tools/call. It is written as the SDK would write it, without its three copies of the result.
type reply struct {
	id       jsonrpc.ID
	response *abi.Response
	// err, if not nil, is the answer instead of the response.
	err error
	// server is what 2026-07-28 wants to hear of the server in each result, nil before.
	server json.RawMessage
}

// status is the HTTP status of the answer from 2026-07-28 on, which has a request that breaks a rule refused
// (transports, errors).
func (r *reply) status() int {
	if wire, ok := errors.AsType[*jsonrpc.Error](r.err); ok && wire.Code == jsonrpc.CodeInvalidParams {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// appendEvent appends the answer as a server-sent event.
func (r *reply) appendEvent(dst []byte) []byte {
	dst = append(dst, "event: message\ndata: "...)
	dst = r.appendTo(dst)
	return append(dst, "\n\n"...)
}

// appendTo appends the answer as one line of JSON.
func (r *reply) appendTo(dst []byte) []byte {
	if r.err == nil {
		whole, err := r.appendResponse(slices.Grow(dst, r.room()))
		if err == nil {
			return whole
		}
		r.err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: internalText}
	}
	data, _ := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: r.id, Error: r.err}) // a code and a text always have a form in JSON
	return append(dst, data...)
}

// room is about how long the answer will be, in bytes.
func (r *reply) room() int {
	n := 256 + len(r.server) + len(r.response.StructuredContent)
	for i := range r.response.Content {
		block := &r.response.Content[i]
		n += 64 + len(block.Text) + len(block.Text)/16 + len(block.Data)*4/3
	}
	return n
}

func (r *reply) appendResponse(dst []byte) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	switch id := r.id.Raw().(type) {
	case int64:
		dst = strconv.AppendInt(dst, id, 10)
	case string:
		dst = appendText(dst, id)
	}
	dst = append(dst, `,"result":{`...)
	dst = r.appendMeta(dst)
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
	return append(dst, `}}`...), nil
}

// appendMeta appends the member _meta with a comma after it, or nothing.
func (r *reply) appendMeta(dst []byte) []byte {
	if r.server == nil && !r.response.Replayed {
		return dst
	}
	dst = append(dst, `"_meta":{`...)
	if r.server != nil {
		dst = append(dst, `"`+mcp.MetaKeyServerInfo+`":`...)
		dst = append(dst, r.server...)
	}
	if r.response.Replayed {
		if r.server != nil {
			dst = append(dst, ',')
		}
		dst = append(dst, `"`+metaReplayed+`":true`...)
	}
	return append(dst, `},`...)
}

func appendBlocks(dst []byte, blocks []abi.Content) ([]byte, error) {
	dst = append(dst, `"content":[`...)
	for i := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		if block := &blocks[i]; block.Type == abi.Text && block.Annotations == nil {
			dst = append(dst, `{"type":"text","text":`...)
			dst = append(appendText(dst, block.Text), '}')
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

func appendText(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text) // an error says that what was not UTF-8 has been replaced
	return dst
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
