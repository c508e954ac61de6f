// Package manifest describes what a plugin offers and which permissions it asks for.
//
// A manifest is YAML, beside the plugin (NAME.yaml next to NAME.wasm) or embedded in it as a custom section. It is read
// without running guest code, strictly: an unknown or repeated key is an error. manifest.schema.json is its published
// schema. ParseModule parses the manifest of a plugin file that package wasmfile has read, and CheckImports checks that
// it asks for what the module imports.
package manifest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/pdk/locale"
)

// Manifest is one plugin's description of itself.
type Manifest struct {
	// Name identifies the plugin: 1 to 40 of a-z, 0-9 and "-", starting with a letter.
	Name string
	// Version is a semantic version without "v".
	Version     string
	Description Text
	// License is an SPDX expression.
	License string

	Tools             []Tool
	Resources         []Resource
	ResourceTemplates []ResourceTemplate
	Prompts           []Prompt
	// Retired are names that the plugin offered once.
	Retired []Retired

	Permissions Permissions
	// Config declares the keys that an operator may set, by name.
	Config map[string]ConfigKey
	// Limits are requested by the plugin, within the host's ceilings; an operator's settings override them in either
	// direction.
	Limits Limits
}

// Text is a text by language ("en", "ja"). In YAML a plain string stands for English alone.
type Text = locale.Text

// FirstSentence returns the first sentence of a text in each language.
func FirstSentence(text Text) Text {
	first := Text{}
	for language, whole := range text {
		sentence, _, _ := strings.Cut(strings.TrimSpace(whole), "\n")
		for _, end := range []string{". ", "。"} {
			if before, _, found := strings.Cut(sentence, end); found {
				sentence = before + strings.TrimSpace(end)
			}
		}
		first[language] = sentence
	}
	return first
}

// Tool is one tool on offer.
type Tool struct {
	// Name is unique within the plugin: 1 to 64 of A-Z, a-z, 0-9, "_" and "-", which every MCP client and LLM accepts.
	Name string
	// Export is the function that the tool calls. Of a component it is "function" or "interface#function", and empty
	// means the one whose tool has the name. A plugin of the Extism ABI needs it, unless the plugin lists its tools
	// itself.
	Export string
	// Argument, for the Extism ABI, names the argument whose value is the input of Export. Empty means all arguments,
	// as JSON.
	Argument string
	// Result, for the Extism ABI, says what Export returns: ResultText or ResultJSON. Empty means ResultText.
	Result      string
	Title       Text
	Description Text
	// InputSchema is a JSON Schema 2020-12 of type object. OutputSchema may be nil.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  Annotations
	Icons        []Icon
	// Limits override the plugin's for this tool. Memory, Concurrency, Queue, QueueWait, Requests, Calls and
	// ParallelCalls belong to the plugin and must be zero here.
	Limits Limits
	// When names configuration keys of type "string", and the values with which the tool is on offer: all must hold.
	// Empty means always.
	When map[string][]string
	// Replaces describes what the tool overwrites. Nil means that this is unknown.
	Replaces *Replaces
	// Meta is MCP's metadata of a tool of another server, a JSON object or nil. Manifests have none.
	Meta json.RawMessage
	// Declarations has the description followed by declarations of the tools that the tool may call.
	Declarations bool

	input, output *lazySchema
}

// Values of Tool.Result: a text block, or JSON, which is the structured content if it is an object.
const (
	ResultText = "text"
	ResultJSON = "json"
)

// OfferedUnder reports whether the tool is on offer with this configuration, which Configure made.
func (t *Tool) OfferedUnder(config []byte) bool {
	if len(t.When) == 0 {
		return true
	}
	var values map[string]any
	if json.Unmarshal(config, &values) != nil {
		return false
	}
	for key, allowed := range t.When {
		if value, ok := values[key].(string); !ok || !slices.Contains(allowed, value) {
			return false
		}
	}
	return true
}

// Input is InputSchema compiled. It is nil before Manifest.Validate; Parse, ParseModule and ParseValidated set it.
func (t *Tool) Input() *schema.Schema { return t.input.get() }

// Output is OutputSchema compiled. It is nil for a tool without one, and where Input is nil.
func (t *Tool) Output() *schema.Schema { return t.output.get() }

// Annotations are MCP's hints about a tool's behaviour. A nil hint takes MCP's default: not read-only, destructive, not
// idempotent, open world.
type Annotations struct {
	ReadOnlyHint    *bool
	DestructiveHint *bool
	IdempotentHint  *bool
	OpenWorldHint   *bool
}

// Icon is an icon for user interfaces. Src is an https or data URI.
type Icon struct {
	Src      string
	MIMEType string
	Sizes    []string
}

// Resource is one resource with a fixed URI.
type Resource struct {
	URI         string
	Name        string
	Title       Text
	Description Text
	MIMEType    string
	// Meta is as in Tool.
	Meta json.RawMessage
}

// ResourceTemplate is a family of resources; URITemplate is an RFC 6570 template.
type ResourceTemplate struct {
	URITemplate string
	Name        string
	Title       Text
	Description Text
	MIMEType    string
	// Meta is as in Tool.
	Meta json.RawMessage
}

// Prompt is one prompt template.
type Prompt struct {
	Name        string
	Title       Text
	Description Text
	Arguments   []PromptArgument
}

// PromptArgument is one argument of a prompt; its value is always a string.
type PromptArgument struct {
	Name        string
	Description Text
	Required    bool
}

// Retired is a name that a plugin no longer offers. It is not listed; callers that still use it get the name of its
// replacement.
type Retired struct {
	// Tool, Prompt or Resource is the name, or the resource's URI; the other two are empty.
	Tool, Prompt, Resource string
	// Instead is a sentence for models and people about what to use instead.
	Instead Text
}

// Permissions is everything a plugin asks for.
type Permissions struct {
	HTTP  []HTTPPermission
	Files []FilePermission
	// SQL asks for a database. Nil means none.
	SQL *SQLPermission
	// Exec asks to run commands. Nil means none.
	Exec *ExecPermission
	// Tools asks to call other tools. Nil means none.
	Tools *ToolsPermission
	// Limits are those of the plugin and its tools that are larger than DefaultLimits, and Claims what the hints of its
	// tools claim, by tool; see Annotations.Claims. Parse fills both in from the rest of the manifest.
	Limits Limits
	Claims map[string][]string
	// State is the lifetime of what the plugin's code remembers. It stands at the top of a manifest. Empty means
	// StateCall.
	State State
}

// State is the lifetime of what a plugin's code remembers.
type State string

// States, each of which remembers longer than the one before.
const (
	// StateCall forgets everything after each call.
	StateCall State = "call"
	// StateSession remembers for the calls of one caller's session.
	StateSession State = "session"
	// StateShared remembers from any call to any other, whoever the callers are, within one tenant.
	StateShared State = "shared"
)

// States lists them all, in this order.
var States = []State{StateCall, StateSession, StateShared}

// HTTPPermission asks to send requests to what is under one base URL.
type HTTPPermission struct {
	// Name identifies it in grants: 1 to 40 of a-z, 0-9 and "-", starting with a letter.
	Name string
	// URL is the base: scheme, host, optional port, and the path under which all requests must lie. The host may start
	// with "*." for any subdomain; "*" alone is any host, which plugin check reports as over-broad.
	URL string
	// ConfigKey names a configuration key of type "url" whose value, where the operator sets one, replaces URL.
	ConfigKey string
	// Methods are the methods asked for. Empty means GET and HEAD.
	Methods []string
	// Paths narrow what is under URL: globs relative to it ("data/**"). Empty means all.
	Paths []string
	// Credential names a credential of the operator's, by the rule of Name, that the host applies to the requests; the
	// plugin never sees it. Empty means none.
	Credential string
	Reason     Text
}

// FilePermission asks for one mount.
type FilePermission struct {
	// Mount is the name of the mount, by the rule of HTTPPermission.Name; the guest sees it as the directory "/" +
	// Mount.
	Mount string
	// Write asks for writing too. YAML: "access: read-only" or "access: read-write".
	Write bool
	// Roots asks for further mounts under the same rules, one for each directory that the operator allows beside this
	// one, and to know the host's paths of all mounts. At most one permission of a plugin has it.
	Roots  bool
	Reason Text
}

// SQLPermission asks for a private SQLite database, one for each tenant.
type SQLPermission struct {
	// Migrations make the tables: each is one or more SQL statements, applied once, in order. A released one must not
	// be edited; later versions of the plugin append to the list.
	Migrations []string
	// Quota is the most bytes of one tenant's database. Zero means DefaultSQLQuota.
	Quota  int64
	Reason Text
}

// ExecPermission asks to run programs of the host's machine, on the files of the mounts that the plugin asks for.
type ExecPermission struct {
	// Programs are their names, without directories. "*" alone leaves it to the operator to name them.
	Programs []string
	Reason   Text
}

// ToolsPermission asks to call other tools of the host, as the caller of the plugin's own tool.
type ToolsPermission struct {
	// Names are patterns for the tools as the host offers them: TOOL, or with a "/" PLUGIN/TOOL; "*" matches any text.
	Names  []string
	Reason Text
}

// AnyProgram stands in ExecPermission.Programs for those that the operator names.
const AnyProgram = "*"

// DefaultSQLQuota is the most bytes of a database where its permission does not say.
const DefaultSQLQuota = 64 << 20

// Access to files, as YAML has it.
const (
	ReadOnly  = "read-only"
	ReadWrite = "read-write"
)

// ConfigKey declares one configuration key.
type ConfigKey struct {
	// Type is "string", "integer", "number", "boolean", "url" or "array" (of strings).
	Type        string
	Description Text
	// Default is used where the operator sets nothing. Nil means the key is then absent. It and Enum hold values as
	// encoding/json decodes them with UseNumber.
	Default any
	// Required makes a plugin without a value for the key refuse to load.
	Required bool
	// Enum limits the values, if not empty.
	Enum []any
	// Credential, for the Extism ABI, makes the value a placeholder for the credential of this name. The host puts the
	// secret in its place in headers of requests under the HTTP permissions with this credential, and adds no header
	// itself there.
	Credential string
}

// Placeholder returns the key of Config that is a placeholder for the credential, or "".
func (m *Manifest) Placeholder(credential string) string {
	for _, name := range keys(m.Config) {
		if credential != "" && m.Config[name].Credential == credential {
			return name
		}
	}
	return ""
}
