package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/pdk/abi"
)

// metaReplayed marks a result that came from recordings, in its _meta.
const metaReplayed = "run.hako/replayed"

func failedTool(text string) *abi.Response {
	return &abi.Response{IsError: true, Content: []abi.Content{{Type: abi.Text, Text: text}}}
}

// withLinks is the first protocol version with links to resources in results.
const withLinks = "2025-06-18"

// fit converts structured content that is not an object to text for versions before 2026-07-28, whose clients refuse
// it. Links become text for versions without links.
func fit(response *abi.Response, version string) {
	if response == nil {
		return
	}
	for i := range response.Content {
		if block := &response.Content[i]; block.Type == abi.ResourceLink && version < withLinks {
			*block = abi.Content{Type: abi.Text, Text: fmt.Sprintf("(link to %s: %s)", block.Name,
				strings.TrimSpace(block.URI+" "+block.Description))}
		}
	}
	structured := response.StructuredContent
	if version >= transport.Sessionless || len(structured) == 0 ||
		bytes.HasPrefix(bytes.TrimLeft(structured, " \t\r\n"), []byte("{")) {
		return
	}
	response.Content = append(response.Content, abi.Content{Type: abi.Text, Text: string(structured)})
	response.StructuredContent = nil
}

// content converts one block. The sandbox has checked its type.
func content(c *abi.Content) mcp.Content {
	hints, meta := contentAnnotations(c.Annotations), metadata(c.Meta)
	switch c.Type {
	case abi.Image:
		return &mcp.ImageContent{Data: c.Data, MIMEType: c.MIMEType, Annotations: hints, Meta: meta}
	case abi.Audio:
		return &mcp.AudioContent{Data: c.Data, MIMEType: c.MIMEType, Annotations: hints, Meta: meta}
	case abi.ResourceLink:
		return &mcp.ResourceLink{
			URI: c.URI, Name: c.Name, Title: c.Title, Description: c.Description, MIMEType: c.MIMEType, Size: c.Size,
			Annotations: hints, Meta: meta,
		}
	case abi.Embedded:
		return &mcp.EmbeddedResource{Resource: resourceContents(c.Resource), Annotations: hints, Meta: meta}
	}
	return &mcp.TextContent{Text: c.Text, Annotations: hints, Meta: meta}
}

func resourceContents(r *abi.ResourceContents) *mcp.ResourceContents {
	return &mcp.ResourceContents{URI: r.URI, MIMEType: r.MIMEType, Text: r.Text, Blob: r.Data, Meta: metadata(r.Meta)}
}

// metadata returns metadata for the SDK, with values that it encodes as they are.
func metadata(raw json.RawMessage) mcp.Meta {
	var members map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &members) != nil {
		return nil
	}
	meta := make(mcp.Meta, len(members))
	for name, value := range members {
		meta[name] = value
	}
	return meta
}

func contentAnnotations(a *abi.Annotations) *mcp.Annotations {
	if a == nil {
		return nil
	}
	converted := &mcp.Annotations{LastModified: a.LastModified}
	for _, role := range a.Audience {
		converted.Audience = append(converted.Audience, mcp.Role(role))
	}
	if a.Priority != nil {
		converted.Priority = *a.Priority
	}
	return converted
}

// maxCompletions is the most values of one completion (MCP, completion).
const maxCompletions = 100

func completion(c *abi.Completion) mcp.CompletionResultDetails {
	if c == nil || c.Values == nil {
		return mcp.CompletionResultDetails{Values: []string{}}
	}
	details := mcp.CompletionResultDetails{Values: c.Values, Total: c.Total, HasMore: c.HasMore}
	if len(c.Values) > maxCompletions {
		details.Values, details.HasMore = c.Values[:maxCompletions], true
		details.Total = max(c.Total, len(c.Values))
	}
	return details
}
