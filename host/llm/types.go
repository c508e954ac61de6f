package llm

import (
	"context"
	"encoding/json"
)

// Role says who speaks.
type Role string

// The roles. What the operator says is Request.System.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one turn of a conversation. The model's has Text, Calls or both; a user's has Text, Images, or the Results of all calls
// of the message before it. Messages of one role may follow one another.
type Message struct {
	Role    Role
	Text    string
	Calls   []Call
	Results []Result
	// Images of a user's message go to the model where it takes images; elsewhere a line of text says that they were left out.
	Images []Image
	// State is Response.State of the model's message, or nil.
	State *State
}

// Call is a tool call that the model asks for.
type Call struct {
	// ID tells the calls of a conversation apart. It is never empty.
	ID string
	// Name is that of a Request's Tool, or what the model invented.
	Name string
	// Arguments is a JSON object. If Invalid is set it is "{}".
	Arguments json.RawMessage
	// Invalid is why what the model wrote is no JSON object, in words to answer it with as a Result with IsError. Such a call must
	// not run.
	Invalid string
}

// Result is what came of a Call.
type Result struct {
	CallID  string
	Text    string
	IsError bool
	// Images go to the model only where its provider takes images in results; elsewhere a line of text says that they were left out.
	Images []Image
}

// Image is a picture for the model.
type Image struct {
	// MIMEType is image/png, image/jpeg, image/gif or image/webp. Others are left out.
	MIMEType string
	Data     []byte
}

// Tool is what the model may call.
type Tool struct {
	// Name is of any form: what a provider does not accept is mapped on the way there and back.
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object. What a provider does not accept in it is rewritten or left out, so
	// arguments have to be checked against the original.
	Schema json.RawMessage
}

// Request is what a model is to answer.
type Request struct {
	// System is the operator's instruction, or empty.
	System string
	// Messages begin and end with one of the user's. What an interruption left is mended on the way: blank messages are left out, and
	// a call without a result gets one that says so.
	Messages []Message
	Tools    []Tool
	// NoTools forces a text answer. Tools are sent all the same, since the messages may show their use.
	NoTools bool
	// MaxTokens bounds the answer. Zero means Spec.MaxTokens.
	MaxTokens int
	// Temperature is left to the model if nil. It is not sent to models that take none.
	Temperature *float64
	// Cache says that the next request will begin as this one does, so that the provider should keep what it has read.
	Cache bool
}

// Delta is a part of an answer as it comes: one of the fields is set.
type Delta struct {
	// Text continues the answer's text.
	Text string
	// Call is one that the model has begun to ask for, with ID and Name only. Response.Calls has it whole.
	Call *Call
}

// Stop is why an answer ends.
type Stop string

// Reasons to stop.
const (
	StopEnd      Stop = "end"      // the answer is whole
	StopTools    Stop = "tools"    // the model waits for the results of Response.Calls
	StopLength   Stop = "length"   // the answer reached MaxTokens or the model's window; the last of Calls is Invalid
	StopRefusal  Stop = "refusal"  // the model refuses; Text may say why
	StopFiltered Stop = "filtered" // the provider's content filter cut the answer off
)

// Usage counts tokens. Where the provider does not say, it is zero.
type Usage struct {
	// Input are those read in full, without CacheRead and CacheWrite.
	Input int
	// Output are those written, with what the model thought.
	Output int
	// CacheRead were kept from an earlier request, CacheWrite are kept for a later one.
	CacheRead, CacheWrite int
}

// Total is all tokens, read and written.
func (u Usage) Total() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Response is a model's answer.
type Response struct {
	Text  string
	Calls []Call
	Stop  Stop
	// Provider is Spec.Name of the one that answered, Model what it says to have used.
	Provider, Model string
	Usage           Usage
	// Cost is that of Usage by Spec.Prices, in their currency.
	Cost float64
	// State is to go into the Message made of the answer, or nil.
	State *State
}

// Message is the answer as a part of the conversation.
func (r *Response) Message() Message {
	return Message{Role: RoleAssistant, Text: r.Text, Calls: r.Calls, State: r.State}
}

// State is what a provider wants to see again with its message while its calls are answered: what the model thought, signed or
// encrypted. It is opaque, need not outlive a turn, and is ignored by other providers and models.
type State struct {
	provider, model string
	parts           []json.RawMessage
}

// Provider completes conversations. It is safe for concurrent use.
type Provider interface {
	// Name is what logs and metrics call it.
	Name() string
	// Complete asks the model. stream, if not nil, is told of the answer as it comes, in order, before Complete returns; all that
	// it was told is in the Response as well. The Request is not changed and not kept.
	//
	// The error is ctx's, or an *Error whose Kind errors.Is finds. If stream was told some text before the error, that text is all
	// there will be: a request is never repeated once a part of its answer has been shown.
	Complete(ctx context.Context, r *Request, stream func(Delta)) (*Response, error)
}
