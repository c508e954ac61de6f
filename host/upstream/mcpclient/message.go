package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/visible"
)

// The SDK ends a session at the first message that it cannot decode. So everything that a server sends over either
// transport passes an inbound first, which lets only messages through that the SDK can decode. What looks like the
// response to a request but is not valid becomes an error response to that request. The rest is noise.

const (
	// maxExcerpt bounds what an error shows of a server's message, in characters.
	maxExcerpt = 200
	// maxStarts bounds the places in a text at which the beginning of a message is looked for, and searchLength the
	// part of the text with these places, in bytes.
	maxStarts, searchLength = 4, headLength
)

// inbound turns what a server sends into messages for the SDK. Only one goroutine may use it.
type inbound struct {
	requests *requests
	// token marks the questions on the stream of a call, unless it is empty.
	token string
	// session reports whether the request named a session, which the server may have forgotten.
	session bool
	// noise is called with what is no message.
	noise func(text []byte)
}

// messages are what the SDK receives for a text.
type messages struct {
	list [][]byte
	// answers counts the responses to open requests among them. answer is the last one.
	answers int
	answer  []byte
}

func (m *messages) add(message []byte) { m.list = append(m.list, message) }

func (m *messages) addAnswer(message []byte) {
	m.add(message)
	m.answers++
	m.answer = message
}

// read returns the messages in a text: usually one. It accepts several in a row, batches (MCP 2025-03-26), and byte
// order marks and control sequences of terminals between them. After other text, which a program has written without
// the end of a line, it accepts responses only: in the middle of a log line, a request is most likely a copy.
func (in *inbound) read(text []byte) (m messages) {
	for mixed := false; ; {
		if text = trimControls(text); len(text) == 0 {
			return m
		}
		length, repeated := valueLength(text)
		switch {
		case length == 0 || text[0] != '{' && text[0] != '[':
			mixed = true
			if length = in.nextStart(text); length == 0 {
				in.broken(&m, text)
				return m
			}
			in.noise(text[:length])
		case text[0] == '[':
			in.batch(&m, text[:length], repeated, mixed)
		default:
			in.message(&m, text[:length], repeated, mixed)
		}
		text = text[length:]
	}
}

// tooMuch handles the beginning of a text that exceeds a limit, whose code is given.
func (in *inbound) tooMuch(head []byte, code int64) (m messages) {
	e := envelopeOf(trimControls(head))
	if e.method != nil || e.id == nil && e.result == nil && e.error == nil || e.jsonrpc == nil && e.others {
		in.noise(head)
		return m
	}
	in.refuse(&m, &e, code, refusalText[code])
	return m
}

// batch handles a list of messages.
func (in *inbound) batch(m *messages, list []byte, repeated, mixed bool) {
	if inside := bytes.TrimSpace(list[1:]); inside[0] != '{' {
		in.noise(list)
		return
	}
	for element := range elements(list) {
		if len(element) > 0 && element[0] == '{' {
			in.message(m, element, repeated, mixed)
		} else {
			in.noise(element)
		}
	}
}

// message handles a valid JSON object. It is a message only with jsonrpc and either a method, a result or an error:
// programs also log in JSON. An object with nothing but an id and a result or an error counts as a response. repeated
// reports whether it has a duplicate key, mixed whether it comes after other text.
func (in *inbound) message(m *messages, object []byte, repeated, mixed bool) {
	e := envelopeOf(object)
	switch isResponse := e.method == nil && (e.result != nil || e.error != nil || e.id != nil && e.jsonrpc != nil); {
	case isResponse && (e.jsonrpc != nil || !e.others):
		in.response(m, &e, repeated)
	case e.jsonrpc == nil || e.method == nil || repeated || mixed:
		in.noise(object)
	default:
		if _, err := jsonrpc.DecodeMessage(object); err != nil {
			in.noise(object)
			return
		}
		if in.token != "" && bytes.Contains(object, []byte("elicitation/create")) {
			object = marked(object, in.token)
		}
		m.add(bytes.Clone(object))
	}
}

// response handles a response. It also accepts an id that is the text of the number, and a null id with an error if
// only one request is open.
func (in *inbound) response(m *messages, e *envelope, repeated bool) {
	object, failure := e.text, failureOf(e)
	switch {
	case repeated:
		in.refuse(m, e, codeTwice, refusalText[codeTwice])
		return
	case string(e.jsonrpc) != `"2.0"`:
		in.refuse(m, e, codeInvalid, `it is not marked as a response with "jsonrpc": "2.0": `+excerpt(object))
		return
	case e.error == nil && e.result == nil:
		in.refuse(m, e, codeInvalid, "it has neither a result nor an error: "+excerpt(object))
		return
	case e.error != nil && failure == nil:
		in.refuse(m, e, codeInvalid, "its error is not an object with a code and a message: "+excerpt(e.error))
		return
	}
	id, x, named := in.requests.take(e)
	if x == nil {
		in.unexpected(e)
		return
	}
	if failure == nil && !named {
		m.addAnswer(refusal(id, codeInvalid, fmt.Sprintf("it does not have the id %d of the request: %s", id,
			excerpt(object))))
		return
	}
	if failure == nil {
		if err := checkResult(x.method, e.result); err != nil {
			m.addAnswer(refusal(id, codeInvalid, err.Error()))
			return
		}
	}
	message := append([]byte(`{"jsonrpc":"2.0","id":`), strconv.AppendInt(nil, id, 10)...)
	if failure != nil {
		message = append(append(message, `,"error":`...), failure.raw...)
	} else {
		message = append(append(message, `,"result":`...), e.result...)
	}
	message = exact(append(message, '}'))
	if _, err := jsonrpc.DecodeMessage(message); err != nil {
		m.addAnswer(refusal(id, codeInvalid, "it cannot be decoded: "+excerpt(object)))
		return
	}
	if failure != nil && in.session && failure.sessionGone() {
		x.lost.Store(true)
	}
	x.receive(e.result)
	m.addAnswer(message)
}

// refuse adds an error response to the request that a response belongs to.
func (in *inbound) refuse(m *messages, e *envelope, code int64, text string) {
	id, x, _ := in.requests.take(e)
	if x == nil {
		in.unexpected(e)
		return
	}
	m.addAnswer(refusal(id, code, text))
}

// broken handles text that is not JSON. If it looks like a response, the request gets an error response.
func (in *inbound) broken(m *messages, text []byte) {
	for start := range starts(text) {
		e := envelopeOf(text[start:])
		if e.jsonrpc == nil || e.method != nil {
			continue
		}
		if e.id == nil && e.result == nil && e.error == nil {
			in.requests.setOdd(excerpt(text[start:]))
			continue
		}
		if err := strictjson.Check(text[start:]); err != nil {
			in.refuse(m, &e, codeInvalid, fmt.Sprintf("it is not valid JSON (%v): %s", err, excerpt(text[start:])))
			return
		}
	}
	in.noise(text)
}

// unexpected handles a response that belongs to no open request. It may be late, since calls are canceled, or repeated.
// Otherwise it is kept for the error of the call that waits for it.
func (in *inbound) unexpected(e *envelope) {
	if !in.requests.past(e) {
		in.requests.setOdd(excerpt(e.text))
		in.noise(e.text)
	}
}

// nextStart returns where after its beginning a text has a response to an open request, or zero.
func (in *inbound) nextStart(text []byte) int {
	for start := range starts(text) {
		if start == 0 {
			continue
		}
		length, _ := valueLength(text[start:])
		e := envelopeOf(text[start : start+length])
		if e.jsonrpc != nil && e.method == nil && in.requests.open(&e) {
			return start
		}
	}
	return 0
}

// starts yields the places at which a message may begin.
func starts(text []byte) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for _, place := range firstMembers.FindAllIndex(text[:min(len(text), searchLength)], maxStarts) {
			if !yield(place[0]) {
				return
			}
		}
	}
}

// firstMembers are the beginnings of messages.
var firstMembers = regexp.MustCompile(`\{\s*"(jsonrpc|id|result|error)"\s*:`)

// controls are byte order marks, white space, control characters and the control sequences of terminals (ECMA-48).
var controls = `(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x20\x7f]|\x{feff})+`

var leading, trailing = regexp.MustCompile(`^` + controls), regexp.MustCompile(controls + `$`)

// trimControls removes the controls at both ends.
func trimControls(text []byte) []byte {
	text = bytes.Trim(text, " \t\r\n")
	if len(text) > 0 && text[0] != '{' && text[0] != '[' {
		text = text[len(leading.Find(text)):]
	}
	if end := text[max(0, len(text)-64):]; len(end) > 0 && end[len(end)-1] != '}' && end[len(end)-1] != ']' {
		text = text[:len(text)-len(trailing.Find(end))]
	}
	return text
}

// valueLength returns the length of the JSON value at the beginning of a text, or zero if it is not valid. repeated
// reports whether an object in it has a duplicate key.
func valueLength(text []byte) (length int, repeated bool) {
	for _, repeated := range []bool{false, true} {
		d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(repeated),
			jsontext.AllowInvalidUTF8(true))
		err := d.SkipValue()
		if err == nil {
			return int(d.InputOffset()), repeated
		}
		if !errors.Is(err, jsontext.ErrDuplicateName) {
			break
		}
	}
	return 0, false
}

// failure is the error in a response.
type failure struct {
	raw     []byte
	code    int64
	message string
}

// failureOf returns the error of a response, or nil if there is none or the SDK cannot decode it.
func failureOf(e *envelope) *failure {
	if e.error == nil {
		return nil
	}
	var members struct {
		Code    jsontext.Value `json:"code"`
		Message *string        `json:"message"`
	}
	if strictjson.Unmarshal(e.error, &members) != nil || members.Message == nil {
		return nil
	}
	code, err := strconv.ParseInt(string(members.Code), 10, 64)
	if err != nil {
		return nil
	}
	return &failure{e.error, code, *members.Message}
}

// forgotten are the texts with which servers say that they do not know a session.
var forgotten = regexp.MustCompile(`(?i)session (id )?(is |was )?(not found|unknown|invalid|expired|terminated|does not exist)|` +
	`(no valid|invalid|unknown|expired|no such) session|server not initialized`)

// sessionGone reports whether the error says that the server does not know the session. MCP has the status 404 for that;
// some servers answer with another one, or with 200.
func (f *failure) sessionGone() bool {
	return (f.code == -32000 || f.code == -32001 || f.code == jsonrpc.CodeInvalidRequest) &&
		forgotten.MatchString(f.message)
}

// excerpt returns the beginning of what a server sent, for an error text.
func excerpt(text []byte) string {
	head := string(text[:min(len(text), 4*maxExcerpt)])
	return clip.Runes(oneLine(visible.Line(head)), maxExcerpt)
}

func isNull(value []byte) bool { return string(value) == "null" }

// envelope has the members of a message as they came, or nil. The last one of a name counts. A null error, and a null
// method, are no error and no method.
type envelope struct {
	text                               []byte
	jsonrpc, id, method, result, error []byte
	// others reports whether there are further members.
	others bool
}

// envelopeOf reads the members of an object. Of invalid JSON it reads what it recognizes.
func envelopeOf(text []byte) envelope {
	e := envelope{text: text}
	for name, value := range members(text) {
		switch string(name) {
		case "jsonrpc":
			e.jsonrpc = value
		case "id":
			e.id = value
		case "method":
			if e.method = value; isNull(value) {
				e.method = nil
			}
		case "result":
			e.result = value
		case "error":
			if e.error = value; isNull(value) {
				e.error = nil
			}
		default:
			e.others = true
		}
	}
	return e
}

// members yields the names and values of an object. It accepts any bytes: of invalid JSON it yields what it recognizes.
// Names are yielded without their quotes, as they are written. A number that the text's end may have cut is omitted.
func members(text []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		var name []byte
		begin := 1 // of the current name, then of the value
		walk(text, func(i int, c byte) bool {
			switch {
			case c == ':' && name == nil:
				name, begin = bytes.Trim(text[begin:i], " \t\r\n\""), i+1
				return true
			case c == ':':
				return true
			}
			value := bytes.TrimSpace(text[begin:i])
			begin = i + 1
			cut := c == 0 && len(value) > 0 && value[0] != '"' // a number may go on
			if name != nil && len(value) > 0 && !cut && !yield(name, value) {
				return false
			}
			name = nil
			return c == ','
		})
	}
}

// elements yields the values of a list.
func elements(text []byte) func(yield func(value []byte) bool) {
	return func(yield func(value []byte) bool) {
		begin := 1
		walk(text, func(i int, c byte) bool {
			if c == ':' {
				return true
			}
			value := bytes.TrimSpace(text[begin:i])
			begin = i + 1
			return (len(value) == 0 || yield(value)) && c == ','
		})
	}
}

// walk calls found with the place of each colon and comma directly in the object or list at the beginning of a text,
// and at last with that of its end, or of the text's, until found returns false.
func walk(text []byte, found func(i int, c byte) bool) {
	if len(text) == 0 {
		return
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				found(i, c)
				return
			}
		case depth == 1 && (c == ',' || c == ':'):
			if !found(i, c) {
				return
			}
		}
	}
	found(len(text), 0)
}

// requests are the open requests whose responses a stream may carry. They are safe for concurrent use.
type requests struct {
	mu   sync.Mutex
	byID map[int64]*exchange
	// last is the largest id so far.
	last int64
	// odd is the beginning of the last response that belonged to no request.
	odd string
}

// add adds a request, until remove is called or its response is taken.
func (r *requests) add(id int64, x *exchange) (remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[int64]*exchange{}
	}
	if len(r.byID) == 0 {
		r.odd = ""
	}
	r.byID[id] = x
	r.last = max(r.last, id)
	return func() { r.remove(id) }
}

func (r *requests) remove(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// find returns the request that a response belongs to. named reports whether it has the request's id. Without the id of
// any request, it belongs to the only open request, if there is just one. The caller holds mu.
func (r *requests) find(e *envelope) (id int64, x *exchange, named bool) {
	if n, ok := number(e.id); ok && (r.byID[n] != nil || n > 0 && n <= r.last) {
		return n, r.byID[n], true
	}
	for n, other := range r.byID {
		switch {
		case other.method == methodListen: // it is answered at its end
		case x != nil:
			return 0, nil, false
		default:
			id, x = n, other
		}
	}
	return id, x, false
}

// take removes and returns the request that a response belongs to, or nil.
func (r *requests) take(e *envelope) (id int64, x *exchange, named bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, x, named = r.find(e); x != nil {
		delete(r.byID, id)
	}
	return id, x, named
}

// open reports whether a response has the id of an open request.
func (r *requests) open(e *envelope) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, x, named := r.find(e)
	return x != nil && named
}

// past reports whether a response belongs to an earlier request.
func (r *requests) past(e *envelope) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := number(e.id)
	return ok && id > 0 && id <= r.last
}

func (r *requests) setOdd(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.odd = text
}

// takeOdd returns and forgets the beginning of the last response that belonged to no request.
func (r *requests) takeOdd() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.odd
	r.odd = ""
	return text
}

// number returns the integer that an id stands for: 1, "1" and 1.0 are the same.
func number(id []byte) (int64, bool) {
	if len(id) > 2 && id[0] == '"' {
		id = id[1 : len(id)-1]
	}
	if len(id) > 20 {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(id), 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// refusal returns an error response to the request with this id.
func refusal(id, code int64, text string) []byte {
	message, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text},
	})
	if err != nil {
		return nil
	}
	return message
}

// Codes of the errors that replace a response: it is too long, holds too many values, has an object with a key twice,
// is not valid, or has a status of HTTP that says that the request failed. JSON-RPC leaves them to implementations.
const (
	codeTooLarge = -32000 - 98
	codeTooMuch  = -32000 - 97
	codeTwice    = -32000 - 96
	codeInvalid  = -32000 - 95
	codeStatus   = -32000 - 94
)

// refusalText has error texts by code.
var refusalText = map[int64]string{
	codeTooLarge: "the response is too large",
	codeTooMuch:  fmt.Sprintf("the response has more than %d entries or %d values", maxItems, maxValues),
	codeTwice:    "an object in it has a duplicate key",
}

// codeResourceNotFound is the code for a missing resource, up to MCP 2025-11-25.
const codeResourceNotFound = -32002

// blockTypes are the content blocks of a tool's result, with the member that must be a text.
var blockTypes = map[string]string{"text": "text", "image": "data", "audio": "data", "resource_link": "uri",
	"resource": ""}

// checkResult returns an error for a result whose form is not that of MCP. It finds what servers get wrong in the
// results of tools; the rest is left to the SDK.
func checkResult(method string, result []byte) error {
	if method != "tools/call" {
		return nil
	}
	if len(result) == 0 || result[0] != '{' {
		return fmt.Errorf("its result is %s, not an object: %s", kindOf(result), excerpt(result))
	}
	for name, value := range members(result) {
		if string(name) != "content" {
			continue
		}
		switch value[0] {
		case '[':
			n := 0
			for block := range elements(value) {
				if err := checkBlock(block); err != nil {
					return fmt.Errorf("content[%d] %w: %s", n, err, excerpt(block))
				}
				n++
			}
		case '{', 'n':
		default:
			return fmt.Errorf("its content is %s, not a list of blocks: %s", kindOf(value), excerpt(value))
		}
	}
	return nil
}

// checkBlock returns an error for an invalid content block. It continues a sentence about the block.
func checkBlock(block []byte) error {
	if block[0] != '{' {
		return fmt.Errorf("is %s, not an object", kindOf(block))
	}
	var kind []byte
	for name, value := range members(block) {
		if string(name) == "type" {
			kind = value
		}
	}
	if kind == nil {
		return errors.New("has no type")
	}
	text, known := blockTypes[string(bytes.Trim(kind, `"`))]
	if !known {
		return fmt.Errorf("has the type %s, not one of text, image, audio, resource_link and resource",
			excerpt(kind))
	}
	for name, value := range members(block) {
		if string(name) == text && value[0] != '"' && value[0] != 'n' {
			return fmt.Errorf("has %s as its %s, not a text", kindOf(value), text)
		}
	}
	return nil
}

// kindOf names the kind of a JSON value.
func kindOf(value []byte) string {
	if len(value) == 0 {
		return "missing"
	}
	switch value[0] {
	case '"':
		return "a text"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}
