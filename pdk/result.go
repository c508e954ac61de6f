package pdk

import (
	"encoding/json"
	"fmt"

	"github.com/hako-run/hako/pdk/abi"
)

// Result is the result of a tool: content blocks for the model and, if the tool has an output schema, structured
// content. Its methods return the Result for chaining. The zero value is an empty result.
type Result struct {
	// Content has the blocks in order. If it is empty, the host shows Structured as text.
	Content []Content
	// Structured is encoded with encoding/json; nil means none.
	Structured any
	// IsError marks a tool error.
	IsError bool

	texts []abi.TextMember
}

// Text returns a Result with one text block.
func Text(text string) *Result { return new(Result).AddText(text) }

// Structured returns a Result with structured content only.
func Structured(value any) *Result { return &Result{Structured: value} }

// AddText adds a text block.
func (r *Result) AddText(text string) *Result {
	return r.add(Content{Type: abi.Text, Text: text})
}

// AddTextBytes adds a text block without converting the text to a string. The text must be UTF-8 and must not change
// until the handler has returned.
func (r *Result) AddTextBytes(text []byte) *Result {
	return r.add(Content{Type: abi.Text, Data: text})
}

// AddImage adds an image; mimeType is for example "image/png". data must not change until the handler has returned.
func (r *Result) AddImage(mimeType string, data []byte) *Result {
	return r.add(Content{Type: abi.Image, MIMEType: mimeType, Data: data})
}

// AddAudio adds audio; mimeType is for example "audio/wav". data must not change until the handler has returned.
func (r *Result) AddAudio(mimeType string, data []byte) *Result {
	return r.add(Content{Type: abi.Audio, MIMEType: mimeType, Data: data})
}

// AddLink adds a link to a resource.
func (r *Result) AddLink(uri, name, mimeType string) *Result {
	return r.add(Content{Type: abi.ResourceLink, URI: uri, Name: name, MIMEType: mimeType})
}

// AddResource adds an embedded resource.
func (r *Result) AddResource(contents ResourceContents) *Result {
	return r.add(Content{Type: abi.Embedded, Resource: &contents})
}

func (r *Result) add(block Content) *Result {
	r.Content = append(r.Content, block)
	return r
}

// WithStructured sets the structured content.
func (r *Result) WithStructured(value any) *Result {
	r.Structured = value
	return r
}

// WithStructuredText adds a member to the structured content, which must be an object or nil. Its text is passed to the
// host as raw bytes, which is cheaper than a string in Structured for more than some KiB, and free if the same slice is
// a text block too. The text must be UTF-8 and must not change until the handler has returned.
func (r *Result) WithStructuredText(member string, text []byte) *Result {
	if text == nil {
		text = []byte{}
	}
	r.texts = append(r.texts, abi.TextMember{Name: member, Data: text})
	return r
}

// AsError marks the result as a tool error.
func (r *Result) AsError() *Result {
	r.IsError = true
	return r
}

func (r *Result) response() (*abi.Response, error) {
	if r == nil {
		return &abi.Response{}, nil
	}
	response := &abi.Response{Content: r.Content, IsError: r.IsError, StructuredText: r.texts}
	if r.Structured != nil {
		structured, err := json.Marshal(r.Structured)
		if err != nil {
			return nil, fmt.Errorf("encode the structured content: %w", err)
		}
		response.StructuredContent = structured
	} else if len(r.texts) > 0 {
		response.StructuredContent = json.RawMessage("{}")
	}
	return response, nil
}

func resultOf(out any) *Result {
	switch out := out.(type) {
	case *Result:
		return out
	case string:
		return Text(out)
	}
	return Structured(out)
}
