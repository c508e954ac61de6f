package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// anthropicAddress is the base URL of Anthropic's API, anthropicVersion the version that this package knows.
const (
	anthropicAddress = "https://api.anthropic.com"
	anthropicVersion = "2026-10-21"
)

// messagesAPI is Anthropic's Messages API (platform.claude.com/docs/en/api/messages).
type messagesAPI struct{ messages api }

func newAnthropic(spec *Spec, client *http.Client) *messagesAPI {
	return &messagesAPI{api{client, strings.TrimSuffix(cmp.Or(spec.BaseURL, anthropicAddress), "/") + "/v1/messages"}}
}

// dialect has the documented limits. The limit on argument names is known only from the API's error messages.
func (*messagesAPI) dialect() dialect { return dialect{name: 128, keys: true, patterns: true} }

func (a *messagesAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	header := authorize(x.key)
	header.Set("Anthropic-Version", anthropicVersion)
	answer := messagesAnswer{exchange: x}
	if err := a.messages.stream(ctx, header, newMessagesRequest(x), answer.addEvent); err != nil {
		return nil, messagesError(err)
	}
	return answer.response()
}

// messagesRequest is a request for a message.
type messagesRequest struct {
	Model      string              `json:"model"`
	MaxTokens  int64               `json:"max_tokens"`
	System     []messagesText      `json:"system,omitempty"`
	Messages   []messagesTurn      `json:"messages"`
	Tools      []messagesTool      `json:"tools,omitempty"`
	ToolChoice *messagesToolChoice `json:"tool_choice,omitempty"`
	Stream     bool                `json:"stream"`
}

type messagesToolChoice struct {
	Type string `json:"type"`
}

type messagesTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"input_schema"`
	cacheable
}

// messagesTurn is a message. Its content has pointers to the types of blocks below, and verbatim blocks.
type messagesTurn struct {
	Role    Role  `json:"role"`
	Content []any `json:"content"`
}

type messagesText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	cacheable
}

type messagesImage struct {
	Type   string              `json:"type"`
	Source messagesImageSource `json:"source"`
	cacheable
}

type messagesImageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type messagesToolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type messagesToolResult struct {
	Type      string `json:"type"`
	ToolUseID string `json:"tool_use_id"`
	Content   []any  `json:"content,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`
	cacheable
}

// cacheable is a part of the prompt after which a cache breakpoint may be set.
type cacheable struct {
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

func (c *cacheable) setBreakpoint() { c.CacheControl = &cacheControl{"ephemeral"} }

func newMessagesRequest(x *exchange) *messagesRequest {
	r := &messagesRequest{Model: x.spec.Model, MaxTokens: x.maxTokens(), Messages: messagesTurns(x), Stream: true}
	if x.System != "" {
		r.System = []messagesText{{Type: "text", Text: x.System}}
	}
	for i := range x.tools.tools {
		tool := &x.tools.tools[i]
		r.Tools = append(r.Tools, messagesTool{Name: tool.name, Description: tool.Description,
			InputSchema: tool.parameters.schema})
	}
	if x.NoTools && len(r.Tools) > 0 {
		r.ToolChoice = &messagesToolChoice{"none"}
	}
	if x.Cache {
		r.setCacheBreakpoints()
	}
	return r
}

// setCacheBreakpoints sets a breakpoint after the tools, the system text and the conversation so far: the next request
// may differ from there on.
func (r *messagesRequest) setCacheBreakpoints() {
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].setBreakpoint()
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].setBreakpoint()
	}
	content := r.Messages[len(r.Messages)-1].Content
	if last, ok := content[len(content)-1].(interface{ setBreakpoint() }); ok {
		last.setBreakpoint()
	}
}

func messagesTurns(x *exchange) []messagesTurn {
	turns := make([]messagesTurn, len(x.messages))
	for i := range x.messages {
		m := &x.messages[i]
		if m.Role == RoleUser {
			turns[i] = messagesTurn{m.Role, userBlocks(m)}
		} else {
			turns[i] = messagesTurn{m.Role, assistantBlocks(x, m)}
		}
	}
	return turns
}

// userBlocks puts results first, as the API requires.
func userBlocks(m *Message) []any {
	var blocks []any
	for i := range m.Results {
		blocks = append(blocks, resultBlock(&m.Results[i]))
	}
	text, images := m.split(true)
	for i := range images {
		blocks = append(blocks, imageBlock(&images[i]))
	}
	if text != "" {
		blocks = append(blocks, textBlock(text))
	}
	return blocks
}

func textBlock(text string) *messagesText { return &messagesText{Type: "text", Text: text} }

func imageBlock(i *Image) *messagesImage {
	return &messagesImage{Type: "image", Source: messagesImageSource{"base64", i.MIMEType, i.Data}}
}

func resultBlock(r *Result) *messagesToolResult {
	result := &messagesToolResult{Type: "tool_result", ToolUseID: r.CallID, IsError: r.IsError}
	if text := r.text(); text != "" {
		result.Content = append(result.Content, textBlock(text))
	}
	for i := range r.Images {
		if r.Images[i].known() {
			result.Content = append(result.Content, imageBlock(&r.Images[i]))
		}
	}
	return result
}

// assistantBlocks returns the model's message, verbatim if its State is known.
func assistantBlocks(x *exchange, m *Message) []any {
	var blocks []any
	if verbatim := x.verbatim(m); verbatim != nil {
		for _, block := range verbatim {
			blocks = append(blocks, block)
		}
		return blocks
	}
	if m.Text != "" {
		blocks = append(blocks, textBlock(m.Text))
	}
	for i := range m.Calls {
		name, arguments := x.tools.outgoing(&m.Calls[i])
		blocks = append(blocks, &messagesToolUse{"tool_use", m.Calls[i].ID, name, arguments})
	}
	return blocks
}

// verbatim returns the parts of m as the requested model sent them. It is nil if another model wrote m.
func (x *exchange) verbatim(m *Message) []json.RawMessage {
	if m.State == nil || m.State.provider != x.spec.Provider || m.State.model != x.spec.Model {
		return nil
	}
	return m.State.parts
}
