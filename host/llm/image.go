package llm

import (
	"fmt"
	"slices"
	"strings"
)

// imageTypes are those that models see.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func (i *Image) known() bool { return slices.Contains(imageTypes, i.MIMEType) }

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

// withoutImages adds to a result's text that n images are left out.
func withoutImages(text string, n int) string {
	if n == 0 {
		return text
	}
	return strings.TrimSpace(fmt.Sprintf("%s\n\n[Images that are left out, since the model would not see them: %d]", text, n))
}
