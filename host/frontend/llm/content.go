package llm

import (
	"fmt"
	"strings"

	"github.com/hako-run/hako/pdk/abi"
)

// Split splits a tool's response into images and a text. images are the first ones for which accept returns true, at
// most most of them. text describes everything else in words.
func Split(r *abi.Response, most int, accept func(*abi.Content) bool) (text string, images []Image) {
	var parts []string
	for i := range r.Content {
		block := &r.Content[i]
		if block.Type == abi.Image && len(images) < most && accept(block) {
			images = append(images, Image{MIMEType: block.MIMEType, Data: block.Data})
			continue
		}
		parts = append(parts, InWords(block))
	}
	if len(r.Content) == 0 && len(r.StructuredContent) > 0 {
		parts = append(parts, string(r.StructuredContent))
	}
	return strings.Join(parts, "\n"), images
}

// InWords returns a content block of a tool result as text, for models that cannot receive the block itself.
func InWords(block *abi.Content) string {
	switch block.Type {
	case abi.Text:
		return block.Text
	case abi.ResourceLink:
		return fmt.Sprintf("(link to %s: %s)", block.Name, strings.TrimSpace(block.URI+" "+block.Description))
	case abi.Embedded:
		return contentsInWords(block.Resource)
	}
	return fmt.Sprintf("(%s, %s, %d bytes, which are not shown)", block.Type, block.MIMEType, len(block.Data))
}

func contentsInWords(r *abi.ResourceContents) string {
	switch {
	case r == nil:
		return "(an empty resource)"
	case r.Data == nil:
		return fmt.Sprintf("(resource %s)\n%s", r.URI, r.Text)
	}
	return fmt.Sprintf("(resource %s, %s, %d bytes, which are not shown)", r.URI, r.MIMEType, len(r.Data))
}
