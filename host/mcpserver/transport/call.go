package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/jsonstring"
)

// Call is a tools/call in its usual form, read in one pass.
type Call struct {
	ID   jsonrpc.ID
	Name string
	// Arguments is an object, or nil if there are none. It is a part of the message that was read.
	Arguments json.RawMessage
	// Version, ClientInfo and Capabilities are what 2026-07-28 puts into _meta: nil where they are missing.
	Version, ClientInfo, Capabilities json.RawMessage
	// TraceParent and TraceState are the trace that the call belongs to, as JSON strings, or nil.
	TraceParent, TraceState json.RawMessage
	// ProgressToken is a string or a number with which the client wants reports of progress, or nil.
	ProgressToken json.RawMessage
	// RequestState and InputResponses continue an earlier call (multi round-trip requests); empty and nil otherwise.
	RequestState   string
	InputResponses json.RawMessage
}

// maxNesting is the deepest nesting of a Call. The SDK accepts 1,000 levels.
const maxNesting = 1000

// nestsTooDeep reports whether body may nest deeper than maxNesting.
func nestsTooDeep(body []byte) bool {
	if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) <= maxNesting {
		return false
	}
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = jsonstring.End(body, i+1)
		case '{', '[':
			if depth++; depth > maxNesting {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// parseCall reads a message, or reports false if it is anything but a Call. It is strict: all that it accepts, the SDK
// accepts too, and the SDK answers all that it does not.
func parseCall(body []byte) (*Call, bool) {
	if nestsTooDeep(body) {
		return nil, false
	}
	p := parsers.Get().(*callParser)
	defer p.release()
	p.call, p.body = new(Call), body
	p.buffer = *bytes.NewBuffer(body)
	p.tokens.Reset(&p.buffer)
	if !p.object(p.message) || !p.isWhole() {
		return nil, false
	}
	return p.call, true
}

var parsers = sync.Pool{New: func() any { return &callParser{tokens: jsontext.NewDecoder(new(bytes.Buffer))} }}

type callParser struct {
	tokens *jsontext.Decoder
	buffer bytes.Buffer
	body   []byte
	call   *Call
	// seen counts the required members.
	seen int
}

// release forgets the message.
func (p *callParser) release() {
	p.call, p.body, p.seen, p.buffer = nil, nil, 0, bytes.Buffer{}
	p.tokens.Reset(&p.buffer)
	parsers.Put(p)
}

// isWhole reports whether nothing is missing and nothing follows. The decoder has refused members that come twice.
func (p *callParser) isWhole() bool {
	const required = 5 // jsonrpc, id, method, params and its name
	_, err := p.tokens.ReadToken()
	return errors.Is(err, io.EOF) && p.seen == required
}

// object reads an object whose members are all taken by member.
func (p *callParser) object(member func(name []byte) bool) bool {
	if p.tokens.PeekKind() != '{' {
		return false
	}
	if _, err := p.tokens.ReadToken(); err != nil {
		return false
	}
	for p.tokens.PeekKind() == '"' {
		// A name with an escape sequence equals none of those known, and so is not taken for another.
		name, err := p.tokens.ReadValue()
		if err != nil || bytes.IndexByte(name, '\\') >= 0 || !member(name[1:len(name)-1]) {
			return false
		}
	}
	token, err := p.tokens.ReadToken()
	return err == nil && token.Kind() == '}'
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
		return p.value('{', &p.call.Arguments)
	case "_meta":
		return p.object(p.meta)
	case "requestState":
		text, ok := p.text()
		p.call.RequestState = text
		return ok && text != ""
	case "inputResponses":
		return p.value('{', &p.call.InputResponses)
	}
	return false
}

// reserved is the prefix of the names in _meta that belong to the protocol.
const reserved = "io.modelcontextprotocol/"

func (p *callParser) meta(name []byte) bool {
	switch string(name) {
	case "progressToken":
		if kind := p.tokens.PeekKind(); kind == '"' || kind == '0' {
			return p.value(kind, &p.call.ProgressToken)
		}
		return false
	case mcp.MetaKeyProtocolVersion:
		return p.value('"', &p.call.Version)
	case trace.ParentKey:
		return p.value('"', &p.call.TraceParent)
	case trace.StateKey:
		return p.value('"', &p.call.TraceState)
	case mcp.MetaKeyClientInfo:
		return p.value('{', &p.call.ClientInfo)
	case mcp.MetaKeyClientCapabilities:
		return p.value('{', &p.call.Capabilities)
	}
	return !bytes.HasPrefix(name, []byte(reserved)) && p.tokens.SkipValue() == nil
}

// is reads a required member that has but one value.
func (p *callParser) is(want string) bool {
	p.seen++
	value, err := p.tokens.ReadValue()
	return err == nil && string(value) == want
}

// id reads a string or a whole number small enough for every decoder to keep.
func (p *callParser) id() bool {
	const maxDigits = 15
	p.seen++
	if p.tokens.PeekKind() == '"' {
		text, ok := p.text()
		id, err := jsonrpc.MakeID(text)
		p.call.ID = id
		return ok && err == nil
	}
	value, err := p.tokens.ReadValue()
	if err != nil || len(value) > maxDigits || string(value) == "-0" {
		return false
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return false
	}
	p.call.ID, err = jsonrpc.MakeID(float64(n))
	return err == nil
}

func (p *callParser) text() (string, bool) {
	if p.tokens.PeekKind() != '"' {
		return "", false
	}
	token, err := p.tokens.ReadToken()
	if err != nil {
		return "", false
	}
	return token.String(), true
}

// value keeps a part of the message. What the decoder returns is its own until it reads on.
func (p *callParser) value(kind jsontext.Kind, into *json.RawMessage) bool {
	if p.tokens.PeekKind() != kind {
		return false
	}
	value, err := p.tokens.ReadValue()
	end := int(p.tokens.InputOffset())
	*into = p.body[end-len(value) : end : end]
	return err == nil
}
