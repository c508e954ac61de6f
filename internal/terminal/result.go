package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// ToolResult is a tool's result in the form of MCP (CallToolResult).
type ToolResult struct {
	Content           []contentBlock  `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
}

// contentBlock is an abi.Content with its bytes. Its fields hide those of the same name in abi.Content.
type contentBlock struct {
	*abi.Content
	Data     []byte            `json:"data,omitempty"`
	Blob     *int              `json:"blob,omitempty"`
	Resource *embeddedResource `json:"resource,omitempty"`
}

type embeddedResource struct {
	*abi.ResourceContents
	Blob []byte `json:"blob,omitempty"`
}

// NewToolResult converts a response.
func NewToolResult(r *abi.Response) *ToolResult {
	result := &ToolResult{Content: []contentBlock{}, StructuredContent: r.StructuredContent, IsError: r.IsError}
	for i := range r.Content {
		block := contentBlock{Content: &r.Content[i], Data: r.Content[i].Data}
		if resource := r.Content[i].Resource; resource != nil {
			block.Resource = &embeddedResource{resource, resource.Data}
		}
		result.Content = append(result.Content, block)
	}
	return result
}

// WriteContent writes texts as they are and describes other content.
func WriteContent(data io.Writer, blocks []abi.Content) error {
	for _, block := range blocks {
		text := describe(block)
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(data, text); err != nil {
			return err
		}
	}
	return nil
}

func describe(block abi.Content) string {
	switch block.Type {
	case abi.Text:
		return block.Text
	case abi.ResourceLink:
		return fmt.Sprintf("[link to %s: %s]", block.Name, block.URI)
	case abi.Embedded:
		if block.Resource.Data == nil {
			return block.Resource.Text
		}
		return fmt.Sprintf("[resource %s, %s, %s: --json prints its bytes]",
			block.Resource.URI, block.Resource.MIMEType, Size(len(block.Resource.Data)))
	}
	return fmt.Sprintf("[%s, %s, %s: --json prints its bytes]", block.Type, block.MIMEType, Size(len(block.Data)))
}

// Size returns a number of bytes for people.
func Size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
