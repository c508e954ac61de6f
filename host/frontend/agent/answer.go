package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/pdk/abi"
)

// Limits on the images of one answer. The API accepts images of up to 5 MB in base64.
const (
	maxImages = 4
	maxImage  = 3_700_000 // bytes
)

// imageTypes are the types that the API accepts.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// answer is the answer to a call. It is stored in the journal as JSON.
type answer struct {
	Text    string  `json:"text"`
	IsError bool    `json:"isError,omitempty"`
	Images  []image `json:"images,omitempty"`
}

type image struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

// failed returns an error answer written by the host.
func failed(format string, args ...any) *answer {
	return &answer{Text: fmt.Sprintf(format, args...), IsError: true}
}

// newAnswer converts a tool's response to an answer with at most limit bytes of text.
func newAnswer(w *wanted, r *abi.Response, limit int64) *answer {
	a := &answer{IsError: r.IsError}
	text, images := llm.Split(r, maxImages, func(c *abi.Content) bool {
		return len(c.Data) <= maxImage && slices.Contains(imageTypes, c.MIMEType)
	})
	for _, i := range images {
		a.Images = append(a.Images, image(i))
	}
	var schema json.RawMessage
	if w.tool != nil {
		schema = w.tool.Spec.InputSchema
	}
	a.Text = results.Fit(text, int(limit), schema, w.Arguments)
	return a
}

// block is a content block of the API: text or an image.
type block struct {
	Type   string       `json:"type"`
	Text   string       `json:"text,omitempty"`
	Source *imageSource `json:"source,omitempty"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// blocks returns the answer's content. The API refuses empty texts and answers without blocks.
func (a *answer) blocks() []block {
	var list []block
	text := a.Text
	if strings.TrimSpace(text) == "" && len(a.Images) == 0 {
		text = "(nothing)"
	}
	if strings.TrimSpace(text) != "" {
		list = append(list, block{Type: "text", Text: text})
	}
	for _, i := range a.Images {
		list = append(list, block{Type: "image", Source: &imageSource{"base64", i.MIMEType, i.Data}})
	}
	return list
}
