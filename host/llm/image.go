package llm

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// imageTypes are those that models see.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (i *Image) known() bool { return slices.Contains(imageTypes, i.MIMEType) }

// url holds the image itself (RFC 2397).
func (i *Image) url() string {
	return "data:" + i.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// split returns the user's text, with a note of images that are left out, and the images that are sent: those of a known type, if
// the model takes any.
func (m *Message) split(takes bool) (string, []Image) {
	var sent []Image
	for _, image := range m.Images {
		if takes && image.known() {
			sent = append(sent, image)
		}
	}
	return withoutImages(m.Text, len(m.Images)-len(sent)), sent
}

// text is that of the result, with a note of the images that are not of a known type.
func (r *Result) text() string { return withoutImages(r.Text, r.unknown()) }

// marked is text for an API that has no mark for errors.
func (r *Result) marked() string { return withoutImages(r.failed(), r.unknown()) }

// failed is Text with a word in front if the call failed.
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

// withoutImages adds to a text that n images are left out.
func withoutImages(text string, n int) string {
	if n == 0 {
		return text
	}
	return strings.TrimSpace(fmt.Sprintf("%s\n\n[Images that are left out, since the model would not see them: %d]", text, n))
}
