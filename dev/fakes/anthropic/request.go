package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// request is the part of a request that is read.
type request struct {
	Model       string          `json:"model"`
	MaxTokens   int             `json:"max_tokens"`
	Messages    []message       `json:"messages"`
	System      json.RawMessage `json:"system"`
	Tools       []tool          `json:"tools"`
	ToolChoice  *choice         `json:"tool_choice"`
	Stream      bool            `json:"stream"`
	Metadata    json.RawMessage `json:"metadata"`
	Thinking    json.RawMessage `json:"thinking"`
	Stops       []string        `json:"stop_sequences"`
	ServiceTier string          `json:"service_tier"`
}

type choice struct {
	Type string `json:"type"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a list of blocks, one block, or a text that stands for one.
type content []block

type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      content         `json:"content"`
	IsError      bool            `json:"is_error"`
	Source       *source         `json:"source"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	CacheControl *choice         `json:"cache_control"`
	// References are the tools that a search has found, each with its Tool.
	References []block `json:"tool_references"`
	Tool       string  `json:"tool_name"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type tool struct {
	Type         string         `json:"type"`
	Name         string         `json:"name"`
	Description  string         `json:"description"`
	Schema       map[string]any `json:"input_schema"`
	Deferred     bool           `json:"defer_loading"`
	CacheControl *choice        `json:"cache_control"`
}

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	if isObject(data) {
		*c = make(content, 1)
		return json.Unmarshal(data, &(*c)[0])
	}
	return json.Unmarshal(data, (*[]block)(c))
}

// read reads a request strictly: the API knows no others than its own parameters.
func read(body []byte) (*request, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var in request
	if err := decoder.Decode(&in); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return nil, Invalid("%s: Extra inputs are not permitted", strings.Trim(name, `"`))
		}
		return nil, Invalid("the request body is not valid JSON: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, Invalid("the request body is not valid JSON")
	}
	return &in, nil
}

func (s *Server) check(in *request) error {
	switch {
	case in.Model == "":
		return Invalid("model: Field required")
	case s.Models != nil && !slices.Contains(s.Models, in.Model):
		return &Error{Status: 404, Kind: "not_found_error", Message: "model: " + in.Model}
	case in.MaxTokens < 1:
		return Invalid("max_tokens: Input should be greater than or equal to 1")
	case len(in.Messages) == 0:
		return Invalid("messages: at least one message is required")
	case in.ToolChoice != nil && len(in.Tools) == 0:
		return Invalid("tool_choice: may only be specified while providing tools")
	}
	for i, tool := range in.Tools {
		if err := tool.check(i, in.Tools[:i]); err != nil {
			return err
		}
	}
	if err := s.checkDeferred(in); err != nil {
		return err
	}
	return s.checkMessages(in)
}

var (
	toolName    = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)
	propertyKey = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,64}$`)
)

func (t *tool) check(i int, before []tool) error {
	at := fmt.Sprintf("tools.%d.custom", i)
	switch {
	case t.Deferred && t.CacheControl != nil:
		return Invalid("Tool '%s' cannot have both defer_loading=true and cache_control set. "+
			"Tools with defer_loading cannot use prompt caching.", t.Name)
	case t.Type == searchType && t.Name == searchName && t.Schema == nil:
		return nil
	case t.Type != "" && t.Type != "custom":
		return Invalid("tools.%d: Input tag '%s' is not one that the fake knows with this name", i, t.Type)
	case !toolName().MatchString(t.Name):
		return Invalid("%s.name: String should match pattern '%v'", at, toolName)
	case slices.ContainsFunc(before, func(other tool) bool { return other.Name == t.Name }):
		return Invalid("tools: Tool names must be unique.")
	case t.Schema["type"] != "object":
		return Invalid("%s.input_schema.type: Input should be 'object'", at)
	}
	for _, keyword := range []string{"oneOf", "allOf", "anyOf"} {
		if t.Schema[keyword] != nil {
			return Invalid("%s.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", at)
		}
	}
	properties, _ := t.Schema["properties"].(map[string]any)
	for key := range properties {
		if !propertyKey().MatchString(key) {
			return Invalid("%s.input_schema.properties: Property keys should match pattern '%v'", at, propertyKey)
		}
	}
	return nil
}

func (s *Server) checkMessages(in *request) error {
	if in.Messages[0].Role != "user" {
		return Invalid("messages: first message must use the \"user\" role")
	}
	if last := in.Messages[len(in.Messages)-1]; last.Role != "user" {
		return Invalid("messages: the conversation must end with a user message")
	}
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			return Invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		if i > 0 && in.Messages[i-1].Role == m.Role {
			return Invalid("messages.%d: roles must alternate",
				i) // the API joins them; whoever relies on that gets to know here
		}
		if err := s.checkBlocks(in, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) checkBlocks(in *request, i int) error {
	m := &in.Messages[i]
	if len(m.Content) == 0 {
		return Invalid("messages.%d: all messages must have non-empty content", i)
	}
	var open, used []string
	if i > 0 {
		open = in.Messages[i-1].uses()
	}
	for _, before := range in.Messages[:i] {
		used = append(used, before.uses()...)
	}
	for j, b := range m.Content {
		at := fmt.Sprintf("messages.%d.content.%d", i, j)
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				return Invalid("%s: text content blocks must contain non-whitespace text", at)
			}
		case "tool_use":
			if !toolName().MatchString(b.Name) || b.ID == "" || !isObject(b.Input) {
				return Invalid("%s.tool_use: name, id or input is invalid", at)
			}
			if slices.Contains(used, b.ID) {
				return Invalid("messages: `tool_use` ids must be unique")
			}
			used = append(used, b.ID)
		case "tool_result":
			if !slices.Contains(open, b.ToolUseID) {
				return Invalid("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s", at, b.ToolUseID)
			}
			open = slices.DeleteFunc(open, func(id string) bool { return id == b.ToolUseID })
		case "image":
			if m.Role != "user" || b.Source == nil || b.Source.Type != "base64" ||
				!slices.Contains(imageTypes, b.Source.MediaType) || len(b.Source.Data) == 0 {
				return Invalid(
					"%s.image: only base64 images of a supported type in messages of the user are known here", at)
			}
		case "server_tool_use", "tool_search_tool_result":
			if err := s.checkSearch(in, at, m.Content[:j], &b); err != nil {
				return err
			}
		case "thinking":
			if err := s.checkThought(at, &b); err != nil {
				return err
			}
		default:
			return Invalid("%s: Input tag '%s' is not one that the fake knows", at, b.Type)
		}
	}
	if len(open) > 0 {
		return Invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i-1,
			strings.Join(open, ", "))
	}
	return s.checkThoughts(in, i)
}

// imageTypes are those that the API takes.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func isObject(data json.RawMessage) bool {
	var object map[string]any
	return json.Unmarshal(data, &object) == nil && object != nil
}

// uses are the IDs of the calls.
func (m *message) uses() []string {
	var ids []string
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// checkThought holds that a thought is one of ours, unchanged.
func (s *Server) checkThought(at string, b *block) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if thought, ok := s.thoughts[b.Signature]; !ok || thought != b.Thinking {
		return Invalid("%s: Invalid `signature` in `thinking` block", at)
	}
	return nil
}

// checkThoughts holds that the thoughts before a call come back while it is answered.
func (s *Server) checkThoughts(in *request, i int) error {
	if i != len(in.Messages)-2 || len(in.Messages[i].uses()) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range in.Messages[i].uses() {
		if s.thoughts["before "+id] != "" && in.Messages[i].Content[0].Type != "thinking" {
			return Invalid("messages.%d: the thinking blocks of the latest assistant message must not be left out", i)
		}
		if search := s.needed[id]; search != "" && in.searches() && !slices.ContainsFunc(in.Messages[i].Content,
			func(b block) bool { return b.ToolUseID == search }) {
			return Invalid("messages.%d: the search that found the tool must not be left out", i)
		}
	}
	return nil
}

// conversation is the part of a request that the script looks at.
func (in *request) conversation() *script.Conversation {
	c := &script.Conversation{NoTools: in.ToolChoice != nil && in.ToolChoice.Type == "none"}
	for _, tool := range in.Tools {
		if tool.Type != searchType {
			c.Tools = append(c.Tools, tool.Name)
		}
	}
	for i, m := range in.Messages {
		if m.Role != "user" {
			continue
		}
		for _, b := range m.Content {
			switch {
			case b.Type == "text":
				c.Text = b.Text
			case b.Type == "tool_result" && i == len(in.Messages)-1:
				c.Results = append(c.Results, b.Content.text())
			}
		}
	}
	if last := in.Messages[len(in.Messages)-1]; last.Content[len(last.Content)-1].Type == "text" &&
		len(in.Messages) > 1 && len(c.Results) > 0 {
		c.Results = nil // a text after results is what counts
	}
	return c
}

func (c content) text() string {
	var parts []string
	for _, b := range c {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}
