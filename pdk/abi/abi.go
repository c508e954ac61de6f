// Package abi holds the JSON that crosses between host and guest in ABI 1.
//
// It is the one definition for both sides: the host and the Go PDK import it. docs/abi.md describes the functions that
// carry it and is the reference for other languages. All names on the wire are lowerCamelCase.
package abi

import "encoding/json"

// Version is the ABI that this package describes.
const Version = 1

// Names that a guest exports.
const (
	// Marker is the exported function whose presence says "this guest speaks ABI 1". It is never called.
	Marker = "hako_abi_1"
	// MarkerPrefix starts the marker of every ABI version.
	MarkerPrefix = "hako_abi_"
	// Entry is the exported function that runs one request: (length i32) -> i32.
	Entry = "hako_call"
)

// CoreModule is the import module that every guest may import without asking; the others belong to a permission each.
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
	// ListHandlers asks which handlers the guest has, to compare them with its manifest. Guests may leave it unserved.
	ListHandlers = "hako/handlers"
)

// Request is what the host passes to the entry point. Fields that do not belong to Method are absent.
type Request struct {
	Method string `json:"method"`
	// Name is the tool or prompt.
	Name string `json:"name,omitempty"`
	// Arguments are the tool's arguments, already valid under its input schema, or the prompt's, all strings.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// URI is the resource to read.
	URI string `json:"uri,omitempty"`
	// Template is the resource template that URI matched, and Variables what its expressions matched.
	Template  string            `json:"template,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
	// Ref and Argument say what to complete.
	Ref      *Ref      `json:"ref,omitempty"`
	Argument *Argument `json:"argument,omitempty"`
	// Config holds the plugin's configuration, defaults filled in. It never holds secrets.
	Config json.RawMessage `json:"config,omitempty"`
	// Locale is the caller's language, a BCP 47 tag such as "ja"; empty if unknown.
	Locale string `json:"locale,omitempty"`
	// DeadlineMS is the time left for the call, in milliseconds.
	DeadlineMS int64 `json:"deadlineMs,omitempty"`
}

// Progress is one report of how far a call has come. Total is 0 if unknown.
type Progress struct {
	Progress, Total float64
	Message         string
}

// Ref names what a completion is for: a prompt (Type "ref/prompt", Name) or a resource template (Type "ref/resource", URI).
type Ref struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// Argument is the argument being completed, with those already given in Resolved.
type Argument struct {
	Name     string            `json:"name"`
	Value    string            `json:"value"`
	Resolved map[string]string `json:"resolved,omitempty"`
}

// Response is what a guest gives back for a Request. The fields used depend on the method; Error may stand alone.
type Response struct {
	// Tool results.
	Content           []Content       `json:"content,omitempty"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	// StructuredText are more members of StructuredContent; see FillStructured.
	StructuredText []TextMember `json:"structuredText,omitempty"`
	IsError        bool         `json:"isError,omitempty"`
	// Resources.
	Contents []ResourceContents `json:"contents,omitempty"`
	// Prompts.
	Description string          `json:"description,omitempty"`
	Messages    []PromptMessage `json:"messages,omitempty"`
	// Completion.
	Completion *Completion `json:"completion,omitempty"`
	// Handlers answers ListHandlers.
	Handlers *Handlers `json:"handlers,omitempty"`
	// Replayed says that an HTTP answer behind the result came from a recording. The host knows; guests do not say it.
	Replayed bool `json:"-"`
	// Error says that the request itself could not be served, for example an unknown resource.
	Error *Error `json:"error,omitempty"`
}

// Kinds of Content, those of MCP.
const (
	Text         = "text"
	Image        = "image"
	Audio        = "audio"
	ResourceLink = "resource_link"
	Embedded     = "resource"
)

// Content is one content block. Binary data is attached beforehand with the core function "blob" and referred to by the
// index that function returned; on the host's side Data then holds the bytes.
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

	Data []byte `json:"-"`
}

// Annotations are MCP's hints about a content block.
type Annotations struct {
	Audience     []string `json:"audience,omitempty"`
	Priority     *float64 `json:"priority,omitempty"`
	LastModified string   `json:"lastModified,omitempty"`
}

// ResourceContents is the content of one resource: Text, or an attached blob.
type ResourceContents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     *int   `json:"blob,omitempty"`

	Data []byte `json:"-"`
}

// PromptMessage is one message of a prompt; Role is "user" or "assistant".
type PromptMessage struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// Completion lists at most 100 values; Total is how many there are, if known.
type Completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total,omitempty"`
	HasMore bool     `json:"hasMore,omitempty"`
}

// Handlers names what a guest has handlers for.
type Handlers struct {
	Tools             []string `json:"tools,omitempty"`
	Resources         []string `json:"resources,omitempty"`
	ResourceTemplates []string `json:"resourceTemplates,omitempty"`
	Prompts           []string `json:"prompts,omitempty"`
}

// Codes of an Error, from guest to host or from a host function to the guest.
const (
	CodeInvalid    = "invalid"     // the request is malformed
	CodeNotFound   = "not-found"   // no such tool, resource or prompt
	CodeNotGranted = "not-granted" // outside the plugin's grants
	CodeLimit      = "limit"       // a limit was passed
	CodeTimeout    = "timeout"     // the time ran out
	CodeCanceled   = "canceled"    // the caller went away
	CodeNetwork    = "network"     // the other side could not be reached or broke off
	CodeConflict   = "conflict"    // a rule of the database forbids the change
	CodeBusy       = "busy"        // somebody else holds the database; the same call may work later
	CodeCredential = "credential"  // the operator has to set, connect or renew a credential
	CodeInternal   = "internal"    // the host failed
)

// Error is a failure in words that a person or a model can act on.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// HTTPRequest is the head that a guest passes to "request" of HTTPModule; the body crosses beside it as raw bytes.
type HTTPRequest struct {
	Method  string              `json:"method"`
	URL     string              `json:"url"`
	Headers map[string][]string `json:"headers,omitempty"`
	// TimeoutMS bounds this request, in milliseconds; zero leaves it to the permission and the call's deadline.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
}

// Import modules of permissions.
const (
	// HTTPModule belongs to the permission http.
	HTTPModule = "hako:http/1"
	// SQLModule belongs to the permission sql.
	SQLModule = "hako:sql/1"
)

// HTTPResponse is the head that comes back: either Error alone, or the rest. The body is read through Handle.
type HTTPResponse struct {
	Handle  int32               `json:"handle,omitempty"`
	Status  int                 `json:"status,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	// URL is the one that answered, after redirects.
	URL string `json:"url,omitempty"`
	// Credential are public facts about the credential that the host sent along, such as freee's company_id; never the secret.
	Credential map[string]string `json:"credential,omitempty"`
	Error      *Error            `json:"error,omitempty"`
}

// LogLevel orders log records; the numbers are those of log/slog.
type LogLevel int32

// Log levels.
const (
	LogDebug LogLevel = -4
	LogInfo  LogLevel = 0
	LogWarn  LogLevel = 4
	LogError LogLevel = 8
)
