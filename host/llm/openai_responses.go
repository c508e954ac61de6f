package llm

import (
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// responsesAPI is a client of OpenAI's Responses API (developers.openai.com/api/reference/resources/responses).
// OpenAI's reasoning models accept tools only there. Nothing is stored at OpenAI: reasoning is returned encrypted.
type responsesAPI struct {
	responses responses.ResponseService
}

func newResponses(spec *Spec, client *http.Client) *responsesAPI {
	return &responsesAPI{responses.NewResponseService(openAIOptions(spec, client)...)}
}

func (*responsesAPI) dialect() dialect {
	return dialect{tools: 128, name: 64, description: 1024, patterns: true}
}

func (a *responsesAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	stream := a.responses.NewStreaming(ctx, responsesParams(x), authorize(x.key)...)
	defer stream.Close()
	answer := responsesAnswer{exchange: x}
	for stream.Next() {
		if err := answer.addEvent(stream.Current()); err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, openAIError(err)
	}
	return answer.response()
}

func responsesParams(x *exchange) responses.ResponseNewParams {
	p := responses.ResponseNewParams{
		Model: x.spec.Model, MaxOutputTokens: openai.Int(x.maxTokens()), Store: openai.Bool(false),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responsesInput(x)},
	}
	if !x.without["include"] {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if x.System != "" {
		p.Instructions = openai.String(x.System)
	}
	if x.Temperature != nil && !x.without["temperature"] {
		p.Temperature = openai.Float(*x.Temperature)
	}
	for i := range x.tools.tools {
		p.Tools = append(p.Tools, responsesTool(&x.tools.tools[i]))
	}
	if x.NoTools && len(p.Tools) > 0 {
		p.ToolChoice.OfToolChoiceMode = param.NewOpt(responses.ToolChoiceOptionsNone)
	}
	return p
}

func responsesTool(tool *sentTool) responses.ToolUnionParam {
	p := responses.FunctionToolParam{Name: tool.name, Parameters: tool.parameters.schema, Strict: openai.Bool(false)}
	if tool.Description != "" {
		p.Description = openai.String(tool.Description)
	}
	return responses.ToolUnionParam{OfFunction: &p}
}

func responsesInput(x *exchange) responses.ResponseInputParam {
	var items responses.ResponseInputParam
	for i := range x.messages {
		m := &x.messages[i]
		for j := range m.Results {
			items = append(items, responsesOutput(&m.Results[j]))
		}
		if verbatim := x.verbatim(m); verbatim != nil {
			for _, item := range verbatim {
				items = append(items, param.Override[responses.ResponseInputItemUnionParam](item))
			}
			continue
		}
		if text, images := m.split(true); text != "" || len(images) > 0 {
			items = append(items, responsesMessage(text, images, responses.EasyInputMessageRole(m.Role)))
		}
		for j := range m.Calls {
			name, arguments := x.tools.outgoing(&m.Calls[j])
			items = append(items, responses.ResponseInputItemParamOfFunctionCall(string(arguments), m.Calls[j].ID,
				name))
		}
	}
	return items
}

func responsesMessage(text string, images []Image,
	role responses.EasyInputMessageRole) responses.ResponseInputItemUnionParam {
	if len(images) == 0 {
		return responses.ResponseInputItemParamOfMessage(text, role)
	}
	var parts responses.ResponseInputMessageContentListParam
	for _, image := range images {
		part := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
		part.OfInputImage.ImageURL = openai.String(image.url())
		parts = append(parts, part)
	}
	if text != "" {
		parts = append(parts, responses.ResponseInputContentParamOfInputText(text))
	}
	return responses.ResponseInputItemParamOfMessage(parts, role)
}

// responsesOutput returns the item for a result. The API has no error flag, so the text says that a call failed.
func responsesOutput(r *Result) responses.ResponseInputItemUnionParam {
	output := responses.ResponseFunctionCallOutputItemListParam{
		{OfInputText: &responses.ResponseInputTextContentParam{Text: r.marked()}}}
	for _, image := range r.Images {
		if image.known() {
			output = append(output, responses.ResponseFunctionCallOutputItemUnionParam{
				OfInputImage: &responses.ResponseInputImageContentParam{ImageURL: openai.String(image.url())},
			})
		}
	}
	item := responses.ResponseInputItemFunctionCallOutputParam{CallID: openai.String(r.CallID)}
	if len(output) == 1 {
		item.Output.OfString = openai.String(r.marked())
	} else {
		item.Output.OfResponseFunctionCallOutputItemArray = output
	}
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &item}
}

// responsesAnswer assembles a response from its events.
type responsesAnswer struct {
	*exchange
	done  []responses.ResponseOutputItemUnion
	final *responses.Response
}

func (a *responsesAnswer) addEvent(event responses.ResponseStreamEventUnion) error {
	switch event.Type {
	case "response.output_text.delta", "response.refusal.delta":
		if event.Delta != "" {
			a.emit(Delta{Text: event.Delta})
		}
	case "response.output_item.added":
		if event.Item.Type == "function_call" {
			a.emit(a.tools.begun(event.Item.CallID, event.Item.Name))
		}
	case "response.output_item.done":
		a.done = append(a.done, event.Item)
	case "response.completed", "response.incomplete":
		a.final = &event.Response
	case "response.failed":
		e := event.Response.Error
		return openAIFailure(0, nil, apiError{Code: string(e.Code), Type: e.Type, Message: e.Message, Param: e.Param},
			errors.New(e.Message))
	case "error":
		return openAIFailure(0, nil, apiError{Code: event.Code, Message: event.Message, Param: event.Param},
			errors.New(event.Message))
	}
	return nil
}

func (a *responsesAnswer) response() (*Response, error) {
	if a.final == nil {
		return nil, brokenOff(errors.New("no response.completed"))
	}
	items := a.final.Output
	if len(items) == 0 {
		items = a.done // some gateways leave the items out of response.completed
	}
	usage := a.final.Usage
	r := &Response{Model: a.final.Model, Stop: StopEnd, Usage: newUsage(
		usage.InputTokens, usage.OutputTokens, usage.InputTokensDetails.CachedTokens,
		usage.InputTokensDetails.CacheWriteTokens)}
	for i := range items {
		addItem(r, a.tools, &items[i])
	}
	if len(r.Calls) > 0 {
		r.Stop = StopTools
	}
	switch a.final.IncompleteDetails.Reason {
	case "max_output_tokens":
		r.Stop = StopLength
	case "content_filter":
		r.Stop = StopFiltered
	}
	r.State = a.state(items)
	return r, nil
}

func addItem(r *Response, tools *toolset, item *responses.ResponseOutputItemUnion) {
	switch item.Type {
	case "function_call":
		r.Calls = append(r.Calls, tools.incoming(item.CallID, item.Name, item.Arguments.OfString))
	case "message":
		for _, part := range item.Content {
			r.Text += part.Text + part.Refusal
			if part.Type == "refusal" {
				r.Stop = StopRefusal
			}
		}
	}
}

// state returns the verbatim response if the model was reasoning.
func (a *responsesAnswer) state(items []responses.ResponseOutputItemUnion) *State {
	s := &State{provider: a.spec.Provider, model: a.spec.Model}
	thought := false
	for _, item := range items {
		if item.Type == "reasoning" {
			if item.EncryptedContent == "" {
				return nil // the API accepts unencrypted reasoning only by the ID of a stored response
			}
			thought = true
		}
		s.parts = append(s.parts, []byte(item.RawJSON()))
	}
	if !thought {
		return nil
	}
	return s
}

// newUsage subtracts cached tokens from the input, because OpenAI counts them there as well.
func newUsage(input, output, read, written int64) Usage {
	return Usage{Input: int(max(0, input-read-written)), Output: int(output), CacheRead: int(read),
		CacheWrite: int(written)}
}
