package results

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hako-run/hako/pdk/abi"
)

// Scheme is the scheme of the URIs of kept results.
const Scheme = "hako-result"

// maxStart bounds the beginning that replaces a kept result, in bytes. It is at most a quarter of the caller's limit.
const maxStart = 16 << 10

// size returns the size of what a model reads of a response, in bytes: its texts, or the structured content, which
// repeats them.
func size(r *abi.Response) int {
	n := 0
	for i := range r.Content {
		if text := textOf(&r.Content[i]); text != nil {
			n += len(*text)
		}
	}
	return max(n, len(r.StructuredContent))
}

// textOf returns the text of a content block, or nil for a block that is none.
func textOf(c *abi.Content) *string {
	switch {
	case c.Type == abi.Text:
		return &c.Text
	case c.Type == abi.Embedded && c.Resource != nil && c.Resource.Data == nil:
		return &c.Resource.Text
	}
	return nil
}

// Reader is the caller for whom a result is kept, and how that caller can read it.
type Reader struct {
	// Owner is the caller; see catalog.Invocation.
	Owner string
	// Tool is the name under which the caller is offered read_result. Empty: it is not, and the caller has to read the
	// resource.
	Tool string
	// Program is the tool that runs programs for the caller, which can call Tool too. Empty means that there is none.
	Program string
}

// Shorten keeps the texts and the structured content of a tool's response for the reader if they have more than limit
// bytes, and replaces them by their beginning and a link for each. Structured content is removed, because a part of it
// could be taken for the whole. Images and other data stay. It reports whether the response had structured content.
func (k *Keeper) Shorten(
	ctx context.Context, response *abi.Response, tool string, reader Reader, limit int,
) (shortened, structured bool) {
	whole := size(response)
	if whole <= limit {
		return false, false
	}
	structured = len(response.StructuredContent) > 0
	documents, blocks := split(response, tool)
	start := min(limit/4, maxStart) / len(documents)
	var shown []abi.Content
	for i := range documents {
		shown = append(shown, k.shorten(ctx, &documents[i], reader, start)...)
	}
	response.Content, response.StructuredContent = append(shown, blocks...), nil
	return true, structured
}

// split returns the documents of a response that is too large, and its other content blocks.
func split(response *abi.Response, tool string) (documents []document, blocks []abi.Content) {
	var texts []string
	mimeType := "text/plain"
	for i := range response.Content {
		text := textOf(&response.Content[i])
		if text == nil {
			blocks = append(blocks, response.Content[i])
			continue
		}
		if r := response.Content[i].Resource; r != nil && r.MIMEType != "" {
			mimeType = r.MIMEType
		}
		texts = append(texts, *text)
	}
	text := ""
	if len(texts) == 1 {
		text = texts[0]
	} else {
		text, mimeType = strings.Join(texts, "\n"), "text/plain"
	}
	text = strings.ToValidUTF8(text, "�")
	inJSON := isJSON(text)
	if inJSON {
		mimeType = mimeJSON
	}
	whole := document{tool, mimeType, text}
	if len(response.StructuredContent) == 0 {
		return []document{whole}, blocks
	}
	if inJSON && len(text) >= len(response.StructuredContent) {
		return []document{whole}, blocks // the text repeats it (MCP, structured content)
	}
	if text != "" && !inJSON {
		documents = append(documents, whole)
	}
	return append(documents, document{tool, mimeJSON, string(response.StructuredContent)}), blocks
}

const mimeJSON = "application/json"

// shorten keeps a document and returns what takes its place: a note, the beginning, and a link.
func (k *Keeper) shorten(ctx context.Context, d *document, reader Reader, limit int) []abi.Content {
	if len(d.text) <= limit {
		return []abi.Content{{Type: abi.Text, Text: d.text}}
	}
	start, about := d.start(limit)
	id, expires, err := k.keep(ctx, reader.Owner, d)
	if err != nil {
		return []abi.Content{{Type: abi.Text,
			Text: fmt.Sprintf("(The result of %s has %d bytes, which is too much to pass on at "+
				"once, and it is not kept: %v. %s Ask for less, or for a part.)\n%s", d.tool, len(d.text),
				err, about, start)}}
	}
	size := int64(len(d.text))
	way, described := reader.way(id)
	return []abi.Content{
		{Type: abi.Text,
			Text: fmt.Sprintf("(The result of %s has %d bytes, which is too much to pass on at once. All of it is "+
				"kept for you until %s: %s. %s)\n%s", d.tool, size, expires.UTC().Format(time.TimeOnly+" MST"), way, about, start)},
		{Type: abi.ResourceLink, URI: uriOf(id), Name: "result of " + d.tool, MIMEType: d.mimeType, Size: &size,
			Description: described},
	}
}

// way describes how the reader can read a kept document, for the note and for the link.
func (r *Reader) way(id string) (note, link string) {
	if r.Tool == "" {
		return fmt.Sprintf("the resource %s has the whole", uriOf(id)), "The whole result."
	}
	note = fmt.Sprintf("%s with {\"id\": %q} reads parts of it", r.Tool, id)
	if r.Program != "" {
		note += fmt.Sprintf(", and so does tools.%s in a program of %s", r.Tool, r.Program)
	}
	return note, fmt.Sprintf("The whole result, which %s reads in parts.", r.Tool)
}

func uriOf(id string) string { return Scheme + ":///" + id }

// start returns the beginning of a document and a sentence that says what it is. JSON ends between the items of its
// longest list; an object without such a list is described.
func (d *document) start(limit int) (text, about string) {
	if d.mimeType == mimeJSON && limit > 0 {
		p := pager{offset: -1}
		if fitted, ok := p.shrink("the list", jsontext.Value(d.text), limit, 0); ok {
			return string(fitted), fmt.Sprintf("Here %q has only the first %d of its %d items.",
				p.listName(), p.shown, p.all)
		}
		if whole := jsontext.Value(d.text); whole.Kind() == '{' {
			p := new(query).outline(d.text, limit)
			return p.text, fmt.Sprintf("Here are its parts for \"pointer\", not the result itself: %s.", p.note)
		}
	}
	text = firstLines(d.text, limit)
	return text, fmt.Sprintf("These are its first %d bytes.", len(text))
}
