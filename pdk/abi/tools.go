package abi

import "encoding/json"

// ToolsModule belongs to the permission tools.
const ToolsModule = "hako:tools/1"

// ToolCall is the argument of "start" of ToolsModule.
type ToolCall struct {
	// Name is the tool's as the host offers it.
	Name string `json:"name"`
	// Arguments is an object. Empty means one without members.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// ToolEnd is the result of "wait": how a call has ended. Either Error is set or the rest; Handle always is, except in
// an error of "wait" itself.
type ToolEnd struct {
	Handle int32 `json:"handle,omitempty"`
	// Content and StructuredContent are the tool's result. Binary data is in ToolContent.Data.
	Content           []ToolContent   `json:"content,omitempty"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	Error             *Error          `json:"error,omitempty"`
}

// ToolContent is a content block of a tool's result.
type ToolContent struct {
	Content
	// Data is the binary data of an image, a sound or an embedded resource, in base64.
	Data []byte `json:"data,omitempty"`
}

// Codes of the Error of a ToolEnd, besides those of every Error. CodeNotFound says that there is no such tool, and
// CodeNotGranted that the plugin may not call other tools here.
const (
	CodeToolError = "tool-error"     // the tool says that it failed; the message is its text
	CodeDenied    = "denied"         // the policy or a person denies the call, or nobody can be asked
	CodeBadResult = "invalid-result" // the tool broke its contract: a trap, or a result that does not match its schema
)

// ToolQuery is the argument of "list" of ToolsModule.
type ToolQuery struct {
	// Query has words to look for. Empty means all tools, by name.
	Query string `json:"query,omitempty"`
	// Limit is the most tools to return. Zero means 100, which is also the most.
	Limit int `json:"limit,omitempty"`
}

// ToolList is the result of "list": what the plugin may call and its caller may use, the best first; or Error alone.
type ToolList struct {
	Tools []ListedTool `json:"tools"`
	// Total is the number of tools that match, of which Tools are the first.
	Total int    `json:"total"`
	Error *Error `json:"error,omitempty"`
}

// ListedTool describes a tool to a plugin. Texts are in the caller's language.
type ListedTool struct {
	Name         string          `json:"name"`
	Plugin       string          `json:"plugin"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// ReadOnly reports whether the tool changes nothing.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Declaration declares the tool as a function in TypeScript, with its description as a comment.
	Declaration string `json:"declaration,omitempty"`
}
