package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/toolschema"
)

// responsesAPI is a client of OpenAI's Responses API (developers.openai.com/api/reference/resources/responses).
// OpenAI's reasoning models accept tools only there. Nothing is stored at OpenAI: reasoning is returned encrypted.
type responsesAPI struct{ responses api }

func newResponses(spec *Spec, client *http.Client) *responsesAPI {
	return &responsesAPI{newOpenAI(spec, client, "/responses")}
}

// dialect has the limit of 128 tools that is documented for Chat Completions. It is not documented that deferred tools
// do not count for it.
func (*responsesAPI) dialect() dialect {
	return dialect{tools: 128, name: 64, description: 1024, patterns: true, deferred: 128, groups: true}
}

// toolSearch is the API's search for deferred tools (developers.openai.com/api/docs/guides/tools-tool-search). The
// model sees names and descriptions of the namespaces that deferred functions are in, and of functions outside of one.
const toolSearch = "tool_search"

func (a *responsesAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	answer := responsesAnswer{exchange: x}
	if _, err := a.responses.stream(ctx, authorize(x.key), newResponsesRequest(x), answer.addEvent); err != nil {
		return nil, convertError(err, openAIFailure)
	}
	return answer.response()
}

// responsesRequest is a request for a response. Its input has a responsesMessage, responsesCall or responsesOutput for
// each item, or an item of an earlier response.
type responsesRequest struct {
	Model           string   `json:"model"`
	Instructions    string   `json:"instructions,omitempty"`
	Input           []any    `json:"input"`
	Include         []string `json:"include,omitempty"`
	MaxOutputTokens int64    `json:"max_output_tokens"`
	Temperature     *float64 `json:"temperature,omitempty"`
	// Tools has responsesFunctions, responsesNamespaces and the search.
	Tools      []any  `json:"tools,omitempty"`
	ToolChoice string `json:"tool_choice,omitempty"`
	Store      bool   `json:"store"`
	Stream     bool   `json:"stream"`
}

type responsesFunction struct {
	Type         string         `json:"type"`
	Name         string         `json:"name"`
	Description  string         `json:"description,omitempty"`
	Parameters   map[string]any `json:"parameters"`
	Strict       bool           `json:"strict"`
	DeferLoading bool           `json:"defer_loading,omitempty"`
}

// responsesNamespace has the deferred functions of a group.
type responsesNamespace struct {
	Type        string              `json:"type"`
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Tools       []responsesFunction `json:"tools"`
}

// responsesMessage is a message. Its content is a string or []responsesPart.
type responsesMessage struct {
	Role    Role `json:"role"`
	Content any  `json:"content"`
}

// responsesPart is an image or text.
type responsesPart struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	ImageURL string  `json:"image_url,omitempty"`
	Detail   string  `json:"detail,omitempty"`
}

// functionCall is the type of the item of a call.
const functionCall = "function_call"

type responsesCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// responsesOutput is the result of a call. Its output is a string or []responsesPart.
type responsesOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"`
}

func newResponsesRequest(x *exchange) *responsesRequest {
	tools, namespaces := responsesTools(x.tools)
	r := &responsesRequest{Model: x.spec.Model, Instructions: x.System, Input: responsesInput(x, namespaces),
		MaxOutputTokens: x.maxTokens(), Tools: tools, Stream: true}
	if !x.without["include"] {
		r.Include = []string{"reasoning.encrypted_content"}
	}
	if !x.without["temperature"] {
		r.Temperature = x.Temperature
	}
	if x.NoTools && len(r.Tools) > 0 {
		r.ToolChoice = "none"
	}
	return r
}

// responsesTools returns the tools of a request, and the namespaces of the deferred ones by their groups.
func responsesTools(tools *toolset) (list []any, namespaces map[string]string) {
	var groups []string
	members := map[string][]responsesFunction{}
	for i := range tools.tools {
		tool := &tools.tools[i]
		function := responsesFunction{Type: "function", Name: tool.name, Description: tool.Description,
			Parameters: tool.parameters.schema, DeferLoading: tool.Deferred}
		if !tool.Deferred || tool.Group == "" {
			list = append(list, function)
			continue
		}
		if members[tool.Group] == nil {
			groups = append(groups, tool.Group)
		}
		members[tool.Group] = append(members[tool.Group], function)
	}
	namespaces = toolschema.Identifiers(groups, "_-", tools.dialect.name)
	for _, group := range groups {
		var names []string
		for _, function := range members[group] {
			names = append(names, function.Name)
		}
		description := clip.Runes("Functions of "+group+": "+strings.Join(names, ", "), tools.dialect.description)
		list = append(list, responsesNamespace{"namespace", namespaces[group], description, members[group]})
	}
	if tools.deferred {
		list = append(list, map[string]string{"type": toolSearch})
	}
	return list, namespaces
}

func responsesInput(x *exchange, namespaces map[string]string) []any {
	var items []any
	for i := range x.messages {
		m := &x.messages[i]
		for j := range m.Results {
			items = append(items, newResponsesOutput(&m.Results[j]))
		}
		verbatim := withCallIDs(x.verbatim(m), m.Calls, functionCall, "call_id")
		if verbatim != nil && (x.tools.deferred || !searched(verbatim)) {
			for _, item := range verbatim {
				items = append(items, item)
			}
			continue
		}
		if text, images := m.split(true); text != "" || len(images) > 0 {
			items = append(items, newResponsesMessage(text, images, m.Role))
		}
		for j := range m.Calls {
			name, arguments := x.tools.outgoing(&m.Calls[j])
			namespace := ""
			if tool := x.tools.original[m.Calls[j].Name]; tool != nil && tool.Deferred {
				namespace = namespaces[tool.Group]
			}
			items = append(items, responsesCall{functionCall, m.Calls[j].ID, namespace, name, string(arguments)})
		}
	}
	return items
}

// searched reports whether the items of a response have a search for tools.
func searched(items []json.RawMessage) bool {
	return slices.ContainsFunc(items, func(data json.RawMessage) bool {
		var item responsesItem
		return json.Unmarshal(data, &item) == nil && item.searches()
	})
}

func newResponsesMessage(text string, images []Image, role Role) responsesMessage {
	if len(images) == 0 {
		return responsesMessage{role, text}
	}
	var parts []responsesPart
	for _, image := range images {
		parts = append(parts, responsesPart{Type: "input_image", ImageURL: image.url(), Detail: "auto"})
	}
	if text != "" {
		parts = append(parts, responsesPart{Type: "input_text", Text: &text})
	}
	return responsesMessage{role, parts}
}

// newResponsesOutput returns the item for a result. The API has no error flag, so the text says that a call failed.
func newResponsesOutput(r *Result) responsesOutput {
	text := r.marked()
	parts := []responsesPart{{Type: "input_text", Text: &text}}
	for _, image := range r.Images {
		if image.known() {
			parts = append(parts, responsesPart{Type: "input_image", ImageURL: image.url()})
		}
	}
	if len(parts) == 1 {
		return responsesOutput{"function_call_output", r.CallID, text}
	}
	return responsesOutput{"function_call_output", r.CallID, parts}
}

// responsesEvent is an event of a response. Its fields depend on its type.
type responsesEvent struct {
	Type     jsonText         `json:"type"`
	Item     *responsesItem   `json:"item"`
	Response *responsesResult `json:"response"`
	apiError
}

type responsesResult struct {
	Model             jsonText        `json:"model"`
	Output            []responsesItem `json:"output"`
	Error             apiError        `json:"error"`
	IncompleteDetails struct {
		Reason jsonText `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		InputTokens  jsonCount    `json:"input_tokens"`
		OutputTokens jsonCount    `json:"output_tokens"`
		Details      usageDetails `json:"input_tokens_details"`
	} `json:"usage"`
}

// responsesItem is an item of the output: a message, a call, reasoning, or another one.
type responsesItem struct {
	Type             jsonText
	call             responsesItemCall
	content          []responsesItemContent
	encryptedContent jsonText
	raw              json.RawMessage // the whole item
}

type responsesItemCall struct {
	CallID    jsonText      `json:"call_id"`
	Name      jsonText      `json:"name"`
	Arguments jsonArguments `json:"arguments"`
}

type responsesItemContent struct {
	Type    jsonText    `json:"type"`
	Text    jsonContent `json:"text"`
	Refusal jsonContent `json:"refusal"`
}

// searches reports whether the item is a search for tools, or what that has found.
func (i *responsesItem) searches() bool {
	return i.Type == toolSearch+"_call" || i.Type == toolSearch+"_output"
}

// UnmarshalJSON keeps the item as it came besides its fields, which depend on its type.
func (i *responsesItem) UnmarshalJSON(data []byte) error {
	i.raw = bytes.Clone(data)
	var head struct {
		Type jsonText `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	switch i.Type = head.Type; i.Type {
	case functionCall:
		return json.Unmarshal(data, &i.call)
	case "message":
		return json.Unmarshal(data, &struct {
			Content *responsesContents `json:"content"`
		}{(*responsesContents)(&i.content)})
	case "reasoning":
		return json.Unmarshal(data, &struct {
			EncryptedContent *jsonText `json:"encrypted_content"`
		}{&i.encryptedContent})
	}
	return nil
}

// responsesContents is the content of a message: a list, or its text.
type responsesContents []responsesItemContent

func (c *responsesContents) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, (*[]responsesItemContent)(c))
	}
	var whole jsonContent
	err := whole.UnmarshalJSON(data)
	*c = []responsesItemContent{{Type: "output_text", Text: whole}}
	return err
}

// responsesAnswer assembles a response from its events.
type responsesAnswer struct {
	*exchange
	done  []responsesItem
	final *responsesResult
}

func (a *responsesAnswer) addEvent(data []byte) error {
	var event responsesEvent
	if err := decodeEvent(data, &event); err != nil {
		return err
	}
	if event.Item == nil {
		event.Item = &responsesItem{}
	}
	if event.Response == nil {
		event.Response = &responsesResult{}
	}
	switch event.Type {
	case "response.output_text.delta", "response.refusal.delta":
		var delta struct {
			Delta jsonContent `json:"delta"`
		}
		if err := decodeEvent(data, &delta); err != nil {
			return err
		}
		a.emit(string(delta.Delta))
	case "response.output_item.added":
		if event.Item.Type == functionCall {
			a.emit("")
		}
	case "response.output_item.done":
		a.done = append(a.done, *event.Item)
	case "response.completed", "response.incomplete":
		a.final = event.Response
	case "response.failed":
		return openAIFailure(0, nil, event.Response.Error, errors.New(string(event.Response.Error.Message)))
	case "error":
		return openAIFailure(0, nil, apiError{Code: event.Code, Message: event.Message, Param: event.Param},
			errors.New(string(event.Message)))
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
	r := &Response{Model: string(a.final.Model), Stop: StopEnd, Usage: newUsage(
		usage.InputTokens, usage.OutputTokens, usage.Details.CachedTokens, usage.Details.CacheWriteTokens)}
	var text strings.Builder
	for i := range items {
		a.addItem(r, &text, &items[i])
	}
	r.Text = text.String()
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

func (a *responsesAnswer) addItem(r *Response, text *strings.Builder, item *responsesItem) {
	switch item.Type {
	case functionCall:
		r.Calls = append(r.Calls, a.incoming(newCallID(), string(item.call.CallID), string(item.call.Name),
			string(item.call.Arguments)))
	case "message":
		for _, part := range item.content {
			text.WriteString(string(part.Text + part.Refusal))
			if part.Type == "refusal" {
				r.Stop = StopRefusal
			}
		}
	}
}

// state returns the verbatim response if the model was reasoning or has searched for tools.
func (a *responsesAnswer) state(items []responsesItem) *State {
	s := &State{origin: a.origin()}
	keep := false
	for _, item := range items {
		if item.Type == "reasoning" {
			if item.encryptedContent == "" {
				return nil // the API accepts unencrypted reasoning only by the ID of a stored response
			}
			keep = true
		}
		keep = keep || item.searches()
		s.parts = append(s.parts, item.raw)
	}
	if !keep {
		return nil
	}
	return s
}

// newUsage subtracts cached tokens from the input, because OpenAI counts them there as well.
func newUsage(input, output, read, written jsonCount) Usage {
	return Usage{Input: int(max(0, input-read-written)), Output: int(output), CacheRead: int(read),
		CacheWrite: int(written)}
}
