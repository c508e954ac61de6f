package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/jsonread"
)

// Call is a tools/call in its usual form, read in one pass.
type Call struct {
	ID   jsonrpc.ID
	Name string
	// Arguments is an object, or nil if there are none. It is a part of the message that was read.
	Arguments json.RawMessage
	// Version, ClientInfo and Capabilities are members of _meta in 2026-07-28: nil if missing.
	Version, ClientInfo, Capabilities json.RawMessage
	// TraceParent and TraceState are the trace that the call belongs to, as JSON strings, or nil.
	TraceParent, TraceState json.RawMessage
	// ProgressToken is a string or a number with which the client wants reports of progress, or nil.
	ProgressToken json.RawMessage
	// RequestState and InputResponses continue an earlier call (multi round-trip requests); empty and nil otherwise.
	RequestState   string
	InputResponses json.RawMessage
}

// maxNesting is the deepest nesting of a Call, as the SDK accepts it.
const maxNesting = 1000

// parseCall reads a Call, or reports false for any other message. It is strict: the SDK accepts everything that it
// accepts, and answers everything else.
func parseCall(body []byte) (*Call, bool) {
	p := &callParser{tokens: jsonread.Reader{Data: body, MaxDepth: maxNesting}, call: new(Call)}
	if !p.object(p.message) || !p.isWhole() {
		return nil, false
	}
	return p.call, true
}

type callParser struct {
	tokens jsonread.Reader
	call   *Call
	// seen counts the required members.
	seen int
}

// isWhole reports whether no required member is missing and nothing follows. The reader refuses repeated members.
func (p *callParser) isWhole() bool {
	const required = 5 // jsonrpc, id, method, params and its name
	_, err := p.tokens.Next()
	return errors.Is(err, io.EOF) && p.seen == required
}

// object reads an object; member reads each of its members.
func (p *callParser) object(member func(name []byte) bool) bool {
	token, err := p.tokens.Next()
	return err == nil && token.Kind == '{' && p.tokens.Members(member)
}

func (p *callParser) message(name []byte) bool {
	switch string(name) {
	case "jsonrpc":
		return p.is(`"2.0"`)
	case "id":
		return p.id()
	case "method":
		return p.is(`"tools/call"`)
	case "params":
		p.seen++
		return p.object(p.params)
	}
	return false
}

func (p *callParser) params(name []byte) bool {
	switch string(name) {
	case "name":
		text, ok := p.text()
		p.call.Name = text
		p.seen++
		return ok
	case "arguments":
		return p.value("{", &p.call.Arguments)
	case "_meta":
		return p.object(p.meta)
	case "requestState":
		text, ok := p.text()
		p.call.RequestState = text
		return ok && text != ""
	case "inputResponses":
		return p.value("{", &p.call.InputResponses)
	}
	return false
}

// reserved is the prefix of the names in _meta that belong to the protocol.
const reserved = "io.modelcontextprotocol/"

func (p *callParser) meta(name []byte) bool {
	switch string(name) {
	case "progressToken":
		return p.value(`"0`, &p.call.ProgressToken)
	case mcp.MetaKeyProtocolVersion:
		return p.value(`"`, &p.call.Version)
	case trace.ParentKey:
		return p.value(`"`, &p.call.TraceParent)
	case trace.StateKey:
		return p.value(`"`, &p.call.TraceState)
	case mcp.MetaKeyClientInfo:
		return p.value("{", &p.call.ClientInfo)
	case mcp.MetaKeyClientCapabilities:
		return p.value("{", &p.call.Capabilities)
	}
	return !bytes.HasPrefix(name, []byte(reserved)) && p.value("", new(json.RawMessage))
}

// is reads a required member with a fixed value.
func (p *callParser) is(want string) bool {
	p.seen++
	token, err := p.tokens.Next()
	return err == nil && string(token.Raw) == want
}

// id reads a string or a whole number small enough for every decoder to keep.
func (p *callParser) id() bool {
	const maxDigits = 15
	p.seen++
	token, err := p.tokens.Next()
	if err != nil {
		return false
	}
	if token.Kind == '"' {
		p.call.ID, err = jsonrpc.MakeID(string(token.Text()))
		return err == nil
	}
	if len(token.Raw) > maxDigits || string(token.Raw) == "-0" {
		return false
	}
	n, err := strconv.ParseInt(string(token.Raw), 10, 64)
	if err != nil {
		return false
	}
	p.call.ID, err = jsonrpc.MakeID(float64(n))
	return err == nil
}

func (p *callParser) text() (string, bool) {
	token, err := p.tokens.Next()
	if err != nil || token.Kind != '"' {
		return "", false
	}
	return string(token.Text()), true
}

// value keeps a part of the message, of one of these kinds. Empty kinds are all.
func (p *callParser) value(kinds string, into *json.RawMessage) bool {
	token, err := p.tokens.Next()
	if err != nil || kinds != "" && strings.IndexByte(kinds, token.Kind) < 0 {
		return false
	}
	*into, err = p.tokens.Whole()
	return err == nil
}
