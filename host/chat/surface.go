package chat

import (
	"encoding/json"
	"sync"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/pipeline"
)

// Surface is where a person watches a turn. One call of its methods ends before the next one begins, in the order of what happens;
// each holds up the turn, so none may wait for people or for long.
type Surface interface {
	// Text continues what the model writes.
	Text(delta string)
	// ToolStarted tells of a tool call that begins, ToolEnded of how it ended: every one that was started ends. id tells the calls of a
	// turn apart. title and short are in the caller's language; short is one line, and may be empty.
	ToolStarted(id, name, title string)
	ToolEnded(id string, outcome pipeline.Outcome, short string)
	// Notice says something about the turn that is no part of the answer.
	Notice(kind Notice, text string)
	// Way is how the person can be asked about the call, and by a server during it. Only Ask and Fill count: a model's turn cannot wait for
	// a second call. Both are called beside the other methods, and may wait.
	Way(call ToolCall) approval.Way
}

// ToolCall is one that the model wants.
type ToolCall struct {
	ID, Name, Title string
	Arguments       json.RawMessage
}

// Notice sorts what a Surface is told besides text and tools.
type Notice string

// The notices.
const (
	NoticeInterrupted Notice = "interrupted" // the answer before this turn broke off
	NoticeWaiting     Notice = "waiting"     // another turn of the conversation comes first
	NoticeShortened   Notice = "shortened"   // older messages were summarised
	NoticeLimit       Notice = "limit"       // the model was stopped from calling more tools
	NoticeBudget      Notice = "budget"      // a budget is used up
	NoticeLength      Notice = "length"      // the answer was cut off
	NoticeRefused     Notice = "refused"     // the model or its provider refused
)

// screen passes what happens to a Surface, one thing at a time. Without a Surface it does nothing.
type screen struct {
	mu      sync.Mutex
	surface Surface
	// written says that the model has written something, broken that what it writes next is another paragraph.
	written, broken bool
}

func (s *screen) do(f func(Surface)) {
	if s.surface == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.surface)
}

// text passes on what the model writes. What it writes after calling tools is a paragraph of its own.
func (s *screen) text(delta string) {
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

func (s *screen) paragraph() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
}

func (s *screen) notice(kind Notice, text string) {
	s.do(func(surface Surface) { surface.Notice(kind, text) })
}

// way is how people at the surface can be asked about the call.
func (s *screen) way(call ToolCall) (way approval.Way) {
	s.do(func(surface Surface) { way = surface.Way(call) })
	return approval.Way{Ask: way.Ask, Fill: way.Fill}
}
