package llm

import (
	"encoding/json"
)

// Role is the author of a message.
type Role string

// Roles. The operator's instructions are in Request.System.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one message of a conversation. An assistant message has Text, Calls or both. A user message has Text,
// Images, or the Results of all calls of the message before it. Messages of one role may follow one another.
type Message struct {
	Role    Role
	Text    string
	Calls   []Call
	Results []Result
	// Images of a user message are sent to models that accept images. For others a line of text says that they were
	// omitted.
	Images []Image
	// State is Response.State of the model's message, or nil.
	State *State
}

// Call is a tool call requested by the model.
type Call struct {
	// ID identifies the call in its conversation. It is never empty and never the model's: models repeat IDs and leave
	// them out. The model is sent the ID that it gave the call, where its provider accepts that.
	ID string
	// Name is the name of a Tool of the Request, or one that the model made up.
	Name string
	// Arguments is a JSON object. If Invalid is set it is "{}".
	Arguments json.RawMessage
	// Invalid, if set, says why the model's arguments are not a JSON object. Such a call must not run: answer it with a
	// Result that has this text and IsError.
	Invalid string

	given modelID
}

// Result is the outcome of a Call.
type Result struct {
	CallID  string
	Text    string
	IsError bool
	// Images are sent to providers that accept images in results. For others a line of text says that they were
	// omitted.
	Images []Image
}

// Image is an image for the model.
type Image struct {
	// MIMEType is image/png, image/jpeg, image/gif or image/webp. Images of other types are omitted.
	MIMEType string
	Data     []byte
}

// Tool is a tool that the model may call.
type Tool struct {
	// Name may be any string: names that a provider does not accept are mapped in requests and mapped back in calls.
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object. Keywords that a provider does not accept are rewritten or
	// removed, so callers have to validate arguments against the original. Names of properties are sent as they are:
	// toolschema.Listed has those that all providers accept.
	Schema json.RawMessage
	// Deferred reports whether the model reads the definition only when it has searched for it. Such a tool is sent
	// only to models whose provider has that search (Spec.DeferTools), and a tool that Finds only to the others.
	Deferred bool
	// Finds reports whether the tool is for finding or calling the deferred ones.
	Finds bool
	// Group names what the tool belongs to, such as its plugin. A model may be shown the groups of deferred tools.
	Group string
}
