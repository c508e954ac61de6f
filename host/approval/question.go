package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/hako-run/hako/host/policy"
)

// Caller is who made a call.
type Caller struct {
	Door    string `json:"door,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	User    string `json:"user,omitempty"`
	Session string `json:"session,omitempty"`
}

// Question is what people are asked.
type Question struct {
	// ID is set by Ask. It is no secret: who may answer is checked.
	ID     string `json:"id"`
	Caller Caller `json:"caller"`
	// Tool is the name at the doors, Plugin who serves it, Title its title in the caller's language.
	Tool   string `json:"tool"`
	Plugin string `json:"plugin"`
	Title  string `json:"title,omitempty"`
	// Arguments is the JSON object of the call, as it may be shown.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Detail is what is asked about within the call, such as a command.
	Detail string `json:"detail,omitempty"`
	// Hidden is a digest of Arguments and Detail as they were before Hide.
	Hidden string `json:"hidden,omitempty"`
	// Rule and Reason are the policy's.
	Rule   string `json:"rule"`
	Reason string `json:"reason,omitempty"`
	// Destructive and OpenWorld are the tool's hints.
	Destructive bool `json:"destructive,omitempty"`
	OpenWorld   bool `json:"openWorld,omitempty"`
	// Approvers may answer. Nobody means the caller.
	Approvers policy.People `json:"approvers,omitzero"`
	// Remember is for how long a yes holds for the same call. Zero means once.
	Remember time.Duration `json:"remember,omitempty"`
	// Asked and Expires are set by Ask.
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
}

// binding is what a yes holds for: the caller in its session, the tool and its arguments.
func (q *Question) binding() string {
	hash := sha256.New()
	// The parts are plain data, so encoding them cannot fail. A JSON array keeps them apart.
	_ = json.NewEncoder(hash).Encode([]any{q.Caller, q.Plugin, q.Tool, q.Detail, canonical(q.Arguments), q.Hidden})
	return hex.EncodeToString(hash.Sum(nil))
}

// Hide shows arguments and detail, in which secrets are masked, in the place of those of the call. A yes holds for the call's all the same.
func (q *Question) Hide(arguments json.RawMessage, detail string) {
	if detail == q.Detail && bytes.Equal(arguments, q.Arguments) {
		return
	}
	q.Hidden = q.binding()
	q.Arguments, q.Detail = arguments, detail
}

// canonical makes equal arguments equal, whatever the order of their keys. Numbers stay as they were written.
func canonical(arguments json.RawMessage) json.RawMessage {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return arguments
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return arguments
	}
	return encoded
}
