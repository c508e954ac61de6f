package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/visible"
)

// Type is the kind of an event.
type Type string

// Types. Those of calls are MCP's methods.
const (
	TypeCall       Type = "tools/call"
	TypeResource   Type = "resources/read"
	TypePrompt     Type = "prompts/get"
	TypeCompletion Type = "completion/complete"
	TypeOperator   Type = "operator" // what an operator did: see Action

	TypeCheckpoint Type = "log/checkpoint" // signs the chain
	TypeRotated    Type = "log/rotated"    // the last record of a segment
	TypeRemoved    Type = "log/removed"    // an expired segment was removed
	TypeRecovered  Type = "log/recovered"  // an unfinished record was cut off
	TypeGap        Type = "log/gap"        // records are missing before this one
)

// own reports whether the log itself writes events of this type.
func (t Type) own() bool { return strings.HasPrefix(string(t), "log/") }

// Event is an event to record. Fields that do not apply are omitted from the log.
type Event struct {
	Time time.Time `json:"time"`
	Type Type      `json:"type"`
	// Outcome is the pipeline.Outcome of a call, or OutcomeBegun, OutcomeOK, ... of an operator's action.
	Outcome string `json:"outcome,omitempty"`

	Subject  Subject   `json:"subject,omitzero"`
	Target   Target    `json:"target,omitzero"`
	Decision *Decision `json:"decision,omitempty"`
	Approval *Approval `json:"approval,omitempty"`
	// Elicited lists the questions that a server asked during the call.
	Elicited []Elicited `json:"elicited,omitempty"`

	DurationMS  float64 `json:"duration_ms,omitempty"`
	InputBytes  int     `json:"input_bytes,omitempty"`
	OutputBytes int     `json:"output_bytes,omitempty"`
	// Arguments and Result are keyed digests, or the parts that the operator allows to be recorded.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	// OutputSummary describes the result without its content.
	OutputSummary *OutputSummary `json:"output_summary,omitempty"`
	// Findings are the kinds of secrets found, without the secrets.
	Findings []Finding `json:"findings,omitempty"`
	Error    string    `json:"error,omitempty"`
	Call     string    `json:"call,omitempty"` // the ID of the call
	// Parent is the ID of the call whose tool made this call, Via the plugin of that tool.
	Parent    string `json:"parent,omitempty"`
	Via       string `json:"via,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	// HTTPRequestID is the X-Request-Id of the HTTP request.
	HTTPRequestID string `json:"http_request_id,omitempty"`
	TraceID       string `json:"trace_id,omitempty"`

	// Action is an operator's action ("plugin.approve"), Detail its parameters.
	Action string            `json:"action,omitempty"`
	Detail map[string]string `json:"detail,omitempty"`

	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Removed    *Removed    `json:"removed,omitempty"`
	Gap        *Gap        `json:"gap,omitempty"`
	Bytes      int64       `json:"bytes,omitempty"`
}

// Subject is the caller.
type Subject struct {
	Frontend      string   `json:"frontend,omitempty"`
	Tenant        string   `json:"tenant,omitempty"`
	User          string   `json:"user,omitempty"`
	Token         string   `json:"token,omitempty"`  // the name of the credential
	Groups        []string `json:"groups,omitempty"` // those that the frontend knows
	Scopes        []string `json:"scopes,omitempty"` // of the token
	Session       string   `json:"session,omitempty"`
	Toolset       string   `json:"toolset,omitempty"` // what the caller is offered; empty is everything
	Address       string   `json:"address,omitempty"`
	ClientName    string   `json:"client_name,omitempty"`
	ClientVersion string   `json:"client_version,omitempty"`
}

// Target is the entry of the catalog that was called.
type Target struct {
	Plugin string `json:"plugin,omitempty"`
	Name   string `json:"name,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Decision is the policy's decision.
type Decision struct {
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"`
	// Policy identifies the policy that decided (policy.Policy.ID).
	Policy string `json:"policy,omitempty"`
}

// OutputSummary describes a result.
type OutputSummary struct {
	// Kind is "error", "object" (structured content), a type of MCP's content blocks ("text", "image" and so on),
	// "mixed" for several types, "contents" of a resource, "messages" of a prompt, "completion", or "empty".
	Kind string `json:"kind"`
	// Counts has the number of content blocks of each type, of "contents", "messages" or "values", and as "items" the
	// elements of lists in structured content.
	Counts map[string]int `json:"counts,omitempty"`
	Bytes  int            `json:"bytes"`
	// Text is the beginning of the text, if the operator wants it recorded.
	Text string `json:"text,omitempty"`
}

// Finding is a secret found in Place ("arguments", "results") and the Action taken ("report", "mask", "refuse").
type Finding struct {
	Rule   string `json:"rule"`
	Place  string `json:"place"`
	Action string `json:"action"`
}

// Approval is a person's answer.
type Approval struct {
	ID     string `json:"id"`
	By     string `json:"by,omitempty"`
	Answer string `json:"answer"`
}

// Elicited is a server's question to the caller: its mode ("form", "url") and outcome ("accept", "decline", "expired"
// and so on), without its content.
type Elicited struct {
	Mode    string `json:"mode,omitempty"`
	Outcome string `json:"outcome"`
}

// Checkpoint signs the chain before its own record.
type Checkpoint struct {
	Key       string `json:"key"`
	Signature []byte `json:"signature"`
}

// Removed names the last record of a removed segment.
type Removed struct {
	Segment string `json:"segment"`
	Seq     uint64 `json:"seq"`
	Hash    string `json:"hash"`
}

// Gap is the expected end of the log.
type Gap struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Entry is an event in the log.
type Entry struct {
	Seq  uint64 `json:"seq"`
	Prev string `json:"prev"`
	Event
}

// encode returns the event as JSON with hidden characters escaped.
func (e *Event) encode() ([]byte, error) {
	e.Time = e.Time.UTC()
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("audit: encode a record: %w", err)
	}
	body = []byte(visible.Escape(string(body)))
	if len(body) > maxRecord {
		return nil, fmt.Errorf("audit: a record of %d bytes is larger than the limit of %d: record fewer arguments",
			len(body), maxRecord)
	}
	return body, nil
}
