package llm

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Marks that local models write into their text if their server does not know them.
const (
	// thinkStart and thinkEnd enclose thoughts, as of Qwen3. Models whose prompt ends with the start, such as
	// DeepSeek-R1, write only the end.
	thinkStart, thinkEnd = "<think>", "</think>"
	// callStart and callEnd enclose a call, as of Qwen and Hermes models.
	callStart, callEnd = "<tool_call>", "</tool_call>"
)

// thinkingHabit is whether a model writes thinkEnd without thinkStart.
type thinkingHabit int32

const (
	habitUnknown thinkingHabit = iota
	habitPairs                 // it does not think, or between the two marks
	habitLone
)

// maxUndecided bounds the beginning of a response, in bytes, that is held back while it is not known whether the model
// writes thinkEnd alone.
const maxUndecided = 2 << 10

// textFilter removes a model's thoughts from a streamed response, and reads the calls that it has written as text.
// Marks within code are text. The zero value is ready for the start of a response.
type textFilter struct {
	habit thinkingHabit
	// calls reports whether the model may call tools.
	calls bool

	// held is text that is not decided yet, ready what is decided and held back as the possible end of thoughts.
	held, ready []byte
	// from is where the search of held for the end of a block goes on.
	from int
	// block is the mark at the start of held if that is in thoughts or calls, or empty.
	block string
	// wrote reports whether there was text other than white space, begun whether some was released.
	wrote, begun bool
	// thought reports whether there were thoughts and no text after them yet.
	thought bool
	// lone reports whether thoughts ended that had not begun, late whether they had been released.
	lone, late bool
	// paired reports whether thoughts had both marks.
	paired bool
	ended  bool
	code   codeScanner
}

// add adds a part of the response and returns the text that can be shown now.
func (t *textFilter) add(part string) string {
	t.held = append(t.held, part...)
	t.scan(false)
	return t.release()
}

// end returns the rest of the text at the end of the response, and the calls that it had instead. called reports whether
// the response has other calls.
func (t *textFilter) end(called bool, tools *toolset) (text string, calls []Call) {
	t.scan(true)
	switch {
	case t.block == callStart:
		if !called {
			calls = writtenCalls(string(t.held), tools)
		}
		if calls == nil {
			t.decide(len(t.held))
		}
	case t.wrote: // what began thoughts is text, because they never ended
		t.decide(len(t.held))
	}
	t.ended = true
	return t.release(), calls
}

// takeLone reports, once, whether the text released so far were thoughts.
func (t *textFilter) takeLone() bool {
	late := t.late
	t.late = false
	return late
}

// release returns the text that is decided, unless it may be thoughts.
func (t *textFilter) release() string {
	undecided := t.habit == habitLone || t.habit == habitUnknown && len(t.ready) <= maxUndecided
	if !t.ended && !t.begun && (!t.wrote || undecided && !t.lone && !t.paired) {
		return ""
	}
	text := string(t.ready)
	t.ready = t.ready[:0]
	t.begun = t.begun || text != ""
	return text
}

// decide moves the first n bytes of held to ready. White space after thoughts is dropped.
func (t *textFilter) decide(n int) {
	text := t.held[:n]
	t.code.add(text)
	if t.thought {
		text = bytes.TrimLeft(text, " \r\n")
		t.thought = len(text) == 0
	}
	t.wrote = t.wrote || len(bytes.TrimSpace(text)) > 0
	t.ready = append(t.ready, text...)
	t.drop(n)
}

func (t *textFilter) drop(n int) {
	t.held, t.from = t.held[n:], 0
}

// scan decides as much of the held text as it can. final reports whether no more follows.
func (t *textFilter) scan(final bool) {
	for {
		switch {
		case t.block == callStart:
			return
		case t.block == thinkStart:
			if !t.closeThoughts() {
				return
			}
			continue
		}
		at := bytes.IndexByte(t.held, '<')
		if at < 0 {
			t.decide(len(t.held))
			return
		}
		t.decide(at)
		if !t.mark(final) {
			return
		}
	}
}

// mark decides on the "<" at the start of held. It reports false if that needs more text.
func (t *textFilter) mark(final bool) bool {
	is := func(mark string) bool { return bytes.HasPrefix(t.held, []byte(mark)) }
	begins := func(mark string) bool {
		return !final && len(t.held) < len(mark) && mark[:len(t.held)] == string(t.held)
	}
	switch {
	case t.code.inCode():
		t.decide(1)
	case is(thinkStart):
		t.block, t.from = thinkStart, len(thinkStart)
		if !t.wrote {
			t.ready = nil // white space
		}
	case is(callStart) && t.calls && t.code.line == atStart:
		t.block = callStart
	case is(thinkEnd):
		return t.endLone(final)
	case begins(thinkStart), begins(thinkEnd), begins(callStart):
		return false
	default:
		t.decide(1)
	}
	return true
}

// closeThoughts drops the thoughts at the start of held if they have ended. Of those at the start of a response it keeps
// only what may begin the end mark.
func (t *textFilter) closeThoughts() bool {
	if at := bytes.Index(t.held[t.from:], []byte(thinkEnd)); at >= 0 {
		t.drop(t.from + at + len(thinkEnd))
		t.block, t.thought, t.paired = "", !t.wrote, true
		return true
	}
	t.from = max(t.from, len(t.held)-len(thinkEnd)+1)
	if !t.wrote {
		t.drop(t.from)
	}
	return false
}

// maxBlank bounds the white space after an end mark, in bytes, of which it depends whether the mark ends its line.
const maxBlank = 64

// endLone decides on an end mark at the start of held without a start mark. It ends thoughts if there were none before,
// and if it begins or ends a line. It reports false if that needs more text.
func (t *textFilter) endLone(final bool) bool {
	rest := bytes.TrimLeft(t.held[len(thinkEnd):], " \r")
	alone := t.code.line == atStart || final && len(rest) == 0 || len(rest) > 0 && rest[0] == '\n'
	switch {
	case t.lone || t.paired || !alone && (len(rest) > 0 || len(t.held) > maxBlank):
		t.decide(len(thinkEnd))
		return true
	case !alone:
		return false
	}
	t.late, t.lone, t.thought = t.begun, true, true
	t.ready, t.wrote, t.code = nil, false, codeScanner{}
	t.drop(len(thinkEnd))
	return true
}

// codeScanner follows Markdown text to tell whether it is within code: a fenced block, or a span in a line.
type codeScanner struct {
	fenced bool
	line   linePosition
	// fence and ticks count the backticks of the line: those that it begins with, and all.
	fence, ticks int
}

type linePosition int

const (
	atStart linePosition = iota // after nothing but white space
	inFence                     // after backticks at the start
	inText
)

func (c *codeScanner) add(text []byte) {
	for _, b := range text {
		switch {
		case b == '\n':
			*c = codeScanner{fenced: c.fenced != (c.fence >= 3)}
		case b == '`' && c.line != inText:
			c.line = inFence
			c.fence++
			c.ticks++
		case b == '`':
			c.ticks++
		case c.line == inFence, !strings.ContainsRune(" \t\r", rune(b)):
			c.line = inText
		}
	}
}

func (c *codeScanner) inCode() bool { return c.fenced || c.ticks%2 == 1 }

// writtenCalls returns the calls that a response ends with as text. It is nil if that is not nothing but calls of tools
// that the model was given: other text may quote a call.
func writtenCalls(text string, tools *toolset) []Call {
	var calls []Call
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		rest, ok := strings.CutPrefix(text, callStart)
		if !ok || len(calls) == maxCalls {
			return nil
		}
		var block string
		block, text, _ = strings.Cut(rest, callEnd)
		var call struct {
			Name      string        `json:"name"`
			Arguments jsonArguments `json:"arguments"`
		}
		if json.Unmarshal([]byte(block), &call) != nil || tools.sent[call.Name] == nil {
			return nil
		}
		calls = append(calls, Call{Name: call.Name, Arguments: json.RawMessage(call.Arguments)})
	}
	return calls
}
