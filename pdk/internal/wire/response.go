package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/hako-run/hako/pdk/abi"
)

// Response encodes a response whose blobs have been attached.
func Response(response *abi.Response) ([]byte, error) {
	if out, ok := plainResponse(response); ok {
		return out, nil
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(response)
	return buffer.Bytes(), err
}

// plainResponse encodes a tool result of plain text blocks and structured content. It returns false for any other.
func plainResponse(response *abi.Response) ([]byte, bool) {
	size := 64 + len(response.StructuredContent)
	for i := range response.Content {
		block := &response.Content[i]
		if !plainBlock(block) {
			return nil, false
		}
		size += 48 + len(block.Text) + len(block.Text)/8
	}
	if response.StructuredText != nil || response.Contents != nil || response.Messages != nil ||
		response.Completion != nil ||
		response.Handlers != nil || response.Error != nil || response.Description != "" {
		return nil, false
	}
	out := append(make([]byte, 0, size), `{"content":[`...)
	for i := range response.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendBlock(out, &response.Content[i])
	}
	out = append(out, ']')
	if len(response.StructuredContent) > 0 {
		out = append(append(out, `,"structuredContent":`...), response.StructuredContent...)
	}
	if response.IsError {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}'), true
}

// plainBlock reports whether a block has only text.
func plainBlock(block *abi.Content) bool {
	return block.Type == abi.Text && utf8.ValidString(block.Text) && block.Annotations == nil &&
		block.Resource == nil && block.Size == nil &&
		block.MIMEType+block.URI+block.Name+block.Title+block.Description == ""
}

func appendBlock(out []byte, block *abi.Content) []byte {
	out = append(out, `{"type":"text"`...)
	if block.Text != "" {
		out = abi.AppendString(append(out, `,"text":`...), block.Text)
	}
	if block.Blob != nil {
		out = strconv.AppendInt(append(out, `,"blob":`...), int64(*block.Blob), 10)
	}
	return append(out, '}')
}
