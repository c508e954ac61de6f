package llm

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
)

// chatAPI is a client of the Chat Completions API (developers.openai.com/api/reference/resources/chat), which
// OpenAI-compatible servers implement.
type chatAPI struct {
	completions api
	// habit is how the model thinks, a thinkingHabit.
	habit atomic.Int32
}

func newChat(spec *Spec, client *http.Client) *chatAPI {
	return &chatAPI{completions: newOpenAI(spec, client, "/chat/completions")}
}

func (*chatAPI) dialect() dialect { return dialect{name: 64} }

func (a *chatAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	answer := chatAnswer{exchange: x,
		filter: textFilter{habit: thinkingHabit(a.habit.Load()), calls: !x.NoTools && len(x.tools.tools) > 0}}
	done, err := a.completions.stream(ctx, authorize(x.key), newChatRequest(x), answer.addChunk)
	if err != nil {
		return nil, convertError(err, openAIFailure)
	}
	response, err := answer.response(done)
	switch {
	case answer.filter.lone:
		a.habit.Store(int32(habitLone))
	case err == nil:
		a.habit.CompareAndSwap(int32(habitUnknown), int32(habitPairs))
	}
	return response, err
}

// chatRequest is a request for a chat completion.
type chatRequest struct {
	Model     string        `json:"model"`
	Messages  []chatMessage `json:"messages"`
	MaxTokens int64         `json:"max_tokens,omitempty"` // all servers know this old name
	// MaxCompletionTokens is the new name, for servers that reject the old one.
	MaxCompletionTokens int64              `json:"max_completion_tokens,omitempty"`
	Temperature         *float64           `json:"temperature,omitempty"`
	Tools               []chatTool         `json:"tools,omitempty"`
	ToolChoice          string             `json:"tool_choice,omitempty"`
	Stream              bool               `json:"stream"`
	StreamOptions       *chatStreamOptions `json:"stream_options,omitempty"`
}

type chatStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatTool struct {
	Type     string           `json:"type"`
	Function chatToolFunction `json:"function"`
}

type chatToolFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters"`
}

// chatMessage is a message of any role. Its content is a string or []chatPart.
type chatMessage struct {
	Role       string            `json:"role"`
	Content    any               `json:"content,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
	ToolCalls  []chatMessageCall `json:"tool_calls,omitempty"`
}

// chatPart is an image or text.
type chatPart struct {
	Type     string        `json:"type"`
	Text     string        `json:"text,omitempty"`
	ImageURL *chatImageURL `json:"image_url,omitempty"`
}

type chatImageURL struct {
	URL string `json:"url"`
}

type chatMessageCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function chatCallFunction `json:"function"`
}

type chatCallFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func newChatRequest(x *exchange) *chatRequest {
	r := &chatRequest{Model: x.spec.Model, Messages: chatMessages(x), Stream: true}
	if x.without["max_tokens"] {
		r.MaxCompletionTokens = x.maxTokens()
	} else {
		r.MaxTokens = x.maxTokens()
	}
	if !x.without["stream_options"] {
		r.StreamOptions = &chatStreamOptions{IncludeUsage: true}
	}
	if !x.without["temperature"] {
		r.Temperature = x.Temperature
	}
	for i := range x.tools.tools {
		tool := &x.tools.tools[i]
		r.Tools = append(r.Tools,
			chatTool{"function", chatToolFunction{tool.name, tool.Description, tool.parameters.schema}})
	}
	if x.NoTools && len(r.Tools) > 0 {
		r.ToolChoice = "none"
	}
	return r
}

func chatMessages(x *exchange) []chatMessage {
	var messages []chatMessage
	if x.System != "" {
		messages = append(messages, chatMessage{Role: "system", Content: x.System})
	}
	for i := range x.messages {
		m := &x.messages[i]
		for j := range m.Results {
			r := &m.Results[j]
			messages = append(messages,
				chatMessage{Role: "tool", Content: withoutImages(r.failed(), len(r.Images)), ToolCallID: r.CallID})
		}
		switch {
		case m.Role == RoleAssistant:
			messages = append(messages, chatAssistant(x, m))
		case m.Text != "" || len(m.Images) > 0:
			messages = append(messages, chatUser(m.split(x.spec.Images)))
		}
	}
	return messages
}

func chatUser(text string, images []Image) chatMessage {
	if len(images) == 0 {
		return chatMessage{Role: "user", Content: text}
	}
	var parts []chatPart
	for _, image := range images {
		parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatImageURL{image.url()}})
	}
	if text != "" {
		parts = append(parts, chatPart{Type: "text", Text: text})
	}
	return chatMessage{Role: "user", Content: parts}
}

func chatAssistant(x *exchange, m *Message) chatMessage {
	message := chatMessage{Role: "assistant", Content: m.Text} // some servers require it, though it is empty
	for i := range m.Calls {
		name, arguments := x.tools.outgoing(&m.Calls[i])
		message.ToolCalls = append(message.ToolCalls,
			chatMessageCall{m.Calls[i].ID, "function", chatCallFunction{name, string(arguments)}})
	}
	return message
}

// chatChunk is an event of a response.
type chatChunk struct {
	Model   jsonText `json:"model"`
	Choices []struct {
		Delta struct {
			Content   jsonContent    `json:"content"`
			Refusal   jsonContent    `json:"refusal"`
			ToolCalls []chatCallPart `json:"tool_calls"`
		} `json:"delta"`
		FinishReason jsonText `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
}

type chatCallPart struct {
	Index    jsonCount `json:"index"`
	ID       jsonText  `json:"id"`
	Function struct {
		Name      jsonText      `json:"name"`
		Arguments jsonArguments `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	PromptTokens     jsonCount    `json:"prompt_tokens"`
	CompletionTokens jsonCount    `json:"completion_tokens"`
	Details          usageDetails `json:"prompt_tokens_details"`
}

// usageDetails counts the tokens of the input that the provider's cache has.
type usageDetails struct {
	CachedTokens     jsonCount `json:"cached_tokens"`
	CacheWriteTokens jsonCount `json:"cache_write_tokens"`
}

// chatAnswer assembles a response from its chunks.
type chatAnswer struct {
	*exchange
	text    strings.Builder
	filter  textFilter
	calls   chatCalls
	model   string
	finish  string
	refused bool
	usage   chatUsage
}

func (a *chatAnswer) addChunk(data []byte) error {
	var chunk chatChunk
	if err := decodeEvent(data, &chunk); err != nil {
		return err
	}
	if chunk.Model != "" {
		a.model = string(chunk.Model)
	}
	if chunk.Usage != nil {
		a.usage = *chunk.Usage
	}
	for i := range chunk.Choices {
		choice := &chunk.Choices[i]
		if choice.FinishReason != "" {
			a.finish = string(choice.FinishReason)
		}
		delta := &choice.Delta
		a.refused = a.refused || delta.Refusal != ""
		a.addText(a.filter.add(string(delta.Content + delta.Refusal)))
		if len(delta.ToolCalls) > 0 {
			a.emit("")
			if err := a.calls.add(a.tools, delta.ToolCalls); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *chatAnswer) addText(text string) {
	if a.filter.takeLone() {
		a.text.Reset() // what was shown were thoughts
	}
	if text != "" {
		a.text.WriteString(text)
		a.emit(text)
	}
}

// response returns the response. done reports whether the server has marked the end of the stream, as some do without
// a finish reason.
func (a *chatAnswer) response(done bool) (*Response, error) {
	rest, written := a.filter.end(len(a.calls.list) > 0, a.tools)
	a.addText(rest)
	nothing := a.text.Len() == 0 && len(a.calls.list) == 0 && len(written) == 0
	if a.finish == "" && (!done || nothing) {
		return nil, brokenOff(errors.New("no finish_reason"))
	}
	details := a.usage.Details
	r := &Response{Text: a.text.String(), Model: a.model, Stop: StopEnd,
		Usage: newUsage(a.usage.PromptTokens, a.usage.CompletionTokens, details.CachedTokens, details.CacheWriteTokens)}
	for _, call := range a.calls.whole(strings.TrimSpace(r.Text) != "") {
		r.Calls = append(r.Calls, a.incoming(newCallID(), call.given, call.name, call.arguments.String()))
	}
	for _, call := range written {
		r.Calls = append(r.Calls, a.incoming(newCallID(), "", call.Name, string(call.Arguments)))
	}
	switch {
	case a.finish == "length":
		r.Stop = StopLength
	case a.finish == "content_filter":
		r.Stop = StopFiltered
	case a.refused:
		r.Stop = StopRefusal
	case len(r.Calls) > 0:
		r.Stop = StopTools // servers disagree about the finish reason
	}
	return r, nil
}
