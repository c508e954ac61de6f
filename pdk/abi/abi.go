// Package abi defines the JSON that host and guest exchange in ABI 1: Request and Response, and the heads of HTTP
// requests, commands and SQL statements.
//
// Host and Go PDK share these definitions. docs/abi.md describes the functions that carry the JSON and is the reference
// for other languages. All JSON names are lowerCamelCase.
package abi

import (
	"encoding/json"
	"fmt"
)

// Version is the ABI that this package describes.
const Version = 1

// Names that a guest exports.
const (
	// Marker is an exported function whose presence says that the guest uses ABI 1. It is never called.
	Marker = "hako_abi_1"
	// MarkerPrefix starts the marker of every ABI version.
	MarkerPrefix = "hako_abi_"
	// Entry is the exported function that serves a request: (length i32) -> i32.
	Entry = "hako_call"
)

// CoreModule is the import module that every guest may import. Each of the others belongs to a permission.
const CoreModule = "hako:core/1"

// Custom sections of a plugin file.
const (
	// ManifestSection holds the manifest, as YAML.
	ManifestSection = "hako:manifest"
	// RecordingsSection holds HTTP recordings for replay (MOCK_MODE), as JSON.
	RecordingsSection = "hako:recordings"
)

// Methods of a Request.
const (
	CallTool     = "tools/call"
	ReadResource = "resources/read"
	GetPrompt    = "prompts/get"
	Complete     = "completion/complete"
	// ListHandlers lists the handlers of the guest, for comparison with its manifest. Guests need not support it.
	ListHandlers = "hako/handlers"
)

// Request is the argument of the entry point. Fields that do not belong to Method are absent.
type Request struct {
	Method string `json:"method"`
	// Name is the tool or prompt.
	Name string `json:"name,omitempty"`
	// Arguments are the tool's arguments, which match its input schema, or the prompt's, all strings.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// URI is the resource to read.
	URI string `json:"uri,omitempty"`
	// Template is the resource template that matched URI, and Variables the values of its expressions.
	Template  string            `json:"template,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
	// Ref and Argument say what to complete.
	Ref      *Ref      `json:"ref,omitempty"`
	Argument *Argument `json:"argument,omitempty"`
	// Config is the plugin's configuration with defaults filled in. It contains no secrets.
	Config json.RawMessage `json:"config,omitempty"`
	// Roots holds where the plugin's mounts are, if its manifest asks for roots: an object of the guest's paths by the
	// host's, such as {"/srv/docs":"/docs"}.
	Roots json.RawMessage `json:"roots,omitempty"`
	// Locale is the caller's language, a BCP 47 tag such as "ja"; empty if unknown.
	Locale string `json:"locale,omitempty"`
	// DeadlineMS is the time left for the call, in milliseconds.
	DeadlineMS int64 `json:"deadlineMs,omitempty"`
}

// Progress is a progress report. Total is 0 if unknown.
type Progress struct {
	Progress, Total float64
	Message         string
}

// Ref is the target of a completion: a prompt (Type "ref/prompt", Name) or a resource template (Type "ref/resource",
// URI).
type Ref struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// Argument is the argument to complete. Resolved has the arguments already given.
type Argument struct {
	Name     string            `json:"name"`
	Value    string            `json:"value"`
	Resolved map[string]string `json:"resolved,omitempty"`
}

// Response is the response to a Request. The fields used depend on the method; Error may stand alone.
type Response struct {
	// Tool results.
	Content           []Content       `json:"content,omitempty"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	// StructuredText are further members of StructuredContent; see FillStructured.
	StructuredText []TextMember `json:"structuredText,omitempty"`
	IsError        bool         `json:"isError,omitempty"`
	// Resources.
	Contents []ResourceContents `json:"contents,omitempty"`
	// Prompts.
	Description string          `json:"description,omitempty"`
	Messages    []PromptMessage `json:"messages,omitempty"`
	// Completion.
	Completion *Completion `json:"completion,omitempty"`
	// Handlers is the response to ListHandlers.
	Handlers *Handlers `json:"handlers,omitempty"`
	// Replayed reports whether an HTTP response behind the result came from a recording. The host sets it.
	Replayed bool `json:"-"`
	// Meta is MCP's metadata of the result of another server, a JSON object or nil, for clients and not for models. The
	// host sets it, also where it is in a content block or a resource.
	Meta json.RawMessage `json:"-"`
	// Stack has the functions in which the guest stopped after it had reported a failure, a line for each. The host sets
	// it; it is for authors and operators.
	Stack string `json:"-"`
	// Error means that the request itself could not be served, for example because a resource is unknown.
	Error *Error `json:"error,omitempty"`
}

// Types of Content, as in MCP.
const (
	Text         = "text"
	Image        = "image"
	Audio        = "audio"
	ResourceLink = "resource_link"
	Embedded     = "resource"
)

// Content is a content block. The guest attaches binary data first with the core function "blob" and refers to it by
// the index that the function returned; on the host's side Data has the bytes.
type Content struct {
	Type        string            `json:"type"`
	Text        string            `json:"text,omitempty"`
	MIMEType    string            `json:"mimeType,omitempty"`
	Blob        *int              `json:"blob,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Name        string            `json:"name,omitempty"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Size        *int64            `json:"size,omitempty"`
	Resource    *ResourceContents `json:"resource,omitempty"`
	Annotations *Annotations      `json:"annotations,omitempty"`

	Data []byte          `json:"-"`
	Meta json.RawMessage `json:"-"`
}

// Annotations are MCP's hints about a content block.
type Annotations struct {
	Audience     []string `json:"audience,omitempty"`
	Priority     *float64 `json:"priority,omitempty"`
	LastModified string   `json:"lastModified,omitempty"`
}

// ResourceContents is the content of a resource: Text, or an attached blob.
type ResourceContents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     *int   `json:"blob,omitempty"`

	Data []byte          `json:"-"`
	Meta json.RawMessage `json:"-"`
}

// PromptMessage is a message of a prompt; Role is "user" or "assistant".
type PromptMessage struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// Completion has at most 100 values; Total is the number of all values, if known.
type Completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total,omitempty"`
	HasMore bool     `json:"hasMore,omitempty"`
}

// Handlers lists the handlers of a guest.
type Handlers struct {
	Tools             []string `json:"tools,omitempty"`
	Resources         []string `json:"resources,omitempty"`
	ResourceTemplates []string `json:"resourceTemplates,omitempty"`
	Prompts           []string `json:"prompts,omitempty"`
}

// Codes of an Error, of a guest or of a host function.
const (
	CodeInvalid    = "invalid"     // the request is malformed, or has no recording while recordings are replayed
	CodeNotFound   = "not-found"   // no such tool, resource or prompt
	CodeNotGranted = "not-granted" // outside the plugin's grants
	CodeLimit      = "limit"       // a limit was exceeded
	CodeTimeout    = "timeout"     // the deadline passed
	CodeCanceled   = "canceled"    // the caller canceled the call
	CodeNetwork    = "network"     // the server could not be reached or the connection broke
	CodeConflict   = "conflict"    // a constraint of the database forbids the change
	CodeBusy       = "busy"        // the database is locked; the same call may work later
	CodeCredential = "credential"  // the operator has to set, connect or renew a credential
	CodeInternal   = "internal"    // the host failed
)

// Error is an error with a text on which a person or a model can act.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an Error with a formatted message.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// HTTPRequest is the head of a request, the argument of "request" of HTTPModule. The body is passed beside it as raw
// bytes.
type HTTPRequest struct {
	Method  string              `json:"method"`
	URL     string              `json:"url"`
	Headers map[string][]string `json:"headers,omitempty"`
	// TimeoutMS bounds this request, in milliseconds. Zero means the permission's bound and the call's deadline.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
}

// Import modules of permissions.
const (
	// HTTPModule belongs to the permission http.
	HTTPModule = "hako:http/1"
	// SQLModule belongs to the permission sql.
	SQLModule = "hako:sql/1"
)

// HTTPResponse is the head of a response: either Error alone, or the rest. The body is read through Handle.
type HTTPResponse struct {
	Handle  int32               `json:"handle,omitempty"`
	Status  int                 `json:"status,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	// URL is the final URL, after redirects.
	URL string `json:"url,omitempty"`
	// Credential has public facts about the credential that the host applied, such as freee's company_id; never the
	// secret.
	Credential map[string]string `json:"credential,omitempty"`
	Error      *Error            `json:"error,omitempty"`
}

// LogLevel is a log level, with the numbers of log/slog.
type LogLevel int32

// Log levels.
const (
	LogDebug LogLevel = -4
	LogInfo  LogLevel = 0
	LogWarn  LogLevel = 4
	LogError LogLevel = 8
)
