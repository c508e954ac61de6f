package mcpserver

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
)

// plainCall is a tools/call with nothing unusual about it: a name, arguments, and metadata that changes nothing.
type plainCall struct {
	id   jsonrpc.ID
	name string
	// arguments is an object, or nil if there are none. It is a part of the message that was read.
	arguments json.RawMessage
	// version, clientInfo and capabilities are what 2026-07-28 puts into _meta: nil where they are missing.
	version, clientInfo, capabilities json.RawMessage
	// trace and traceState are the trace that the call belongs to, as JSON strings, or nil.
	trace, traceState json.RawMessage
}

// maxPlainNesting is the most brackets that a plain call may open. The SDK takes 1,000 levels, and is left to say so.
const maxPlainNesting = 1000

// parsePlainCall reads a message, or reports false if it is anything but a plain call. It is strict: for what it does
// not take the SDK has the last word, so there is no rule here that is not the SDK's too.
func parsePlainCall(body []byte) (*plainCall, bool) {
	if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) > maxPlainNesting {
		return nil, false
	}
	p := parsers.Get().(*callParser)
	defer p.release()
	p.call, p.body = new(plainCall), body
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
	call   *plainCall
	// seen are the required members that there have been.
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
		p.call.name = text
		p.seen++
		return ok
	case "arguments":
		return p.value('{', &p.call.arguments)
	case "_meta":
		return p.object(p.meta)
	}
	return false
}

// reserved is what the names begin with that the protocol has taken for itself in _meta.
const reserved = "io.modelcontextprotocol/"

func (p *callParser) meta(name []byte) bool {
	switch string(name) {
	case "progressToken":
		return false
	case mcp.MetaKeyProtocolVersion:
		return p.value('"', &p.call.version)
	case trace.ParentKey:
		return p.value('"', &p.call.trace)
	case trace.StateKey:
		return p.value('"', &p.call.traceState)
	case mcp.MetaKeyClientInfo:
		return p.value('{', &p.call.clientInfo)
	case mcp.MetaKeyClientCapabilities:
		return p.value('{', &p.call.capabilities)
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
		p.call.id = id
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
	p.call.id, err = jsonrpc.MakeID(float64(n))
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
