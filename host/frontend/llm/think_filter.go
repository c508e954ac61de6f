package llm

import "strings"

// thinkStart and thinkEnd enclose the thinking of some local models, such as Qwen3, at the start of a response.
const thinkStart, thinkEnd = "<think>", "</think>"

// maxBlank bounds the white space before the start mark, which is held back.
const maxBlank = 64

// thinkFilter removes a model's thinking from a streamed response. Servers that know the model do that themselves. The
// zero value is ready for the start of a response.
type thinkFilter struct {
	thinks  bool   // between the marks
	thought bool   // there were marks
	done    bool   // no mark can follow
	begun   bool   // text was released
	held    string // text that may be part of a mark
}

// filter adds a part of the response and returns the text that can be shown now.
func (t *thinkFilter) filter(part string) string {
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

// open looks for the start mark.
func (t *thinkFilter) open() {
	text := strings.TrimLeft(t.held, " \r\n")
	if len(t.held)-len(text) > maxBlank {
		t.done = true
		return
	}
	if rest, ok := strings.CutPrefix(text, thinkStart); ok {
		t.thinks, t.held = true, rest
		return
	}
	t.done = !strings.HasPrefix(thinkStart, text)
}

// close looks for the end mark and drops the text before it.
func (t *thinkFilter) close() {
	if _, rest, ok := strings.Cut(t.held, thinkEnd); ok {
		t.thinks, t.done, t.thought, t.held = false, true, true, rest
		return
	}
	t.held = t.held[max(0, len(t.held)-len(thinkEnd)):]
}

// release returns the held text.
func (t *thinkFilter) release() string {
	text := t.held
	if t.thought {
		text = strings.TrimLeft(text, " \r\n")
	}
	t.held, t.begun = "", text != ""
	return text
}

// end returns the held text at the end of the response.
func (t *thinkFilter) end() string {
	if t.thinks {
		return "" // the end mark never came
	}
	return t.release()
}
