package sandbox

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
	"unsafe"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/internal/jsonread"
	"github.com/hako-run/hako/internal/jsonstring"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

// decode decodes a guest's response, validates it completely and inserts the blobs. It overwrites data, which becomes a
// part of the response.
func decode(plugin string, data []byte, blobs [][]byte) (*abi.Response, error) {
	broken := func(format string, args ...any) error {
		return &catalog.GuestError{Plugin: plugin, Reason: "violated ABI 1: " + fmt.Sprintf(format, args...)}
	}
	if data == nil {
		return nil, broken("it did not call respond")
	}
	response, ok := decodeText(data)
	if !ok {
		if !utf8.Valid(data) {
			return nil, broken("the response is not UTF-8")
		}
		response = new(abi.Response)
		if err := strictjson.Unmarshal(data, response); err != nil {
			return nil, broken("the response is not the expected JSON: %v", err)
		}
	}
	if err := checkReferences(response, blobs); err != nil {
		return nil, broken("%v", err)
	}
	for i := range response.Content {
		if err := resolveBlock(&response.Content[i], blobs); err != nil {
			return nil, broken("content[%d]: %v", i, err)
		}
	}
	for i := range response.Messages {
		message := &response.Messages[i]
		if message.Role != "user" && message.Role != "assistant" {
			return nil, broken("messages[%d]: role %q is neither user nor assistant", i, message.Role)
		}
		if err := resolveBlock(&message.Content, blobs); err != nil {
			return nil, broken("messages[%d]: %v", i, err)
		}
	}
	for i := range response.Contents {
		if err := resolveContents(&response.Contents[i], blobs); err != nil {
			return nil, broken("contents[%d]: %v", i, err)
		}
	}
	for i := range response.StructuredText {
		if err := resolveMember(&response.StructuredText[i], blobs); err != nil {
			return nil, broken("structuredText[%d]: %v", i, err)
		}
	}
	if err := response.FillStructured(); err != nil {
		return nil, broken("%v", err)
	}
	return response, nil
}

// decodeText decodes the usual response of a tool, text blocks and structured content, without a copy: texts with
// escape sequences overwrite data. It reports false for any other response, and has changed nothing then. What it
// accepts, strictjson decodes to the same response.
func decodeText(data []byte) (*abi.Response, bool) {
	response := new(abi.Response)
	var texts [][]byte // of the blocks, with escape sequences
	r := jsonread.Reader{Data: data}
	block := func(first jsonread.Token) bool {
		response.Content, texts = append(response.Content, abi.Content{}), append(texts, nil)
		i := len(texts) - 1
		return first.Kind == '{' && r.Members(func(name []byte) bool {
			value, err := r.Next()
			if err != nil || value.Kind != '"' {
				return false
			}
			switch string(name) {
			case "type":
				// A copy: records keep it, and must not keep the response.
				response.Content[i].Type = string(value.Text())
			case "text":
				texts[i] = value.Content()
			default:
				return false
			}
			return true
		})
	}
	member := func(name []byte) bool {
		token, err := r.Next()
		if err != nil {
			return false
		}
		switch string(name) {
		case "content":
			response.Content = []abi.Content{}
			return token.Kind == '[' && r.Elements(block)
		case "structuredContent":
			response.StructuredContent, err = r.Whole()
			return err == nil
		case "isError":
			response.IsError = token.Kind == 't'
			return token.Kind == 't' || token.Kind == 'f'
		}
		return false
	}
	if token, err := r.Next(); err != nil || token.Kind != '{' || !r.Members(member) {
		return nil, false
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	for i, text := range texts {
		text = jsonstring.UnquoteInPlace(text)
		response.Content[i].Text = unsafe.String(unsafe.SliceData(text), len(text))
	}
	return response, true
}

// maxReferences bounds the size of a response with inserted blobs, as a multiple of their bytes: blobs may be
// referenced several times, and the output limit counted them once.
const maxReferences = 4

func checkReferences(response *abi.Response, blobs [][]byte) error {
	var have, referred int
	for _, b := range blobs {
		have += len(b)
	}
	count := func(index *int) {
		if index != nil && *index >= 0 && *index < len(blobs) {
			referred += len(blobs[*index])
		}
	}
	countBlock := func(c *abi.Content) {
		count(c.Blob)
		if c.Resource != nil {
			count(c.Resource.Blob)
		}
	}
	for i := range response.Content {
		countBlock(&response.Content[i])
	}
	for _, c := range response.Contents {
		count(c.Blob)
	}
	for i := range response.Messages {
		countBlock(&response.Messages[i].Content)
	}
	for _, m := range response.StructuredText {
		count(m.Blob)
	}
	if referred > maxReferences*have {
		return fmt.Errorf("it refers to %d bytes of blobs and has attached %d: at most %d times as many are allowed",
			referred, have, maxReferences)
	}
	return nil
}

func resolveMember(m *abi.TextMember, blobs [][]byte) error {
	data, err := attachedBlob(m.Blob, blobs)
	if err != nil {
		return err
	}
	if data == nil || !utf8.Valid(data) {
		return fmt.Errorf("member %q needs a blob that is UTF-8", m.Name)
	}
	m.Data = data
	return nil
}

func resolveBlock(content *abi.Content, blobs [][]byte) error {
	data, err := attachedBlob(content.Blob, blobs)
	if err != nil {
		return err
	}
	if a := content.Annotations; a != nil && a.Priority != nil && !(*a.Priority >= 0 && *a.Priority <= 1) {
		return fmt.Errorf("priority %v is not between 0 and 1", *a.Priority)
	}
	switch content.Type {
	case abi.Text:
		if data == nil {
			return nil
		}
		if !utf8.Valid(data) {
			return fmt.Errorf("the text in blob %d is not UTF-8", *content.Blob)
		}
		content.Text = unsafe.String(unsafe.SliceData(data), len(data)) // blobs are never written to
	case abi.Image, abi.Audio:
		if data == nil || content.MIMEType == "" {
			return fmt.Errorf("a block of type %s needs a blob and a mimeType", content.Type)
		}
		content.Data = data
	case abi.ResourceLink:
		if content.URI == "" || content.Name == "" {
			return fmt.Errorf("a resource_link needs a uri and a name")
		}
	case abi.Embedded:
		if content.Resource == nil {
			return fmt.Errorf("a block of type resource needs a resource")
		}
		return resolveContents(content.Resource, blobs)
	default:
		return fmt.Errorf("type %q is not one of text, image, audio, resource_link, resource", content.Type)
	}
	return nil
}

func resolveContents(resource *abi.ResourceContents, blobs [][]byte) error {
	if resource.URI == "" {
		return fmt.Errorf("a resource needs a uri")
	}
	data, err := attachedBlob(resource.Blob, blobs)
	resource.Data = data
	return err
}

func attachedBlob(index *int, blobs [][]byte) ([]byte, error) {
	if index == nil {
		return nil, nil
	}
	if *index < 0 || *index >= len(blobs) {
		return nil, fmt.Errorf("blob %d was not attached", *index)
	}
	data := blobs[*index]
	if data == nil {
		data = []byte{}
	}
	return data, nil
}
