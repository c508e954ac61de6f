// Package pipeline takes every call from a frontend to the plugin or upstream server that serves it.
//
// Frontends make a Call and pass it to Pipeline.Call. The pipeline resolves the name in the catalog, validates the
// arguments, applies policy, approvals and quotas, calls the backend, and validates and scans the result. Every call,
// also a refused one, has one audit record, one span and one Record for the Observer. The parts between call and tool
// are set in Governance.
package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Frontends, in Caller.Frontend.
const (
	FrontendStdio    = "mcp-stdio"
	FrontendHTTP     = "mcp-http"
	FrontendTerminal = "terminal"
	FrontendSlack    = policy.FrontendSlack
	FrontendAgent    = "agent"
	FrontendConsole  = "console"
)

// Frontends lists all frontends.
var Frontends = []string{FrontendHTTP, FrontendStdio, FrontendTerminal, FrontendSlack, FrontendAgent, FrontendConsole}

// Caller identifies the person or program that makes a call.
type Caller struct {
	// Frontend is the frontend of the call, one of the constants above.
	Frontend string
	// Tenant and User are empty if the frontend does not know them. Session identifies the caller's session among those
	// of the frontend; it is not a secret.
	Tenant, User, Session string
	// Token is the name of the token with which the caller authenticated, Groups are the user's groups that the
	// frontend knows.
	Token  string
	Groups []string
	// Scopes are the scopes of the caller's token.
	Scopes []string
	// SessionSecret identifies the session for callers without a User, where Session is only a part of its ID. It is
	// not in records.
	SessionSecret string `json:"-"`
	// Email is the user's e-mail address, if the frontend has it from a source that verified it. Only the policy uses
	// it, to find the employee. It is not in records, logs, questions or arguments.
	Email string `json:"-"`
	// Channel is the ID of the Slack channel; empty for other frontends. Only the rules of toolsets use it.
	Channel string `json:"-"`
	// Toolset is the name of the toolset that the frontend has chosen. Empty means that of the rules; toolset.All is
	// everything. In records it is the one in force, or empty for everything.
	Toolset string
	// Operator reports whether the caller operates the host, at its own terminal.
	Operator bool
	// Client and ClientVersion are the client's own claims, Address is its address, RequestID and TraceID are its
	// identifiers of the call, HTTPRequestID identifies the HTTP request. They are only recorded.
	Client, ClientVersion, Address, RequestID, TraceID, HTTPRequestID string
	// Trace is the caller's span to which the call belongs. It is not trusted.
	Trace trace.Remote
	// Locale is the caller's language, a BCP 47 tag; empty means the host's.
	Locale string
}

// sessionID identifies the session among those of all callers of the tenant. It is empty if the frontend knows none.
// Standard input and the terminal have one caller per process.
func (c Caller) sessionID() string {
	if c.Session == "" && c.Frontend == FrontendHTTP {
		return ""
	}
	return identity.Key(c.Frontend, c.User, c.Session)
}

// owner identifies the caller for what the host keeps for it: the user with one token, or else the session.
func (c Caller) owner() string {
	session := ""
	if c.User == "" {
		session = cmp.Or(c.SessionSecret, c.Session)
	}
	return identity.Key(c.Frontend, c.Tenant, c.User, c.Token, session)
}

// Call is one request of a frontend.
type Call struct {
	Caller Caller
	// Request has Method and, depending on it, Name, Arguments, URI, Ref or Argument. Names are the catalog's.
	Request abi.Request
	// Progress receives reports during the call, one at a time. It may be nil.
	Progress func(abi.Progress)
	// Prompter asks people about the call. Its By is set from Caller.
	Prompter approval.Prompter
	// MaxResult limits the text of a tool's result that the caller takes at once, in bytes. A larger result is kept for
	// the caller, and the response has its beginning and a link; see results.Keeper. Zero means no limit.
	MaxResult int
	// Permitted, if not nil, is called when policy and approvals have permitted the call, before it is counted and has
	// any effect. It may wait until ctx ends. Its error ends the call.
	Permitted func(ctx context.Context) error

	// unattended reports whether nobody may be asked anything.
	unattended bool
	// unshaped reports whether the request has names and arguments of the catalog, whatever the caller is offered.
	unshaped bool
	// parent is the call whose tool makes this one, granted what that tool's plugin may call. Both are nil for calls of
	// frontends.
	parent  *composer
	granted broker.Granted
}

// via is the plugin whose tool makes the call, empty for calls of frontends.
func (c *Call) via() string {
	if c.parent == nil {
		return ""
	}
	return c.parent.served.subject.source.Name
}

// Outcome classifies results for metrics and logs. The set is fixed.
type Outcome string

// Outcomes.
const (
	OK               Outcome = "ok"
	ToolError        Outcome = "tool_error"        // the tool reported an error
	InvalidArguments Outcome = "invalid_arguments" // arguments do not match the input schema
	InvalidResult    Outcome = "invalid_result"    // the result does not match the output schema
	NotFound         Outcome = "not_found"         // no such tool, resource or prompt
	NotAllowed       Outcome = "not_allowed"       // policy or a person denied it
	Asked            Outcome = "asked"             // it is pending approval in a second call
	Timeout          Outcome = "timeout"           // the time limit
	CPU              Outcome = "cpu"               // the CPU limit
	Memory           Outcome = "memory"            // the memory limit
	Size             Outcome = "size"              // the input or output limit
	Busy             Outcome = "busy"              // the queue, the rate or the host's memory budget
	Trap             Outcome = "trap"              // the guest broke its contract
	Canceled         Outcome = "canceled"          // the caller canceled it
	Stopped          Outcome = "stopped"           // an operator stopped it
	Internal         Outcome = "internal"          // the host failed
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{
	OK, ToolError, InvalidArguments, InvalidResult, NotFound, NotAllowed, Asked, Timeout, CPU, Memory, Size, Busy, Trap,
	Canceled, Stopped, Internal,
}

// Result is the result of a Call.
type Result struct {
	Response *abi.Response
	Outcome  Outcome
	// Stack has the functions in which a guest stopped, a line for each: see catalog.StackError. It is for authors and
	// operators, not for models and clients.
	Stack string
}

// NotFoundError means that the catalog does not have the name. The request is wrong, not a tool.
type NotFoundError struct {
	// Kind is "tool", "prompt" or "resource".
	Kind, Name string
	// Hint names a substitute for a retired name, or says what else to do; it may be empty.
	Hint string
	// Near has names for which Name may stand, best first; the caller can use them.
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

// NotAllowedError means that the caller may not use what it requested, and how that can change.
type NotAllowedError struct {
	Name, Reason string
	// Rule is the policy's rule against the call. It is empty if the plugin is not available to anybody.
	Rule string
	// MissingScopes are the scopes that the caller's token lacks, if that is why.
	MissingScopes []string
	// approvalOutcome is the outcome of the approval question; empty if none was asked.
	approvalOutcome string
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%s is not allowed: %s", e.Name, e.Reason)
}

// InvalidError means that a request is invalid before any tool is involved, such as a prompt without a required
// argument.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }
