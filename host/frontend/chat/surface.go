package chat

import (
	"encoding/json"
	"sync"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/pipeline"
)

// Surface shows the progress of a turn to a person. Its methods are called in order and never concurrently, except for
// the functions of Prompter. They block the turn, so they must not wait for people.
type Surface interface {
	// Text shows the next part of the model's text.
	Text(delta string)
	// ToolStarted and ToolEnded show the start and the outcome of a tool call; every started call ends. id identifies
	// the call in its turn and is not the model's. title and short are in the caller's language; short is one line and
	// may be empty.
	ToolStarted(id, name, title string)
	ToolEnded(id string, outcome pipeline.Outcome, short string)
	// Notice shows a message about the turn that is not part of the answer.
	Notice(kind Notice, text string)
	// Prompter returns how the person can be asked for approval of the call and for input during it. Only Ask and Fill
	// are used: a turn cannot wait for a second call. Both may block and may run concurrently with the other methods.
	Prompter(call ToolCall) approval.Prompter
}

// ToolCall is a call requested by the model. ID is that of ToolStarted.
type ToolCall struct {
	ID, Name, Title string
	Arguments       json.RawMessage
}

// Notice is the kind of a message to a Surface.
type Notice string

// The notices.
const (
	NoticeInterrupted Notice = "interrupted" // the previous answer was interrupted
	NoticeWaiting     Notice = "waiting"     // the turn waits for an earlier one of the conversation
	NoticeRetrying    Notice = "retrying"    // a model failed and is asked again, or another one is
	NoticeShortened   Notice = "shortened"   // older messages were summarised
	NoticeLimit       Notice = "limit"       // the model was stopped from calling more tools
	NoticeLength      Notice = "length"      // the answer was cut off
	NoticeRefused     Notice = "refused"     // the model or its provider refused
	NoticeFile        Notice = "file"        // an attached file was left out
)

// display calls a Surface, one method at a time. Without a Surface it does nothing.
type display struct {
	mu      sync.Mutex
	surface Surface
	// written reports whether the model has written text, broken that its next text begins a new paragraph.
	written, broken bool
}

func (s *display) do(f func(Surface)) {
	if s.surface == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.surface)
}

// text shows the model's text. Text after tool calls begins a new paragraph.
func (s *display) text(delta string) {
	if delta == "" {
		return
	}
	s.do(func(surface Surface) {
		if s.broken && s.written {
			surface.Text("\n\n")
		}
		s.written, s.broken = true, false
		surface.Text(delta)
	})
}

func (s *display) paragraph() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
}

func (s *display) notice(kind Notice, text string) {
	s.do(func(surface Surface) { surface.Notice(kind, text) })
}

// prompter returns how people at the surface can be asked about the call.
func (s *display) prompter(call ToolCall) (prompter approval.Prompter) {
	s.do(func(surface Surface) { prompter = surface.Prompter(call) })
	return approval.Prompter{Ask: prompter.Ask, Fill: prompter.Fill}
}
