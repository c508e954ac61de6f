package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// toolResult is a tool's result as MCP has it (CallToolResult).
type toolResult struct {
	Content           []contentBlock  `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
}

// contentBlock is an abi.Content with its bytes in place; the fields here hide those of the same name there.
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

func newToolResult(r *abi.Response) *toolResult {
	result := &toolResult{Content: []contentBlock{}, StructuredContent: r.StructuredContent, IsError: r.IsError}
	for i := range r.Content {
		block := contentBlock{Content: &r.Content[i], Data: r.Content[i].Data}
		if resource := r.Content[i].Resource; resource != nil {
			block.Resource = &embeddedResource{resource, resource.Data}
		}
		result.Content = append(result.Content, block)
	}
	return result
}

// printResult writes the result to standard output, or to standard error what is the tool's failure and not its answer.
func (a *app) printResult(r *abi.Response, asJSON bool) error {
	out := a.data()
	if r.IsError && !asJSON {
		out = a.stderr
	}
	err := error(nil)
	if asJSON {
		err = a.printJSON(newToolResult(r))
	} else {
		err = writeBlocks(out, r.Content)
	}
	if err == nil && r.IsError {
		return &exitError{code: exitFailed}
	}
	return err
}

// writeBlocks writes texts as they are, as far as data takes them so, and describes what a terminal cannot show.
func writeBlocks(data io.Writer, blocks []abi.Content) error {
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
			block.Resource.URI, block.Resource.MIMEType, size(len(block.Resource.Data)))
	}
	return fmt.Sprintf("[%s, %s, %s: --json prints its bytes]", block.Type, block.MIMEType, size(len(block.Data)))
}

// size is n bytes in words.
func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
