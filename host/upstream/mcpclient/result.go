package mcpclient

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

// translator converts results of a server to responses.
type translator struct{ spec *Spec }

func (t translator) tool(r *mcp.CallToolResult) (*abi.Response, error) {
	response := &abi.Response{IsError: r.IsError}
	for i, block := range r.Content {
		c, err := t.content(block)
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		response.Content = append(response.Content, c)
	}
	var err error
	if response.StructuredContent, err = unquoted(r.StructuredContent); err != nil {
		return nil, err
	}
	response.Meta, err = t.spec.metadata(r.Meta)
	return response, err
}

func (t translator) prompt(r *mcp.GetPromptResult) (*abi.Response, error) {
	response := &abi.Response{Description: visible.Clean(r.Description)}
	for i, m := range r.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("messages[%d]: role %s is neither user nor assistant", i, quoted(string(m.Role)))
		}
		c, err := t.content(m.Content)
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		response.Messages = append(response.Messages, abi.PromptMessage{Role: string(m.Role), Content: c})
	}
	return response, nil
}

func (t translator) resource(r *mcp.ReadResourceResult) (*abi.Response, error) {
	response := &abi.Response{}
	for i, c := range r.Contents {
		contents, err := t.contents(c)
		if err != nil {
			return nil, fmt.Errorf("contents[%d]: %w", i, err)
		}
		response.Contents = append(response.Contents, *contents)
	}
	return response, nil
}

func (t translator) completion(r *mcp.CompleteResult) *abi.Response {
	c := r.Completion
	return &abi.Response{Completion: &abi.Completion{Values: append([]string{}, c.Values...), Total: c.Total,
		HasMore: c.HasMore}}
}

// content converts a content block.
func (t translator) content(block mcp.Content) (c abi.Content, err error) {
	var meta mcp.Meta
	switch b := block.(type) {
	case *mcp.TextContent:
		c, meta = abi.Content{Type: abi.Text, Text: b.Text, Annotations: annotations(b.Annotations)}, b.Meta
	case *mcp.ImageContent:
		c = abi.Content{Type: abi.Image, Data: b.Data, MIMEType: b.MIMEType, Annotations: annotations(b.Annotations)}
		meta = b.Meta
	case *mcp.AudioContent:
		c = abi.Content{Type: abi.Audio, Data: b.Data, MIMEType: b.MIMEType, Annotations: annotations(b.Annotations)}
		meta = b.Meta
	case *mcp.ResourceLink:
		c = abi.Content{
			Type: abi.ResourceLink, URI: t.uri(b.URI), Name: b.Name, Title: b.Title, Description: b.Description,
			MIMEType: b.MIMEType,
			Size:     b.Size, Annotations: annotations(b.Annotations),
		}
		if b.URI == "" || b.Name == "" {
			return c, errors.New("a resource_link needs a uri and a name")
		}
		meta = b.Meta
	case *mcp.EmbeddedResource:
		c, meta = abi.Content{Type: abi.Embedded, Annotations: annotations(b.Annotations)}, b.Meta
		if c.Resource, err = t.contents(b.Resource); err != nil {
			return c, err
		}
	default:
		return c, fmt.Errorf("a block of type %T is not one of text, image, audio, resource_link and resource", block)
	}
	if (c.Type == abi.Image || c.Type == abi.Audio) && (c.MIMEType == "" || c.Data == nil) {
		return c, fmt.Errorf("a block of type %s needs data and a mimeType", c.Type)
	}
	c.Meta, err = t.spec.metadata(meta)
	return c, err
}

func (t translator) contents(r *mcp.ResourceContents) (*abi.ResourceContents, error) {
	if r == nil || r.URI == "" {
		return nil, errors.New("a resource needs a uri")
	}
	meta, err := t.spec.metadata(r.Meta)
	return &abi.ResourceContents{URI: t.uri(r.URI), MIMEType: r.MIMEType, Text: r.Text, Data: r.Blob, Meta: meta}, err
}

// uri returns a server's URI as clients see it. URIs that clients fetch themselves (MCP, resources, common URI schemes)
// stay unchanged.
func (t translator) uri(uri string) string {
	for _, own := range []string{"https:", "http:", "data:"} {
		if strings.HasPrefix(uri, own) {
			return uri
		}
	}
	return t.spec.outside(uri)
}

// annotations converts annotations. An invalid priority is dropped.
func annotations(a *mcp.Annotations) *abi.Annotations {
	if a == nil {
		return nil
	}
	hints := &abi.Annotations{LastModified: a.LastModified}
	for _, role := range a.Audience {
		hints.Audience = append(hints.Audience, string(role))
	}
	if a.Priority > 0 && a.Priority <= 1 {
		hints.Priority = &a.Priority
	}
	return hints
}

// blockSize is the size of a content block in JSON besides its texts, in bytes.
const blockSize = 32

// size returns the encoded size of a response in bytes: texts with escape sequences, data in base64, and blockSize for
// each block.
func size(r *abi.Response) int {
	n := len(r.StructuredContent) + len(r.Meta) + textSize(r.Description)
	for i := range r.Content {
		n += contentSize(&r.Content[i])
	}
	for i := range r.Messages {
		n += contentSize(&r.Messages[i].Content)
	}
	for i := range r.Contents {
		n += resourceSize(&r.Contents[i])
	}
	if r.Completion != nil {
		for _, value := range r.Completion.Values {
			n += textSize(value)
		}
	}
	return n
}

func contentSize(c *abi.Content) int {
	n := blockSize + textSize(c.Text) + dataSize(c.Data) + textSize(c.URI) + textSize(c.Name) + textSize(c.Title) +
		textSize(c.Description) + textSize(c.MIMEType) + len(c.Meta)
	if c.Annotations != nil {
		n += blockSize + textSize(c.Annotations.LastModified)
		for _, role := range c.Annotations.Audience {
			n += textSize(role)
		}
	}
	if c.Resource != nil {
		n += resourceSize(c.Resource)
	}
	return n
}

func resourceSize(r *abi.ResourceContents) int {
	return blockSize + textSize(r.URI) + textSize(r.MIMEType) + textSize(r.Text) + dataSize(r.Data) +
		len(r.Meta)
}

func dataSize(data []byte) int { return base64.StdEncoding.EncodedLen(len(data)) }

// textSize returns the length of a string in JSON.
func textSize(text string) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	return n
}
