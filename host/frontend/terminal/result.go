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
		result.Content = append(result.Content, newBlock(&r.Content[i]))
	}
	return result
}

func newBlock(content *abi.Content) contentBlock {
	block := contentBlock{Content: content, Data: content.Data}
	if resource := content.Resource; resource != nil {
		block.Resource = &embeddedResource{resource, resource.Data}
	}
	return block
}

// ResourceResult is the contents of a resource in the form of MCP (ReadResourceResult).
type ResourceResult struct {
	Contents []embeddedResource `json:"contents"`
}

// NewResourceResult converts a response.
func NewResourceResult(r *abi.Response) *ResourceResult {
	result := &ResourceResult{Contents: []embeddedResource{}}
	for i := range r.Contents {
		result.Contents = append(result.Contents, embeddedResource{&r.Contents[i], r.Contents[i].Data})
	}
	return result
}

// WriteResource writes texts and other bytes as they are; with described, other bytes are described.
func WriteResource(data io.Writer, contents []abi.ResourceContents, described bool) error {
	for i := range contents {
		var err error
		if bytes := contents[i].Data; bytes != nil && !described {
			_, err = data.Write(bytes)
		} else {
			err = WriteContent(data, []abi.Content{{Type: abi.Embedded, Resource: &contents[i]}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PromptResult is a prompt in the form of MCP (GetPromptResult).
type PromptResult struct {
	Description string          `json:"description,omitempty"`
	Messages    []promptMessage `json:"messages"`
}

type promptMessage struct {
	Role    string       `json:"role"`
	Content contentBlock `json:"content"`
}

// NewPromptResult converts a response.
func NewPromptResult(r *abi.Response) *PromptResult {
	result := &PromptResult{Description: r.Description, Messages: []promptMessage{}}
	for i := range r.Messages {
		result.Messages = append(result.Messages, promptMessage{r.Messages[i].Role, newBlock(&r.Messages[i].Content)})
	}
	return result
}

// WritePrompt writes each message after its role.
func WritePrompt(data io.Writer, messages []abi.PromptMessage) error {
	for _, message := range messages {
		if _, err := fmt.Fprintf(data, "%s: ", message.Role); err != nil {
			return err
		}
		if err := WriteContent(data, []abi.Content{message.Content}); err != nil {
			return err
		}
	}
	return nil
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
