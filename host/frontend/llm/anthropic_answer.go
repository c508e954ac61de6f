package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// messagesEvent is an event of a response. Its fields depend on its type.
type messagesEvent struct {
	Type    jsonText  `json:"type"`
	Index   jsonCount `json:"index"`
	Message struct {
		Model jsonText      `json:"model"`
		Usage messagesUsage `json:"usage"`
	} `json:"message"`
	ContentBlock map[string]json.RawMessage `json:"content_block"`
	Delta        struct {
		Text        jsonText      `json:"text"`
		Thinking    jsonText      `json:"thinking"`
		Signature   jsonText      `json:"signature"`
		PartialJSON jsonArguments `json:"partial_json"`
		StopReason  jsonText      `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
}

// messagesUsage counts tokens. Later counts replace earlier ones.
type messagesUsage struct {
	Input      *jsonCount `json:"input_tokens"`
	Output     *jsonCount `json:"output_tokens"`
	CacheRead  *jsonCount `json:"cache_read_input_tokens"`
	CacheWrite *jsonCount `json:"cache_creation_input_tokens"`
}

func (u *messagesUsage) update(usage *Usage) {
	for count, reported := range map[*int]*jsonCount{&usage.Input: u.Input, &usage.Output: u.Output,
		&usage.CacheRead: u.CacheRead, &usage.CacheWrite: u.CacheWrite} {
		if reported != nil {
			*count = int(*reported)
		}
	}
}

// messagesBlock is a content block: its members when it began, and what was appended to them.
type messagesBlock struct {
	members                              map[string]json.RawMessage
	text, thinking, signature, arguments strings.Builder
}

// newMessagesBlock checks the members that are read, and the type.
func newMessagesBlock(members map[string]json.RawMessage) (*messagesBlock, error) {
	b := &messagesBlock{members: members}
	for _, name := range []string{"type", "text", "thinking", "signature", "id", "name"} {
		var value jsonText
		if len(members[name]) == 0 {
			continue
		}
		var other *json.UnmarshalTypeError
		if err := json.Unmarshal(members[name], &value); errors.As(err, &other) {
			return nil, &misfitError{"content_block." + name, other.Value}
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
	}
	if b.member("type") == "" {
		return nil, fmt.Errorf("%w: a block has no type", errMalformed)
	}
	return b, nil
}

// member returns the initial value of a string member, or nothing.
func (b *messagesBlock) member(name string) string {
	var text jsonText
	_ = json.Unmarshal(b.members[name], &text) // newMessagesBlock has checked it
	return string(text)
}

// verbatim returns the whole block.
func (b *messagesBlock) verbatim() (json.RawMessage, error) {
	members := maps.Clone(b.members)
	for name, appended := range map[string]*strings.Builder{"text": &b.text, "thinking": &b.thinking,
		"signature": &b.signature} {
		if appended.Len() > 0 {
			text, err := json.Marshal(b.member(name) + appended.String())
			if err != nil {
				return nil, err
			}
			members[name] = text
		}
	}
	if input := b.arguments.String(); input != "" {
		members["input"] = json.RawMessage(input)
	}
	if input, ok := members["input"]; ok && !json.Valid(input) || !ok && b.member("type") == "server_tool_use" {
		members["input"] = json.RawMessage("{}") // the API requires it, and may leave it out itself
	}
	return json.Marshal(members)
}

// messagesAnswer assembles a response of the Messages API from its events.
type messagesAnswer struct {
	*exchange
	model, stop string
	// usage is the usage of this stream. earlier and resumed are the usage and the number of blocks of the streams
	// before, which ended in pauses.
	usage, earlier  Usage
	resumed, pauses int
	blocks          []*messagesBlock
	ended           bool
}

// pause returns the blocks so far if the stream ended in a pause. The next stream continues them, after a request that
// ends with them.
func (a *messagesAnswer) pause() []any {
	if !a.ended || a.stop != "pause_turn" || len(a.blocks) == a.resumed || a.pauses == maxPauses {
		return nil
	}
	parts, err := a.verbatim()
	blocks := a.withoutLostSearches(parts, maps.Clone(a.ids)) // the next pause has these blocks again
	if err != nil || len(blocks) == 0 {
		return nil
	}
	a.earlier, a.usage, a.ended = a.earlier.Add(a.usage.bounded()), Usage{}, false
	a.resumed, a.pauses = len(a.blocks), a.pauses+1
	return blocks
}

func (a *messagesAnswer) addEvent(data []byte) error {
	var event messagesEvent
	if err := decodeEvent(data, &event); err != nil {
		return err
	}
	switch event.Type {
	case "message_start":
		a.model = string(event.Message.Model)
		event.Message.Usage.update(&a.usage)
	case "message_delta":
		a.stop = string(event.Delta.StopReason)
		event.Usage.update(&a.usage)
	case "content_block_start":
		if event.Index != jsonCount(len(a.blocks)-a.resumed) {
			return fmt.Errorf("%w: block %d begins after %d blocks", errMalformed, event.Index, len(a.blocks)-a.resumed)
		}
		block, err := newMessagesBlock(event.ContentBlock)
		if err != nil {
			return err
		}
		a.blocks = append(a.blocks, block)
		if text := block.member("text"); text != "" || block.member("type") == toolUse {
			a.emit(text)
		}
	case "content_block_delta":
		current := a.blocks[a.resumed:]
		if event.Index < 0 || event.Index >= jsonCount(len(current)) {
			return fmt.Errorf("%w: block %d goes on, and there are %d", errMalformed, event.Index, len(current))
		}
		block := current[event.Index]
		block.text.WriteString(string(event.Delta.Text))
		block.thinking.WriteString(string(event.Delta.Thinking))
		block.signature.WriteString(string(event.Delta.Signature))
		block.arguments.WriteString(string(event.Delta.PartialJSON))
		if event.Delta.Text != "" {
			a.emit(string(event.Delta.Text))
		}
	case "message_stop":
		a.ended = true
	}
	return nil
}

func (a *messagesAnswer) response() (*Response, error) {
	if !a.ended {
		return nil, brokenOff(errors.New("no message_stop"))
	}
	r := &Response{Model: a.model, Stop: messagesStops[a.stop], Usage: a.earlier.Add(a.usage)}
	if r.Stop == "" {
		r.Stop = StopEnd
	}
	var text strings.Builder
	for _, block := range a.blocks {
		switch block.member("type") {
		case "text":
			text.WriteString(block.member("text") + block.text.String())
		case toolUse:
			r.Calls = append(r.Calls, a.call(block))
		}
	}
	r.Text = text.String()
	r.State = a.state()
	return r, nil
}

// messagesStops maps stop reasons. Others mean StopEnd.
var messagesStops = map[string]Stop{
	"tool_use": StopTools, "max_tokens": StopLength, "model_context_window_exceeded": StopLength,
	"refusal": StopRefusal,
}

func (a *messagesAnswer) call(block *messagesBlock) Call {
	arguments := block.arguments.String()
	if arguments == "" {
		arguments = string(block.members["input"])
	}
	return a.incoming(newCallID(), block.member("id"), block.member("name"), arguments)
}

// state returns the verbatim response if the model was thinking or searching: thinking blocks are signed, and both must
// be sent back in place.
func (a *messagesAnswer) state() *State {
	if !slices.ContainsFunc(a.blocks, func(block *messagesBlock) bool {
		kind := block.member("type")
		return kind != "text" && kind != toolUse
	}) {
		return nil
	}
	parts, err := a.verbatim()
	if err != nil {
		return nil
	}
	return &State{a.origin(), parts}
}

// verbatim returns the blocks but for blank text, which the API rejects.
func (a *messagesAnswer) verbatim() (parts []json.RawMessage, err error) {
	for _, block := range a.blocks {
		if block.member("type") == "text" && strings.TrimSpace(block.member("text")+block.text.String()) == "" {
			continue
		}
		part, err := block.verbatim()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func messagesFailure(status int, header http.Header, f apiError, cause error) *Error {
	kind, ok := messagesKinds[string(f.Type)]
	switch {
	case !ok && status == 0:
		kind = Unavailable
	case !ok:
		kind = kindOf(status)
	case kind == Invalid && tooLong(string(f.Message)):
		kind = ContextWindow
	case kind == Invalid && f.Message.contains("content filtering policy"):
		kind = Refused
	}
	e := newError(kind, status, header, cause)
	parameter := messagesParameter().FindString(string(f.Message))
	if f.Message.contains(deferLoading) || f.Message.contains(searchTool) {
		parameter = deferLoading
	}
	e.explain(string(f.Message), parameter)
	return e
}

// messagesKinds maps the API's error types (platform.claude.com/docs/en/api/errors).
var messagesKinds = map[string]Kind{
	"invalid_request_error": Invalid, "not_found_error": Invalid,
	"request_too_large":    ContextWindow,
	"authentication_error": Auth, "permission_error": Auth, "billing_error": Auth,
	"rate_limit_error": RateLimited, "overloaded_error": Overloaded,
	"api_error": Unavailable, "timeout_error": Unavailable,
}

// messagesParameter matches the parameter name at the start of an error message.
var messagesParameter = lazyregexp.New(`^[a-z_]+(\.[A-Za-z0-9_]+)*:`)
