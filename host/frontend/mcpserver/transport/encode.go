package transport

import (
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/internal/jsonstring"
)

// AppendResult appends the beginning of a JSON-RPC response. The result follows, as one line of JSON, and "}".
func AppendResult(dst []byte, id jsonrpc.ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	switch id := id.Raw().(type) {
	case int64:
		dst = strconv.AppendInt(dst, id, 10)
	case string:
		dst = jsonstring.AppendQuote(dst, id)
	}
	return append(dst, `,"result":`...)
}

// encode returns a function that appends a response of the SDK. A result is JSON of one line already; the SDK would
// validate and copy it once more, which is half of what a long list of tools costs.
func encode(r *jsonrpc.Response) (func(dst []byte) []byte, error) {
	if r.Error == nil && len(r.Result) > 0 && r.ID.IsValid() {
		return func(dst []byte) []byte {
			dst = slices.Grow(dst, len(r.Result)+64)
			return append(append(AppendResult(dst, r.ID), r.Result...), '}')
		}, nil
	}
	data, err := jsonrpc.EncodeMessage(r)
	return func(dst []byte) []byte { return append(dst, data...) }, err
}
