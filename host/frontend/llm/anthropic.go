package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
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
func (*messagesAPI) dialect() dialect {
	return dialect{name: 128, patterns: true, deferred: 10_000}
}

func (a *messagesAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	header := authorize(x.key)
	header.Set("Anthropic-Version", anthropicVersion)
	answer, request := messagesAnswer{exchange: x}, newMessagesRequest(x)
	turns := request.Messages
	for {
		if _, err := a.messages.stream(ctx, header, request, answer.addEvent); err != nil {
			return nil, convertError(err, messagesFailure)
		}
		said := answer.pause()
		if said == nil {
			return answer.response()
		}
		request.Messages = slices.Concat(turns, []messagesTurn{{RoleAssistant, said}})
	}
}

// maxPauses bounds how often a response is resumed that the API has paused after many searches ("pause_turn").
const maxPauses = 4

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

// messagesTool is a tool of the caller's, or one of the API's, which has a type and no schema.
type messagesTool struct {
	Type         string         `json:"type,omitempty"`
	Name         string         `json:"name"`
	Description  string         `json:"description,omitempty"`
	InputSchema  map[string]any `json:"input_schema,omitempty"`
	DeferLoading bool           `json:"defer_loading,omitempty"`
	cacheable
}

// The API's search for deferred tools (platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool).
const (
	searchTool     = "tool_search_tool_bm25"
	searchToolType = searchTool + "_20251119"
)

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

// toolUse is the type of the block of a call.
const toolUse = "tool_use"

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
			InputSchema: tool.parameters.schema, DeferLoading: tool.Deferred})
	}
	if x.tools.deferred { // last, because a breakpoint cannot be set after a deferred tool
		r.Tools = append(r.Tools, messagesTool{Type: searchToolType, Name: searchTool})
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
	blocks := x.withoutLostSearches(withCallIDs(x.verbatim(m), m.Calls, toolUse, "id"), x.ids)
	if blocks != nil {
		return blocks
	}
	if m.Text != "" {
		blocks = append(blocks, textBlock(m.Text))
	}
	for i := range m.Calls {
		name, arguments := x.tools.outgoing(&m.Calls[i])
		blocks = append(blocks, &messagesToolUse{toolUse, m.Calls[i].ID, name, arguments})
	}
	return blocks
}

// verbatim returns the parts of m as the requested model sent them. It is nil if another model wrote m.
func (x *exchange) verbatim(m *Message) []json.RawMessage {
	if m.State == nil || m.State.origin != x.origin() {
		return nil
	}
	return m.State.parts
}

// messagesSearch is a content block of a search for tools: what the model looks for, or the result.
type messagesSearch struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	ToolUseID string `json:"tool_use_id"`
	Content   struct {
		Type       string `json:"type"`
		References []struct {
			Name string `json:"tool_name"`
		} `json:"tool_references"`
	} `json:"content"`
}

// withoutLostSearches returns the blocks of a message without the searches that the API would refuse: those of a
// request without the search, those whose ID is empty or in ids, and those whose result is malformed or names a tool
// that is not sent. It adds the IDs of the others to ids.
func (x *exchange) withoutLostSearches(parts []json.RawMessage, ids map[string]bool) (blocks []any) {
	lost, open := make([]bool, len(parts)), map[string]int{} // the searches without a result, by ID
	for i, part := range parts {
		var search messagesSearch
		malformed := json.Unmarshal(part, &search) != nil
		switch {
		case search.Type == "server_tool_use" && search.Name == searchTool:
			if lost[i] = !x.tools.deferred || search.ID == "" || ids[search.ID]; !lost[i] {
				ids[search.ID], open[search.ID] = true, i
			}
		case search.Type == "tool_search_tool_result":
			at, begun := open[search.ToolUseID]
			delete(open, search.ToolUseID)
			if lost[i] = !begun || malformed || !x.defines(&search); begun {
				lost[at] = lost[i]
			}
		}
	}
	for i, part := range parts {
		if !lost[i] {
			blocks = append(blocks, part)
		}
	}
	return blocks
}

// defines reports whether the request has all tools that the search has found.
func (x *exchange) defines(search *messagesSearch) bool {
	for _, reference := range search.Content.References {
		if x.tools.sent[reference.Name] == nil {
			return false
		}
	}
	return search.Content.Type == "tool_search_tool_search_result" ||
		search.Content.Type == "tool_search_tool_result_error"
}
