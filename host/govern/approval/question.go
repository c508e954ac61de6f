package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/manifest"
)

// Caller identifies the maker of a call.
type Caller struct {
	Frontend string `json:"frontend,omitempty"`
	Tenant   string `json:"tenant,omitempty"`
	User     string `json:"user,omitempty"`
	Session  string `json:"session,omitempty"`
}

// Question is a question about a call.
type Question struct {
	// ID is set by Ask. It is not a secret: answers are authorized.
	ID     string `json:"id"`
	Caller Caller `json:"caller"`
	// Tool is the tool's name in the catalog, Plugin its source. Title and About are its title and a sentence about it.
	Tool   string        `json:"tool"`
	Plugin string        `json:"plugin"`
	Title  manifest.Text `json:"titles,omitempty"`
	About  manifest.Text `json:"about,omitempty"`
	// Arguments is the JSON object of the call, with secrets masked.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Detail is an operation within the call, such as a command.
	Detail string `json:"detail,omitempty"`
	// Hidden is a digest of Arguments and Detail before Hide.
	Hidden string `json:"hidden,omitempty"`
	// Replaces compares an argument with the value that the call would replace. Nil means that the tool does not say.
	Replaces *Replacement `json:"replaces,omitempty"`
	// Client is the name and the version of the caller's client, as it says itself.
	Client string `json:"client,omitempty"`
	// Via is the tool that makes the call, empty for a call of the caller's client.
	Via string `json:"via,omitempty"`
	// Rule and Reason are the policy's.
	Rule   string        `json:"rule"`
	Reason manifest.Text `json:"reasons,omitempty"`
	// Destructive and OpenWorld are the tool's hints.
	Destructive bool `json:"destructive,omitempty"`
	OpenWorld   bool `json:"openWorld,omitempty"`
	// Approvers may answer. If it is zero, the caller may.
	Approvers policy.People `json:"approvers,omitzero"`
	// Remember is the time for which a yes covers the same call again. Zero covers one call.
	Remember time.Duration `json:"remember,omitempty"`
	// Asked and Expires are set by Ask.
	Asked   time.Time `json:"asked"`
	Expires time.Time `json:"expires"`
}

// Binding is a digest of everything for which a yes holds: the caller in its session, the tool and its arguments.
func (q *Question) Binding() string {
	hash := sha256.New()
	// Encoding plain data cannot fail. A JSON array separates the parts.
	_ = json.NewEncoder(hash).Encode([]any{q.Caller, q.Plugin, q.Tool, q.Detail, canonical(q.Arguments), q.Hidden,
		q.Via})
	return hex.EncodeToString(hash.Sum(nil))
}

// Hide replaces arguments and detail by versions with masked secrets. A yes still holds for the original ones.
func (q *Question) Hide(arguments json.RawMessage, detail string) {
	if detail == q.Detail && bytes.Equal(arguments, q.Arguments) {
		return
	}
	q.Hidden = q.Binding()
	q.Arguments, q.Detail = arguments, detail
}

// canonical encodes equal arguments equally, whatever the order of their keys. Numbers stay as written.
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
