package llm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
)

// messagesAPI is Anthropic's Messages API (platform.claude.com/docs/en/api/messages).
type messagesAPI struct {
	messages anthropic.MessageService
}

func newAnthropic(spec *Spec, client *http.Client) *messagesAPI {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithHTTPClient(client), option.WithMaxRetries(
			0), option.WithoutOpenTelemetry(),
	}
	if spec.BaseURL != "" {
		options = append(options, option.WithBaseURL(spec.BaseURL))
	}
	return &messagesAPI{anthropic.NewClient(options...).Messages}
}

// dialect has the documented limits. The limit on argument names is known only from the API's error messages.
func (*messagesAPI) dialect() dialect { return dialect{name: 128, keys: true, patterns: true} }

func (a *messagesAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	stream := a.messages.NewStreaming(ctx, messagesParams(x), option.WithAPIKey(x.key))
	defer stream.Close()
	answer := messagesAnswer{exchange: x}
	for stream.Next() {
		if err := answer.addEvent(stream.Current()); err != nil {
			return nil, brokenOff(err)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, messagesError(err)
	}
	return answer.response()
}

func messagesParams(x *exchange) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{Model: anthropic.Model(x.spec.Model), MaxTokens: x.maxTokens(),
		Messages: messagesTurns(x)}
	if x.System != "" {
		p.System = []anthropic.TextBlockParam{{Text: x.System}}
	}
	for i := range x.tools.tools {
		p.Tools = append(p.Tools, messagesTool(&x.tools.tools[i]))
	}
	if x.NoTools && len(p.Tools) > 0 {
		none := anthropic.NewToolChoiceNoneParam()
		p.ToolChoice = anthropic.ToolChoiceUnionParam{OfNone: &none}
	}
	if x.Cache {
		setCacheBreakpoints(&p)
	}
	return p
}

// setCacheBreakpoints sets a breakpoint after the tools, the system text and the conversation so far: the next request
// may differ from there on.
func setCacheBreakpoints(p *anthropic.MessageNewParams) {
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	content := p.Messages[len(p.Messages)-1].OfUser.Content
	if mark := content[len(content)-1].GetCacheControl(); mark != nil {
		*mark = anthropic.NewCacheControlEphemeralParam()
	}
}

func messagesTool(tool *sentTool) anthropic.ToolUnionParam {
	p := anthropic.ToolParam{Name: tool.name,
		InputSchema: param.Override[anthropic.ToolInputSchemaParam](tool.parameters.schema)}
	if tool.Description != "" {
		p.Description = anthropic.String(tool.Description)
	}
	return anthropic.ToolUnionParam{OfTool: &p}
}

func messagesTurns(x *exchange) []anthropic.MessageParam {
	turns := make([]anthropic.MessageParam, len(x.messages))
	for i := range x.messages {
		m := &x.messages[i]
		if m.Role == RoleUser {
			turns[i] = anthropic.NewUserMessage(userBlocks(m)...)
		} else {
			turns[i] = anthropic.NewAssistantMessage(assistantBlocks(x, m)...)
		}
	}
	return turns
}

// userBlocks puts results first, as the API requires.
func userBlocks(m *Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	for i := range m.Results {
		blocks = append(blocks, resultBlock(&m.Results[i]))
	}
	text, images := m.split(true)
	for _, image := range images {
		blocks = append(blocks, anthropic.NewImageBlockBase64(image.MIMEType,
			base64.StdEncoding.EncodeToString(image.Data)))
	}
	if text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(text))
	}
	return blocks
}

func resultBlock(r *Result) anthropic.ContentBlockParamUnion {
	result := anthropic.ToolResultBlockParam{ToolUseID: r.CallID}
	if r.IsError {
		result.IsError = anthropic.Bool(true)
	}
	if text := r.text(); text != "" {
		result.Content = append(result.Content,
			anthropic.ToolResultBlockParamContentUnion{OfText: &anthropic.TextBlockParam{Text: text}})
	}
	for _, image := range r.Images {
		if image.known() {
			block := anthropic.NewImageBlockBase64(image.MIMEType, base64.StdEncoding.EncodeToString(image.Data))
			result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: block.OfImage})
		}
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: &result}
}

// assistantBlocks returns the model's message, verbatim if its State is known.
func assistantBlocks(x *exchange, m *Message) []anthropic.ContentBlockParamUnion {
	if verbatim := x.verbatim(m); verbatim != nil {
		blocks := make([]anthropic.ContentBlockParamUnion, len(verbatim))
		for i, block := range verbatim {
			blocks[i] = param.Override[anthropic.ContentBlockParamUnion](block)
		}
		return blocks
	}
	var blocks []anthropic.ContentBlockParamUnion
	if m.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(m.Text))
	}
	for i := range m.Calls {
		name, arguments := x.tools.outgoing(&m.Calls[i])
		blocks = append(blocks, anthropic.NewToolUseBlock(m.Calls[i].ID, arguments, name))
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
