// Package pipeline is the one way that every call takes, whichever door it comes through.
package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/internal/identity"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/host/secretscan"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Doors, in Caller.
const (
	DoorStdio    = "mcp-stdio"
	DoorHTTP     = "mcp-http"
	DoorTerminal = "terminal"
	DoorSlack    = policy.DoorSlack
	DoorAgent    = "agent"
	DoorConsole  = "console"
)

// Caller is who asks.
type Caller struct {
	// Door is where the call came in, one of the constants above.
	Door string
	// Tenant and User are empty where the door knows none. Session is the door's own name for the caller's session: it tells
	// sessions apart, and does not let who reads it in a log use one.
	Tenant, User, Session string
	// Token names the credential that the caller came with, Groups those that the door knows the user to be in.
	Token  string
	Groups []string
	// Operator says that the caller is somebody who operates the host, at its own terminal.
	Operator bool
	// Client and ClientVersion are what the client calls itself, Address where it is, RequestID and TraceID how it refers to the call.
	// They are for records alone.
	Client, ClientVersion, Address, RequestID, TraceID string
	// Trace is the span of the caller's that the call belongs to. What the caller says of it is checked where it is used.
	Trace trace.Remote
	// Locale is the caller's language, a BCP 47 tag; empty means the host's.
	Locale string
}

// sessionID is the session among those of all callers of the tenant, or empty if the door knows none. A process has one caller at its standard input
// and one at its terminal.
func (c Caller) sessionID() string {
	if c.Session == "" && c.Door == DoorHTTP {
		return ""
	}
	return identity.Key(c.Door, c.User, c.Session)
}

// Call is one request on its way.
type Call struct {
	Caller Caller
	// Request says what is asked: Method with Name, Arguments, URI, Ref or Argument. Name is the one at the doors.
	Request abi.Request
	// Progress receives reports during the call, one at a time. It may be nil.
	Progress func(abi.Progress)
	// Way is how people at the door can be asked about the call. Its By is the Caller.
	Way approval.Way
	// Permitted, if not nil, is called once policy and people have let the call through, right before it is counted and runs: up to
	// then it has no effect. It may wait until ctx ends. Its error ends the call.
	Permitted func(ctx context.Context) error
}

// Outcome sorts results for metrics and logs. The set is fixed.
type Outcome string

// Outcomes.
const (
	OK               Outcome = "ok"
	ToolError        Outcome = "tool_error"        // the tool says it failed
	InvalidArguments Outcome = "invalid_arguments" // they do not match the input schema
	InvalidResult    Outcome = "invalid_result"    // it does not match the output schema, or is no response at all
	NotFound         Outcome = "not_found"         // no such tool, resource or prompt
	NotAllowed       Outcome = "not_allowed"       // it exists, but the caller may not use it, or a person said no
	Asked            Outcome = "asked"             // it waits for an approval that comes with a second call
	Timeout          Outcome = "timeout"           // the time limit
	CPU              Outcome = "cpu"               // the limit of computing
	Memory           Outcome = "memory"            // the memory limit
	Size             Outcome = "size"              // the input or output limit
	Busy             Outcome = "busy"              // the queue, the rate or the host's memory budget
	Trap             Outcome = "trap"              // the guest broke
	Canceled         Outcome = "canceled"          // the caller went away
	Internal         Outcome = "internal"          // the host failed
)

// Outcomes lists them all.
var Outcomes = []Outcome{
	OK, ToolError, InvalidArguments, InvalidResult, NotFound, NotAllowed, Asked, Timeout, CPU, Memory, Size, Busy, Trap, Canceled, Internal,
}

// Result is the answer to a Call.
type Result struct {
	Response *abi.Response
	Outcome  Outcome
}

// Record is what is known of a call when it has ended.
type Record struct {
	Caller Caller
	// Method is MCP's ("tools/call"). Name and Source are the catalog's, empty if the name is not in it.
	Method, Name, Source string
	Outcome              Outcome
	Started              time.Time
	Duration             time.Duration
	// Input and Output are the sizes of arguments and result, in bytes.
	Input, Output int
	// Steps is what the guest computed.
	Steps int64
	// Action and Rule are the policy's decision, empty if none was made. Question is the approval that it wanted, Approver who gave or refused it.
	Action             policy.Action
	Rule               string
	Question, Approver string
	// Answers are what became of each question that the call asked.
	Answers []Answer
	// Elicited are what became of each question that a server asked during the call.
	Elicited []Elicited
	// Quota is the one that was used up; empty if none was.
	Quota string
	// Digest is that of the plugin. Findings are the secrets that were found, each rule once for each place.
	Digest   string
	Findings []secretscan.Finding
	// TraceID is the trace that the call belongs to: the host's, or else the one that the caller named. It may be empty.
	TraceID string
}

// Answer is what became of a question to people.
type Answer struct {
	// Outcome is one of approval.Outcomes.
	Outcome string
	// Waited is how long the question waited for it. It is zero if nobody was asked, or if the answer is still to come.
	Waited time.Duration
}

// Observer sees every call, refused ones included. Its methods are called concurrently and must be quick.
type Observer interface {
	CallStarted(method string)
	CallEnded(Record)
}

// NotFoundError says that nothing in the catalog has the name. It is a fault of the request, not of a tool.
type NotFoundError struct {
	// Kind is "tool", "prompt" or "resource".
	Kind, Name string
	// Hint says what to use instead of a name that a plugin has retired, or what else to do; it may be empty.
	Hint string
	// Near are names on offer to the caller that Name may stand for, the nearest first.
	Near []string
}

func (e *NotFoundError) Error() string {
	if e.Hint != "" {
		return fmt.Sprintf("unknown %s %q: %s", e.Kind, e.Name, e.Hint)
	}
	if len(e.Near) > 0 {
		return fmt.Sprintf("unknown %s %q: did you mean %s?", e.Kind, e.Name, strings.Join(e.Near, " or "))
	}
	return fmt.Sprintf("unknown %s %q", e.Kind, e.Name)
}

// NotAllowedError says that the caller may not use what it asked for, and how that can change.
type NotAllowedError struct {
	Name, Reason string
	// Rule is the policy's that stands against the call. It is empty where the plugin is not allowed to anybody.
	Rule string
	// answered is what became of the question to a person; empty if none was asked.
	answered string
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%s is not allowed: %s", e.Name, e.Reason)
}

// InvalidError says that a request breaks a rule before any tool is involved, for example a prompt without a required argument.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }
