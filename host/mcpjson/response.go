package mcpjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

// output is the union of all responses of both families. The request determines which fields are used.
type output struct {
	Content           []contentBlock  `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           bool            `json:"isError"`

	Description string `json:"description"`
	Messages    []struct {
		Role    string       `json:"role"`
		Content contentBlock `json:"content"`
	} `json:"messages"`

	Contents   []resourceContents `json:"contents"`
	Completion abi.Completion     `json:"completion"`
}

// contentBlock is a content block of MCP. The first family also uses text and data for resources.
type contentBlock struct {
	Type        string            `json:"type"`
	Text        *string           `json:"text"`
	Data        []byte            `json:"data"` // base64
	MIMEType    string            `json:"mimeType"`
	Resource    *resourceContents `json:"resource"`
	URI         string            `json:"uri"`
	Name        string            `json:"name"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Size        *int64            `json:"size"`
	Annotations *abi.Annotations  `json:"annotations"`
}

type resourceContents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType"`
	Text     string `json:"text"`
	Blob     []byte `json:"blob"` // base64
}

// DecodeResponse decodes the answer of a guest to a request with the method. The error is a *catalog.GuestError.
func DecodeResponse(plugin, method string, data []byte) (*abi.Response, error) {
	var o output
	err := strictjson.Unmarshal(data, &o)
	var response *abi.Response
	if err == nil {
		response, err = o.response(method)
	}
	if err != nil {
		reason := "returned unexpected JSON: " + err.Error()
		return nil, &catalog.GuestError{Plugin: plugin, Reason: reason, Err: err}
	}
	return response, nil
}

func (o *output) response(method string) (*abi.Response, error) {
	switch method {
	case abi.CallTool:
		return o.tool()
	case abi.GetPrompt:
		return o.prompt()
	case abi.ReadResource:
		r := &abi.Response{}
		for i := range o.Contents {
			contents, err := o.Contents[i].contents()
			if err != nil {
				return nil, fmt.Errorf("contents[%d]: %w", i, err)
			}
			r.Contents = append(r.Contents, *contents)
		}
		return r, nil
	}
	return o.complete(), nil
}

func (o *output) tool() (*abi.Response, error) {
	r := &abi.Response{IsError: o.IsError}
	if text := string(o.StructuredContent); text != "" && text != "null" {
		if text[0] != '{' {
			return nil, errors.New("structuredContent is not an object")
		}
		r.StructuredContent = o.StructuredContent
	}
	for i := range o.Content {
		content, err := o.Content[i].content()
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		r.Content = append(r.Content, content)
	}
	return r, nil
}

func (o *output) prompt() (*abi.Response, error) {
	r := &abi.Response{Description: o.Description}
	for i := range o.Messages {
		m := &o.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("messages[%d]: role %.20q is neither user nor assistant", i, m.Role)
		}
		content, err := m.Content.content()
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		r.Messages = append(r.Messages, abi.PromptMessage{Role: m.Role, Content: content})
	}
	return r, nil
}

// maxCompletions is the maximum of MCP.
const maxCompletions = 100

func (o *output) complete() *abi.Response {
	c := o.Completion
	if len(c.Values) > maxCompletions {
		c.Values, c.HasMore = c.Values[:maxCompletions], true
	}
	if c.Values == nil {
		c.Values = []string{}
	}
	return &abi.Response{Completion: &c}
}

// content converts the block.
func (b *contentBlock) content() (abi.Content, error) {
	c := abi.Content{Type: b.kind(), Annotations: b.Annotations}
	if a := b.Annotations; a != nil && a.Priority != nil && !(*a.Priority >= 0 && *a.Priority <= 1) {
		return c, fmt.Errorf("priority %v is not between 0 and 1", *a.Priority)
	}
	switch c.Type {
	case abi.Text:
		if b.Text == nil {
			return c, errors.New("a block of type text needs a text")
		}
		c.Text = *b.Text
	case abi.Image, abi.Audio:
		if b.Data == nil || b.MIMEType == "" {
			return c, fmt.Errorf("a block of type %s needs data and a mimeType", c.Type)
		}
		c.Data, c.MIMEType = b.Data, b.MIMEType
	case abi.ResourceLink:
		if b.URI == "" || b.Name == "" {
			return c, errors.New("a resource_link needs a uri and a name")
		}
		c.URI, c.Name, c.Title, c.Description = b.URI, b.Name, b.Title, b.Description
		c.MIMEType, c.Size = b.MIMEType, b.Size
	case abi.Embedded:
		err := b.embed(&c)
		return c, err
	case "":
		return c, errors.New("it has no type, and its other fields do not determine one")
	default:
		return c, fmt.Errorf("type %.20q is not one of text, image, audio, resource_link, resource", c.Type)
	}
	return c, nil
}

// kind returns the type of a block. Guests made from hyper-mcp's Go template omit it; then it is the only type that the
// other fields allow, or "" if they allow none or several.
func (b *contentBlock) kind() string {
	text, data, resource, link := b.Text != nil, b.Data != nil, b.Resource != nil, b.URI != ""
	switch {
	case b.Type != "":
		return b.Type
	case text && !data && !resource && !link:
		return abi.Text
	case data && !text && !resource && !link && strings.HasPrefix(b.MIMEType, "image/"):
		return abi.Image
	case data && !text && !resource && !link && strings.HasPrefix(b.MIMEType, "audio/"):
		return abi.Audio
	case resource && !text && !data && !link:
		return abi.Embedded
	case link && !text && !data && !resource:
		return abi.ResourceLink
	}
	return ""
}

// embed sets the resource. In the first family it has no URI of its own, and its text or data are fields of the block.
func (b *contentBlock) embed(c *abi.Content) error {
	resource := b.Resource
	if resource == nil && b.Text != nil {
		resource = &resourceContents{URI: noURI, MIMEType: b.MIMEType, Text: *b.Text}
	}
	if resource == nil && b.Data != nil {
		resource = &resourceContents{URI: noURI, MIMEType: b.MIMEType, Blob: b.Data}
	}
	if resource == nil {
		return errors.New("a block of type resource needs a resource")
	}
	var err error
	c.Resource, err = resource.contents()
	return err
}

// noURI replaces the URI of a resource without one.
const noURI = "extism:content"

func (r *resourceContents) contents() (*abi.ResourceContents, error) {
	if r.URI == "" {
		return nil, errors.New("a resource needs a uri")
	}
	return &abi.ResourceContents{URI: r.URI, MIMEType: r.MIMEType, Text: r.Text, Data: r.Blob}, nil
}
