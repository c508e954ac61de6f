package llm

import "strings"

// The marks that some local models, such as Qwen3, put around their thoughts, at the beginning of an answer's text.
const beginThought, endThought = "<think>", "</think>"

// thoughts takes a model's thoughts out of the text of its answer. Servers that know the model do so themselves. The zero value is at
// the beginning of an answer.
type thoughts struct {
	thinks  bool   // between the marks
	thought bool   // there were marks
	done    bool   // no mark will follow
	begun   bool   // something was passed on
	held    string // what may be part of a mark
}

// pass returns what of the answer has come with the next part of its text.
func (t *thoughts) pass(part string) string {
	if t.begun {
		return part
	}
	t.held += part
	if !t.thinks && !t.done {
		t.open()
	}
	if t.thinks {
		t.close()
	}
	if !t.done {
		return ""
	}
	return t.release()
}

// open looks for the first mark.
func (t *thoughts) open() {
	text := strings.TrimLeft(t.held, " \r\n")
	if rest, ok := strings.CutPrefix(text, beginThought); ok {
		t.thinks, t.held = true, rest
		return
	}
	t.done = !strings.HasPrefix(beginThought, text)
}

// close looks for the second mark, and forgets the thoughts before it.
func (t *thoughts) close() {
	if _, rest, ok := strings.Cut(t.held, endThought); ok {
		t.thinks, t.done, t.thought, t.held = false, true, true, rest
		return
	}
	t.held = t.held[max(0, len(t.held)-len(endThought)):]
}

// release passes on what was held back.
func (t *thoughts) release() string {
	text := t.held
	if t.thought {
		text = strings.TrimLeft(text, " \r\n")
	}
	t.held, t.begun = "", text != ""
	return text
}

// end returns what was held back of an answer that is over.
func (t *thoughts) end() string {
	if t.thinks {
		return "" // it thought to the end
	}
	return t.release()
}
