package pdk

import (
	"encoding/json"
	"fmt"

	"github.com/hako-run/hako/pdk/abi"
)

// Result is a tool's result: content blocks for the model and, where the tool has an output schema, structured content.
// Its methods return the Result, so that they can be chained. The zero value is an empty result.
type Result struct {
	// Content holds the blocks in order. If it is empty, the host shows Structured as text.
	Content []Content
	// Structured is marshalled with encoding/json; nil means none.
	Structured any
	// IsError marks the tool's own failure.
	IsError bool

	texts []abi.TextMember
}

// Text returns a Result with one text block.
func Text(text string) *Result { return new(Result).AddText(text) }

// Structured returns a Result with structured content alone.
func Structured(value any) *Result { return &Result{Structured: value} }

// AddText adds a text block.
func (r *Result) AddText(text string) *Result {
	return r.add(Content{Type: abi.Text, Text: text})
}

// AddTextBytes adds a text block whose text crosses to the host as raw bytes: cheaper than AddText for more than some KiB.
// It must be UTF-8. The bytes must not change until the handler has returned.
func (r *Result) AddTextBytes(text []byte) *Result {
	return r.add(Content{Type: abi.Text, Data: text})
}

// AddImage adds an image; mimeType is for example "image/png". The bytes must not change until the handler has returned.
func (r *Result) AddImage(mimeType string, data []byte) *Result {
	return r.add(Content{Type: abi.Image, MIMEType: mimeType, Data: data})
}

// AddAudio adds a sound; mimeType is for example "audio/wav".
func (r *Result) AddAudio(mimeType string, data []byte) *Result {
	return r.add(Content{Type: abi.Audio, MIMEType: mimeType, Data: data})
}

// AddLink adds a link to a resource.
func (r *Result) AddLink(uri, name, mimeType string) *Result {
	return r.add(Content{Type: abi.ResourceLink, URI: uri, Name: name, MIMEType: mimeType})
}

// AddResource adds a whole resource.
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

// WithStructuredText adds a member to the structured content, which must be an object or none, with a text that crosses to the host
// as raw bytes: cheaper than a string in Structured for more than some KiB, and free if the same bytes are a text block too.
// They must be UTF-8, and must not change until the handler has returned.
func (r *Result) WithStructuredText(member string, text []byte) *Result {
	if text == nil {
		text = []byte{}
	}
	r.texts = append(r.texts, abi.TextMember{Name: member, Data: text})
	return r
}

// AsError marks the result as the tool's own failure.
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
