package llm

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// imageTypes are the types that all providers accept.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (i *Image) known() bool { return slices.Contains(imageTypes, i.MIMEType) }

// url returns the image as a data URL (RFC 2397).
func (i *Image) url() string {
	return "data:" + i.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// split returns the text of a user message and the images to send: those of a known type, if the model accepts images.
// The text notes how many are omitted.
func (m *Message) split(accepts bool) (string, []Image) {
	var sent []Image
	for _, image := range m.Images {
		if accepts && image.known() {
			sent = append(sent, image)
		}
	}
	return withoutImages(m.Text, len(m.Images)-len(sent)), sent
}

// text returns the result's text with a note of images of unknown types.
func (r *Result) text() string { return withoutImages(r.Text, r.unknown()) }

// marked is text for APIs without an error flag.
func (r *Result) marked() string { return withoutImages(r.failed(), r.unknown()) }

// failed returns Text, prefixed with "Error: " if the call failed.
func (r *Result) failed() string {
	if r.IsError {
		return "Error: " + r.Text
	}
	return r.Text
}

func (r *Result) unknown() int {
	n := 0
	for _, image := range r.Images {
		if !image.known() {
			n++
		}
	}
	return n
}

// withoutImages appends a note that n images are omitted.
func withoutImages(text string, n int) string {
	if n == 0 {
		return text
	}
	return strings.TrimSpace(fmt.Sprintf("%s\n\n[Images left out because the model would not see them: %d]", text, n))
}
