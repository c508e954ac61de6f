package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/internal/strictjson"
)

// MaxBatch is the most messages of a JSON-RPC batch.
const MaxBatch = 100

// Texts for invalid messages.
const (
	NoBatches = "The body is a JSON-RPC batch, which MCP has up to version 2025-03-26 only: " +
		"send each message in a request of its own."
	NoMessage = "is not a JSON-RPC 2.0 message: a message is an object with 'jsonrpc': '2.0' " +
		"and either a method, or an id and a result or an error, nested 1,000 deep at most; " +
		"an id is text or an integer of at most 53 bits"
)

// TrimMark returns a JSON text without a byte order mark, which some clients on Windows write (RFC 8259, 8.1).
func TrimMark(raw []byte) []byte { return bytes.TrimPrefix(raw, []byte("\ufeff")) }

// ErrID means that the ID of a message could not be repeated in the response as it came.
var ErrID = errors.New("has an id that is a fraction, or an integer of more than 53 bits, which JSON decoders change: " +
	"send it as text, in quotes, or send a smaller integer")

// DecodeMessage decodes a JSON-RPC message. It refuses numbers as IDs that the SDK would change: fractions, and
// integers that a float64 does not hold.
func DecodeMessage(raw []byte) (jsonrpc.Message, error) {
	message, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, err
	}
	var id jsonrpc.ID
	switch message := message.(type) {
	case *jsonrpc.Request:
		id = message.ID
	case *jsonrpc.Response:
		id = message.ID
	}
	if _, isNumber := id.Raw().(int64); isNumber && IDOf(raw) != id {
		return nil, ErrID
	}
	return message, nil
}

// Describe says what is wrong with a message that DecodeMessage refuses, after a subject.
func Describe(err error) string {
	if errors.Is(err, ErrID) {
		return err.Error()
	}
	return NoMessage
}

// Body is the decoded body of a POST request.
type Body struct {
	// Raw is the body as it came, without a byte order mark.
	Raw []byte
	// Call is the body's one message if that is a tools/call in its usual form; then Messages is nil.
	Call *Call
	// Messages are the message, or those of a batch.
	Messages []jsonrpc.Message
	Batch    bool
	// Wrong is the error in the method of the message, or of one in the batch; nil if there is none.
	Wrong *Refusal
	// Ignored: the message is a notification that the server does not know.
	Ignored bool
}

// Refusal is the reason for refusing a message, with the message's ID if it has one.
type Refusal struct {
	ID   jsonrpc.ID
	Code int64
	Text string
}

// Decode reads a body. It returns a Refusal if the body is neither a JSON-RPC message nor a batch.
func Decode(raw []byte) (*Body, *Refusal) {
	raw = TrimMark(raw)
	body := &Body{Raw: raw}
	if call, ok := parseCall(raw); ok {
		body.Call = call
		return body, nil
	}
	if err := strictjson.Check(raw); err != nil {
		return nil, &Refusal{Code: jsonrpc.CodeParseError, Text: "The message is not valid JSON: " + err.Error() + "."}
	}
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("[")) {
		body.Batch = true
		if reason := body.decodeBatch(); reason != "" {
			return nil, &Refusal{Code: jsonrpc.CodeInvalidRequest,
				Text: "The batch is rejected, and none of its messages were processed: " + reason + "."}
		}
		return body, nil
	}
	message, err := DecodeMessage(raw)
	if err != nil {
		return nil, &Refusal{IDOf(raw), jsonrpc.CodeInvalidRequest, "The body " + Describe(err) + "."}
	}
	body.Messages = []jsonrpc.Message{message}
	body.Wrong = checkMethod(message)
	if request, ok := message.(*jsonrpc.Request); ok {
		body.Ignored = !request.IsCall() && kinds[request.Method] == 0
	}
	return body, nil
}

// decodeBatch decodes the messages of a batch, or returns what is wrong with it.
func (b *Body) decodeBatch() (reason string) {
	ids := map[jsonrpc.ID]bool{}
	batch := jsontext.NewDecoder(bytes.NewBuffer(b.Raw), jsontext.AllowInvalidUTF8(true))
	_, _ = batch.ReadToken() // its bracket: strictjson has read all of it
	for batch.PeekKind() != ']' {
		if len(b.Messages) == MaxBatch {
			return fmt.Sprintf("it has more than %d messages: send fewer at once", MaxBatch)
		}
		data, err := batch.ReadValue()
		if err != nil {
			return err.Error()
		}
		message, err := DecodeMessage(data)
		number := len(b.Messages) + 1
		if err != nil {
			return fmt.Sprintf("part %d %s", number, Describe(err))
		}
		b.Messages = append(b.Messages, message)
		if wrong := checkMethod(message); wrong != nil && b.Wrong == nil {
			b.Wrong = &Refusal{Code: wrong.Code, Text: fmt.Sprintf(
				"The batch is rejected, and none of its messages were processed: part %d: %s.", number, wrong.Text)}
		}
		request, ok := message.(*jsonrpc.Request)
		if !ok || !request.IsCall() {
			continue
		}
		switch {
		case ids[request.ID]:
			return fmt.Sprintf("the id of part %d is that of an earlier one: give each request its own", number)
		case request.Method == "initialize" || request.Method == MethodListen:
			return fmt.Sprintf("part %d is %q, which must be sent alone", number, request.Method)
		}
		ids[request.ID] = true
	}
	if len(b.Messages) == 0 {
		return "it is empty"
	}
	return ""
}

// Size returns the number of messages, and of requests among them.
func (b *Body) Size() (messages, requests int) {
	if b.Call != nil {
		return 1, 1
	}
	return len(b.Messages), len(b.Requests())
}

// Requests returns the requests among the messages.
func (b *Body) Requests() (requests []*jsonrpc.Request) {
	for _, message := range b.Messages {
		if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
			requests = append(requests, request)
		}
	}
	return requests
}

// Method returns the method of the message, or empty for a response and for a batch.
func (b *Body) Method() string {
	if b.Call != nil {
		return methodCallTool
	}
	if request := b.single(); request != nil {
		return request.Method
	}
	return ""
}

// ID returns the ID of the message, if it has one.
func (b *Body) ID() jsonrpc.ID {
	if b.Call != nil {
		return b.Call.ID
	}
	if b.Batch {
		return jsonrpc.ID{}
	}
	switch message := b.Messages[0].(type) {
	case *jsonrpc.Request:
		return message.ID
	case *jsonrpc.Response:
		return message.ID
	}
	return jsonrpc.ID{}
}

// RequestState returns the requestState of the message, or empty.
func (b *Body) RequestState() string {
	if b.Call != nil {
		return b.Call.RequestState
	}
	request := b.single()
	if request == nil || !bytes.Contains(request.Params, []byte(`"requestState"`)) {
		return ""
	}
	return textOf(membersOf(request.Params)["requestState"])
}

// single returns the message if it is one request or notification, or nil.
func (b *Body) single() *jsonrpc.Request {
	if b.Batch || len(b.Messages) != 1 {
		return nil
	}
	request, _ := b.Messages[0].(*jsonrpc.Request)
	return request
}

// membersOf returns the members of an object by their exact names; decoding into a struct would ignore case. It returns
// nil if value is not an object.
func membersOf(value json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	return members
}

// textOf returns the text of a JSON string, or empty.
func textOf(value json.RawMessage) (text string) {
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// Decoded returns the messages; it decodes a Call for the SDK.
func (b *Body) Decoded() ([]jsonrpc.Message, error) {
	if b.Call == nil {
		return b.Messages, nil
	}
	message, err := jsonrpc.DecodeMessage(b.Raw)
	return []jsonrpc.Message{message}, err
}

// maxInteger is the largest integer that every JSON decoder keeps.
const maxInteger = 1<<53 - 1

// IDOf returns the ID of a value that may not be a message. It is empty for a number that is no integer, or too large.
func IDOf(raw []byte) jsonrpc.ID {
	var envelope struct {
		ID any `json:"id"`
	}
	if strictjson.Unmarshal(raw, &envelope) != nil {
		return jsonrpc.ID{}
	}
	if number, ok := envelope.ID.(float64); ok && (number != math.Trunc(number) || math.Abs(number) > maxInteger) {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(envelope.ID)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}
