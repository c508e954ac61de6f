package transport

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/pdk/abi"
)

// Sessionless is the first protocol version without sessions.
const Sessionless = "2026-07-28"

// IsSessionless reports whether a request is of a protocol version without sessions.
func IsSessionless(h http.Header) bool { return h.Get("Mcp-Protocol-Version") >= Sessionless }

// WithSessions has the protocol versions that have sessions.
var WithSessions = func() map[string]bool {
	versions := map[string]bool{}
	for _, version := range mcp.SupportedProtocolVersions() {
		versions[version] = version < Sessionless
	}
	return versions
}()

// Negotiate returns the protocol version of a session whose client asks for this one: the same if it has sessions, else
// the latest that has.
func Negotiate(version string) string {
	if WithSessions[version] {
		return version
	}
	latest := ""
	for version, has := range WithSessions {
		if has {
			latest = max(latest, version)
		}
	}
	return latest
}

// single are the headers that must not be repeated: another reader of the request could take another one of the values.
var single = []string{"Content-Type", "Last-Event-Id", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version",
	"Mcp-Session-Id"}

// Repeated returns the name of a header that is repeated and must not be, or empty.
func Repeated(h http.Header) string {
	for _, name := range single {
		if len(h[name]) > 1 {
			return name
		}
	}
	return ""
}

// isJSON reports whether a Content-Type is JSON's.
func isJSON(contentType string) bool {
	const want = "application/json"
	if contentType == want {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == want
}

// accepts returns which forms of an answer a client accepts.
func accepts(accept []string) (whole, stream bool) {
	for _, value := range accept {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "application/json", "application/*":
				whole = true
			case "text/event-stream", "text/*":
				stream = true
			case "*/*":
				return true, true
			}
		}
	}
	return whole, stream
}

// CheckPost answers a POST request whose headers are wrong, whatever its body, and reports false.
func CheckPost(w http.ResponseWriter, h http.Header) bool {
	if version := h.Get("Mcp-Protocol-Version"); version != "" && version < Sessionless && !WithSessions[version] {
		refuseVersion(w)
		return false
	}
	if !isJSON(h.Get("Content-Type")) {
		http.Error(w, "Content-Type must be 'application/json'", http.StatusUnsupportedMediaType)
		return false
	}
	if whole, stream := accepts(h.Values("Accept")); !whole || !stream {
		http.Error(w, "Accept must contain both 'application/json' and 'text/event-stream'", http.StatusBadRequest)
		return false
	}
	if len(h.Values("Last-Event-Id")) > 0 {
		http.Error(w, "can't send Last-Event-ID for POST request", http.StatusBadRequest)
		return false
	}
	return true
}

// CheckGet answers a GET request whose headers are wrong, and reports false.
func CheckGet(w http.ResponseWriter, h http.Header) bool {
	if version := h.Get("Mcp-Protocol-Version"); version != "" && version < Sessionless && !WithSessions[version] {
		refuseVersion(w)
		return false
	}
	if _, stream := accepts(h.Values("Accept")); !stream {
		http.Error(w, "Accept must contain 'text/event-stream' for GET requests", http.StatusBadRequest)
		return false
	}
	return true
}

func refuseVersion(w http.ResponseWriter) {
	http.Error(w, fmt.Sprintf("Bad Request: Unsupported protocol version (supported versions: %s)",
		strings.Join(mcp.SupportedProtocolVersions(), ",")), http.StatusBadRequest)
}

// CheckVersion returns what is wrong with the protocol version in a request's _meta, which must be that of the header
// (MCP 2026-07-28, transports, protocol version header); nil is nothing.
func CheckVersion(h http.Header, request *jsonrpc.Request) *Refusal {
	inBody := textOf(membersOf(membersOf(request.Params)["_meta"])[mcp.MetaKeyProtocolVersion])
	inHeader := h.Get("Mcp-Protocol-Version")
	switch {
	case inBody == "" && (!request.IsCall() || !IsSessionless(h)):
		return nil
	case inHeader == "":
		return &Refusal{request.ID, mcp.CodeHeaderMismatch, fmt.Sprintf(
			"Mcp-Protocol-Version header is required for requests carrying %q", mcp.MetaKeyProtocolVersion)}
	case inBody == "":
		return &Refusal{request.ID, jsonrpc.CodeInvalidParams,
			fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaKeyProtocolVersion)}
	case inHeader != inBody:
		return &Refusal{request.ID, mcp.CodeHeaderMismatch, fmt.Sprintf(
			"Mcp-Protocol-Version header %q does not match request %s %q",
			inHeader,
			mcp.MetaKeyProtocolVersion,
			inBody,
		)}
	}
	return nil
}

const base64Prefix, base64Suffix = "=?base64?", "?="

// decodeHeader decodes a header value, which holds text beyond printable ASCII in Base64 (MCP 2026-07-28, transports,
// standard headers).
func decodeHeader(value string) (string, error) {
	encoded, ok := strings.CutPrefix(value, base64Prefix)
	if ok {
		encoded, ok = strings.CutSuffix(encoded, base64Suffix)
	}
	if !ok {
		return value, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	return string(decoded), err
}

// DecodeName decodes the Mcp-Name header in place.
func DecodeName(h http.Header) error {
	name := h.Get("Mcp-Name")
	decoded, err := decodeHeader(name)
	if err != nil {
		return errors.New("header mismatch: Mcp-Name contains invalid Base64")
	}
	if decoded != name {
		h.Set("Mcp-Name", decoded)
	}
	return nil
}

// CheckNames returns an error if the Mcp-Method and Mcp-Name headers are not what a message of 2026-07-28 says.
func CheckNames(h http.Header, request *jsonrpc.Request) error {
	switch method := h.Get("Mcp-Method"); {
	case method == "":
		return errors.New("missing required Mcp-Method header")
	case method != request.Method:
		return fmt.Errorf("header mismatch: Mcp-Method header value '%s' does not match body value '%s'", method,
			request.Method)
	}
	member := "name"
	switch request.Method {
	case abi.CallTool, abi.GetPrompt:
	case abi.ReadResource:
		member = "uri"
	default:
		return nil
	}
	name := h.Get("Mcp-Name")
	if name == "" {
		return fmt.Errorf("missing required Mcp-Name header for method %q", request.Method)
	}
	members := membersOf(request.Params)
	if value := members[member]; value != nil && (len(value) == 0 || value[0] != '"' && string(value) != "null") ||
		members == nil && string(request.Params) != "null" {
		return fmt.Errorf("failed to extract name from parameters for method %q", request.Method)
	}
	inBody := textOf(members[member])
	if name != inBody {
		return fmt.Errorf("header mismatch: Mcp-Name header value '%s' does not match body value '%s'", name, inBody)
	}
	return nil
}

// ParamHeader is an argument of a tool that clients repeat in a header (MCP 2026-07-28, tools, x-mcp-header).
type ParamHeader struct {
	// Path leads to the argument, Name is the header's.
	Path []string
	Name string
}

// ParamHeaders returns those of an input schema, which must be valid.
func ParamHeaders(schema json.RawMessage) []ParamHeader {
	type property struct {
		Header     string                     `json:"x-mcp-header"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var headers []ParamHeader
	var walk func(schema json.RawMessage, path []string)
	walk = func(schema json.RawMessage, path []string) {
		var p property
		if json.Unmarshal(schema, &p) != nil {
			return
		}
		if p.Header != "" && len(path) > 0 {
			headers = append(headers, ParamHeader{slices.Clone(path), "Mcp-Param-" + p.Header})
		}
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			walk(p.Properties[name], append(slices.Clone(path), name))
		}
	}
	walk(schema, nil)
	return headers
}

// CheckCall is CheckParams for a request; headers returns those of a tool.
func CheckCall(h http.Header, request *jsonrpc.Request, headers func(tool string) []ParamHeader) error {
	members := membersOf(request.Params)
	return CheckParams(h, headers(textOf(members["name"])), members["arguments"])
}

// CheckParams returns an error if the headers are not what the arguments of a call say.
func CheckParams(h http.Header, headers []ParamHeader, arguments json.RawMessage) error {
	for _, header := range headers {
		path, inHeader := strings.Join(header.Path, "."), h.Get(header.Name)
		argument := lookup(arguments, header.Path)
		switch {
		case len(h.Values(header.Name)) > 1:
			return fmt.Errorf("header mismatch: the %s header comes more than once: send it once", header.Name)
		case argument == nil && inHeader != "":
			return fmt.Errorf(
				"header mismatch: unexpected %s header for absent or null parameter %q",
				header.Name,
				path,
			)
		case argument == nil:
			continue
		case inHeader == "":
			return fmt.Errorf("header mismatch: missing %s header for parameter %q", header.Name, path)
		}
		decoded, err := decodeHeader(inHeader)
		if err != nil {
			return fmt.Errorf("header mismatch: %s header contains invalid Base64 encoding", header.Name)
		}
		same, primitive := equals(decoded, argument)
		if !primitive {
			return fmt.Errorf("header mismatch: %s header present but body parameter %q is not a primitive type",
				header.Name, path)
		}
		if !same {
			return fmt.Errorf("header mismatch: %s header value '%s' does not match body value", header.Name, inHeader)
		}
	}
	return nil
}

// lookup returns an argument, or nil if it is absent or null.
func lookup(arguments json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(arguments, &members) != nil {
			return nil
		}
		arguments = members[name]
	}
	if string(arguments) == "null" {
		return nil
	}
	return arguments
}

// equals compares a header with an argument. primitive is false if the argument is no text, truth value or integer that
// every JSON decoder keeps.
func equals(header string, argument json.RawMessage) (same, primitive bool) {
	var value any
	if json.Unmarshal(argument, &value) != nil {
		return false, false
	}
	switch value := value.(type) {
	case string:
		return header == value, true
	case bool:
		return header == strconv.FormatBool(value), true
	case float64:
		if value != math.Trunc(value) || math.Abs(value) > maxInteger {
			return false, false
		}
		number, err := strconv.ParseFloat(header, 64)
		return err == nil && number == value, true
	}
	return false, false
}
