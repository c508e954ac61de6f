package llm

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

// chatAPI is a client of the Chat Completions API (developers.openai.com/api/reference/resources/chat), which
// OpenAI-compatible servers implement.
type chatAPI struct {
	completions openai.ChatCompletionService
}

func newChat(spec *Spec, client *http.Client) *chatAPI {
	return &chatAPI{openai.NewChatCompletionService(openAIOptions(spec, client)...)}
}

func (*chatAPI) dialect() dialect { return dialect{name: 64} }

func (a *chatAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	stream := a.completions.NewStreaming(ctx, chatParams(x), authorize(x.key)...)
	defer stream.Close()
	answer := chatAnswer{exchange: x}
	for stream.Next() {
		answer.addChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		return nil, openAIError(err)
	}
	return answer.response()
}

func chatParams(x *exchange) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: x.spec.Model, Messages: chatMessages(x)}
	if x.without["max_tokens"] {
		p.MaxCompletionTokens = openai.Int(x.maxTokens())
	} else {
		p.MaxTokens = openai.Int(x.maxTokens()) // all servers know the old name
	}
	if !x.without["stream_options"] {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	if x.Temperature != nil && !x.without["temperature"] {
		p.Temperature = openai.Float(*x.Temperature)
	}
	for i := range x.tools.tools {
		p.Tools = append(p.Tools, chatTool(&x.tools.tools[i]))
	}
	if x.NoTools && len(p.Tools) > 0 {
		p.ToolChoice.OfAuto = openai.String(string(openai.ChatCompletionToolChoiceOptionAutoNone))
	}
	return p
}

func chatTool(tool *sentTool) openai.ChatCompletionToolUnionParam {
	function := shared.FunctionDefinitionParam{Name: tool.name, Parameters: tool.parameters.schema}
	if tool.Description != "" {
		function.Description = openai.String(tool.Description)
	}
	return openai.ChatCompletionFunctionTool(function)
}

func chatMessages(x *exchange) []openai.ChatCompletionMessageParamUnion {
	var messages []openai.ChatCompletionMessageParamUnion
	if x.System != "" {
		messages = append(messages, openai.SystemMessage(x.System))
	}
	for i := range x.messages {
		m := &x.messages[i]
		for j := range m.Results {
			r := &m.Results[j]
			messages = append(messages, openai.ToolMessage(withoutImages(r.failed(), len(r.Images)), r.CallID))
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

func chatUser(text string, images []Image) openai.ChatCompletionMessageParamUnion {
	if len(images) == 0 {
		return openai.UserMessage(text)
	}
	var parts []openai.ChatCompletionContentPartUnionParam
	for _, image := range images {
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: image.url()}))
	}
	if text != "" {
		parts = append(parts, openai.TextContentPart(text))
	}
	return openai.UserMessage(parts)
}

func chatAssistant(x *exchange, m *Message) openai.ChatCompletionMessageParamUnion {
	var p openai.ChatCompletionAssistantMessageParam
	if m.Text != "" {
		p.Content.OfString = openai.String(m.Text)
	}
	for i := range m.Calls {
		name, arguments := x.tools.outgoing(&m.Calls[i])
		p.ToolCalls = append(p.ToolCalls,
			openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: m.Calls[i].ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: name,
					Arguments: string(arguments)},
			}})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &p}
}

// chatAnswer assembles a response from its chunks.
type chatAnswer struct {
	*exchange
	text    strings.Builder
	think   thinkFilter
	calls   []*chatCall
	model   string
	finish  string
	refused bool
	usage   openai.CompletionUsage
}

// chatCall is a partially received tool call.
type chatCall struct {
	index     int64
	id, name  string
	begun     bool
	arguments strings.Builder
}

func (a *chatAnswer) addChunk(chunk openai.ChatCompletionChunk) {
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		a.usage = chunk.Usage
	}
	for _, choice := range chunk.Choices {
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		a.refused = a.refused || choice.Delta.Refusal != ""
		a.addText(a.think.filter(choice.Delta.Content + choice.Delta.Refusal))
		for _, part := range choice.Delta.ToolCalls {
			a.addCallPart(part)
		}
	}
}

func (a *chatAnswer) addText(text string) {
	if text != "" {
		a.text.WriteString(text)
		a.emit(Delta{Text: text})
	}
}

func (a *chatAnswer) addCallPart(part openai.ChatCompletionChunkChoiceDeltaToolCall) {
	call := a.callFor(part)
	call.name += part.Function.Name
	call.arguments.WriteString(part.Function.Arguments)
	if !call.begun && call.name != "" {
		call.begun = true
		a.emit(a.tools.begun(call.id, call.name))
	}
}

// callFor returns the call that a part belongs to, or begins one. Some servers send index 0 for all calls, so a new ID
// begins a new call. Some servers send no IDs.
func (a *chatAnswer) callFor(part openai.ChatCompletionChunkChoiceDeltaToolCall) *chatCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		call := a.calls[i]
		if call.index == part.Index && (part.ID == "" || part.ID == call.id) {
			return call
		}
	}
	call := &chatCall{index: part.Index, id: part.ID}
	if call.id == "" {
		call.id = "call_" + rand.Text()
	}
	a.calls = append(a.calls, call)
	return call
}

func (a *chatAnswer) response() (*Response, error) {
	if a.finish == "" {
		return nil, brokenOff(errors.New("no finish_reason"))
	}
	a.addText(a.think.end())
	details := a.usage.PromptTokensDetails
	r := &Response{Text: a.text.String(), Model: a.model, Stop: StopEnd,
		Usage: newUsage(a.usage.PromptTokens, a.usage.CompletionTokens, details.CachedTokens, details.CacheWriteTokens)}
	for _, call := range a.calls {
		r.Calls = append(r.Calls, a.tools.incoming(call.id, call.name, call.arguments.String()))
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
