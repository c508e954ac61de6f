package llm

import (
	"context"
	"encoding/json"
	"math"
	"time"
)

// Request is a conversation for a model to complete.
type Request struct {
	// System has the operator's instructions, or is empty.
	System string
	// Messages begin and end with a user message. Interrupted conversations are repaired before sending: blank messages
	// are removed, and a call without a result gets one that says so.
	Messages []Message
	Tools    []Tool
	// NoTools forces a text response. Tools are still sent, because the messages may contain calls of them.
	NoTools bool
	// MaxTokens bounds the response. Zero means Spec.MaxTokens.
	MaxTokens int
	// Temperature is the provider's default if nil. It is not sent to models that reject it.
	Temperature *float64
	// Cache reports whether the next request will have this one as its prefix, so that the provider should cache the
	// prompt.
	Cache bool
	// Retrying, if not nil, is called before the request is sent again, to the same model or to another one.
	Retrying func(Retry)
}

// Retry describes how a request goes on that failed.
type Retry struct {
	// Model is the Spec.Name of the model that is asked next, after Pause.
	Model string
	Pause time.Duration
}

func (r *Request) retrying(retry Retry) {
	if r.Retrying != nil {
		r.Retrying(retry)
	}
}

// Delta is a part of the text of a streamed response.
type Delta struct {
	// Text is appended to the response's text.
	Text string
}

// Stop is why a response ends.
type Stop string

// Reasons to stop.
const (
	StopEnd      Stop = "end"      // the response is complete
	StopTools    Stop = "tools"    // the model waits for the results of Response.Calls
	StopLength   Stop = "length"   // the response reached MaxTokens or the context window; the last of Calls is Invalid
	StopRefusal  Stop = "refusal"  // the model refused; Text may say why
	StopFiltered Stop = "filtered" // the provider's content filter cut the response off
)

// Usage counts tokens. Counts that the provider does not report are zero.
type Usage struct {
	// Input counts prompt tokens, without CacheRead and CacheWrite.
	Input int
	// Output counts generated tokens, thinking included.
	Output int
	// CacheRead counts prompt tokens read from the provider's cache, CacheWrite those written to it.
	CacheRead, CacheWrite int
}

// Total is the sum of all tokens.
func (u Usage) Total() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Add returns the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// bounded returns u with counts that a response can have. Providers may report any numbers, and metrics and budgets add
// them up.
func (u Usage) bounded() Usage {
	for _, count := range []*int{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite} {
		*count = min(max(0, *count), math.MaxInt32)
	}
	return u
}

// Response is a model's response.
type Response struct {
	Text  string
	Calls []Call
	Stop  Stop
	// Name is the Spec.Name of the model that answered. Model is the model name reported by its provider.
	Name, Model string
	Usage       Usage
	// Cost is the price of Usage by Spec.Prices, in their currency.
	Cost float64
	// State belongs into the Message made from the response. It may be nil.
	State *State
}

// Message returns the response as a message of the conversation.
func (r *Response) Message() Message {
	return Message{Role: RoleAssistant, Text: r.Text, Calls: r.Calls, State: r.State}
}

// State is a response in the provider's own form, with signed or encrypted thinking. Providers require it back together
// with the results of the response's calls. It is opaque, need not outlive a turn, and is ignored by other models.
type State struct {
	origin
	parts []json.RawMessage
}

// Provider completes conversations. It is safe for concurrent use.
type Provider interface {
	// Name identifies the provider in logs and metrics.
	Name() string
	// Complete sends the conversation to the model. stream, if not nil, is called with the parts of the response's text in
	// order, before Complete returns; the Response has all of them as well. The Request is neither changed nor
	// retained.
	//
	// The error is ctx's, or an *Error that matches its Kind with errors.Is. A request whose response broke off is
	// retried, unless stream received a part of that.
	Complete(ctx context.Context, r *Request, stream func(Delta)) (*Response, error)
}
