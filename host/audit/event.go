package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/visible"
)

// Type says what an event is.
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
	TypeRemoved    Type = "log/removed"    // a segment that was too old is gone
	TypeRecovered  Type = "log/recovered"  // an unfinished record was cut off
	TypeGap        Type = "log/gap"        // records are missing before this one
)

// own reports whether it is of the log's own records.
func (t Type) own() bool { return strings.HasPrefix(string(t), "log/") }

// Event is what is recorded. Fields that do not apply are left out of the log.
type Event struct {
	Time    time.Time `json:"time"`
	Type    Type      `json:"type"`
	Outcome string    `json:"outcome,omitempty"` // of a call: pipeline.Outcome; of an operator: "ok" or "failed"

	Subject  Subject   `json:"subject,omitzero"`
	Target   Target    `json:"target,omitzero"`
	Decision *Decision `json:"decision,omitempty"`
	Approval *Approval `json:"approval,omitempty"`
	// Elicited are the questions that a server asked during the call.
	Elicited []Elicited `json:"elicited,omitempty"`

	DurationMS  float64 `json:"duration_ms,omitempty"`
	InputBytes  int     `json:"input_bytes,omitempty"`
	OutputBytes int     `json:"output_bytes,omitempty"`
	// Arguments and Result are keyed digests, or what the operator allows to be recorded of them.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	// OutputSummary says what kind of answer it was, without its content.
	OutputSummary *OutputSummary `json:"output_summary,omitempty"`
	// Findings are the secrets that were found, never themselves.
	Findings  []Finding `json:"findings,omitempty"`
	Error     string    `json:"error,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
	TraceID   string    `json:"trace_id,omitempty"`

	// Action is what an operator did ("plugin.approve"), Detail what with.
	Action string            `json:"action,omitempty"`
	Detail map[string]string `json:"detail,omitempty"`

	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Removed    *Removed    `json:"removed,omitempty"`
	Gap        *Gap        `json:"gap,omitempty"`
	Bytes      int64       `json:"bytes,omitempty"`
}

// Subject is who asked.
type Subject struct {
	Frontend      string `json:"frontend,omitempty"`
	Tenant        string `json:"tenant,omitempty"`
	User          string `json:"user,omitempty"`
	Token         string `json:"token,omitempty"` // the name of the credential, never itself
	Session       string `json:"session,omitempty"`
	Address       string `json:"address,omitempty"`
	ClientName    string `json:"client_name,omitempty"`
	ClientVersion string `json:"client_version,omitempty"`
}

// Target is what was asked for.
type Target struct {
	Plugin string `json:"plugin,omitempty"`
	Name   string `json:"name,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Decision is what the policy said.
type Decision struct {
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"`
}

// OutputSummary describes an answer.
type OutputSummary struct {
	// Kind is "error", "object" (structured content), a type of MCP's content blocks ("text", "image" and so on),
	// "mixed" for several of them, "contents" of a resource, "messages" of a prompt, "completion", or "empty".
	Kind string `json:"kind"`
	// Counts are the content blocks of each type, "contents", "messages" or "values"; and "items", the elements of the
	// lists that are members of structured content.
	Counts map[string]int `json:"counts,omitempty"`
	Bytes  int            `json:"bytes"`
	// Text is the beginning of the text, where the operator wants it recorded.
	Text string `json:"text,omitempty"`
}

// Finding is what kind of secret was found where ("arguments", "results"), and what became of it ("report", "mask",
// "refuse").
type Finding struct {
	Rule   string `json:"rule"`
	Place  string `json:"place"`
	Action string `json:"action"`
}

// Approval is what a person said.
type Approval struct {
	ID     string `json:"id"`
	By     string `json:"by,omitempty"`
	Answer string `json:"answer"`
}

// Elicited is that a server asked the caller something, in which mode ("form", "url"), and how that ended ("accept",
// "decline", "expired" and so on): never what.
type Elicited struct {
	Mode    string `json:"mode,omitempty"`
	Outcome string `json:"outcome"`
}

// Checkpoint signs the chain up to and without its own record.
type Checkpoint struct {
	Key       string `json:"key"`
	Signature []byte `json:"signature"`
}

// Removed names the last record of a segment that was removed.
type Removed struct {
	Segment string `json:"segment"`
	Seq     uint64 `json:"seq"`
	Hash    string `json:"hash"`
}

// Gap is the end that the log should have had.
type Gap struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Entry is an event as it stands in the log.
type Entry struct {
	Seq  uint64 `json:"seq"`
	Prev string `json:"prev"`
	Event
}

// encode returns the event as JSON, in which hidden characters are escaped.
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
