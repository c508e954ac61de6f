package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxCalls bounds the tool calls of a response.
const maxCalls = 256

var errManyCalls = fmt.Errorf("its answer has more than %d tool calls", maxCalls)

// chatCalls assembles the calls of a response of the Chat Completions API from their parts. Each part has the index and
// the ID of its call, but some servers send index 0 or the same ID for all, no index, no ID, the ID only after the
// name, or the name with every part.
type chatCalls struct {
	list   []*chatCall
	chunks int
	// repeats reports whether the server sends the name with every part.
	repeats bool
}

// chatCall is a partially received tool call.
type chatCall struct {
	index jsonCount
	given string // the model's ID
	name  string
	// chunk is the number of the chunk with its last part.
	chunk     int
	arguments strings.Builder
	nesting   nesting // of the arguments
}

// add adds the parts of one chunk.
func (c *chatCalls) add(tools *toolset, parts []chatCallPart) error {
	c.chunks++
	for i := range parts {
		part := &parts[i]
		part.Function.Name = jsonText(strings.TrimSpace(string(part.Function.Name)))
		call := c.callFor(tools, part)
		if len(c.list) > maxCalls {
			return errManyCalls
		}
		name, arguments := string(part.Function.Name), string(part.Function.Arguments)
		if name == call.name {
			c.repeats = c.repeats || name != "" && arguments != ""
		} else {
			call.name += name
		}
		call.given = cmp.Or(call.given, string(part.ID))
		call.arguments.WriteString(arguments)
		call.nesting.add(arguments)
		call.chunk = c.chunks
	}
	return nil
}

// callFor returns the call that a part belongs to, or begins one.
func (c *chatCalls) callFor(tools *toolset, part *chatCallPart) *chatCall {
	var last *chatCall
	for _, call := range slices.Backward(c.list) {
		if call.index != part.Index {
			continue
		}
		if c.continues(tools, call, part) {
			return call
		}
		if last == nil {
			last = call
		}
		if part.ID == "" {
			break // an earlier call has ended
		}
	}
	if last != nil && part.Function.Name == "" && part.Function.Arguments != "" && !last.ended() {
		return last // a server that gives each part another ID
	}
	call := &chatCall{index: part.Index}
	c.list = append(c.list, call)
	return call
}

// ended reports whether the call has all its arguments.
func (c *chatCall) ended() bool { return c.nesting.ended() }

// nesting follows the text of a JSON object to its end. Validating the text again with each part would take the square
// of the time.
type nesting struct {
	depth           int
	begun           bool
	quoted, escaped bool
}

func (n *nesting) add(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.quoted, n.escaped = c != '"', c == '\\'
		case c == '"':
			n.quoted, n.begun = true, true
		case c == '{', c == '[':
			n.depth++
			n.begun = true
		case c == '}', c == ']':
			n.depth--
		}
	}
}

func (n *nesting) ended() bool { return n.begun && n.depth <= 0 && !n.quoted }

// continues reports whether the part, which has the index of the call, belongs to it. Another ID begins another call,
// and so does a name: in the same chunk, after complete arguments, without arguments of its own, or if it is no
// continuation of the name so far.
func (c *chatCalls) continues(tools *toolset, call *chatCall, part *chatCallPart) bool {
	name := string(part.Function.Name)
	if name != "" && call.name != "" {
		switch {
		case call.chunk == c.chunks, call.ended():
			return false
		case name == call.name && part.Function.Arguments == "" && call.arguments.Len() == 0:
			return false
		case name != call.name && !tools.continuesName(call.name, name):
			return false
		}
	}
	if call.given == "" {
		return part.ID == "" || name == "" || call.name == ""
	}
	return part.ID == "" || string(part.ID) == call.given
}

// continuesName reports whether part may be the next part of the name of a tool. It is not if one of the two is a
// tool itself, unless the two together begin the name of another.
func (t *toolset) continuesName(begun, part string) bool {
	for name := range t.sent {
		if strings.HasPrefix(name, begun+part) {
			return true
		}
	}
	return t.sent[begun] == nil && t.sent[part] == nil
}

// whole returns the calls without those that are none: repetitions of a name, and calls with neither name nor
// arguments, which some servers add to an answer. answered reports whether there is text; a lone call is kept without it,
// so that the model is told.
func (c *chatCalls) whole(answered bool) []*chatCall {
	var calls []*chatCall
	for i, call := range c.list {
		empty := strings.TrimSpace(call.arguments.String()) == ""
		repeated := c.repeats && empty && (i > 0 && call.sameAs(c.list[i-1]) ||
			i+1 < len(c.list) && call.sameAs(c.list[i+1]))
		nameless := empty && call.name == "" && (answered || len(c.list) > 1)
		if !repeated && !nameless {
			calls = append(calls, call)
		}
	}
	return calls
}

func (c *chatCall) sameAs(other *chatCall) bool {
	return c.index == other.index && c.name == other.name && c.given == other.given
}
