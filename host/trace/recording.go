package trace

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hako-run/hako/internal/clip"
)

const (
	// maxSteps, maxAttributes and maxValue bound the steps of a Recording, the attributes of a step, and the text of
	// an attribute in bytes.
	maxSteps      = 64
	maxAttributes = 12
	maxValue      = 120
	// maxLogBytes bounds all log lines of a Recording, maxLine one of them.
	maxLogBytes = 8 << 10
	maxLine     = 1 << 10
)

// Recording keeps the spans and the guest's log lines of one call in memory, whether or not the spans are exported. It
// takes at most 100 KiB, usually 2 KiB: all texts are bounded copies. It is safe for concurrent use.
type Recording struct {
	id      string
	started time.Time

	// mu guards the fields below.
	mu       sync.Mutex
	steps    []Step
	lines    []Line
	logBytes int
	// droppedSteps and droppedLines count what exceeded the limits.
	droppedSteps, droppedLines int
}

// Step is a span of a recorded call.
type Step struct {
	Name string
	// Parent is the index of the span above it, or -1.
	Parent int
	// Start is the time since the start of the call. Duration is zero while Running.
	Start, Duration time.Duration
	Running         bool
	// Failure is the kind of failure, empty if there is none.
	Failure    string
	Attributes []Attribute
}

// Attribute is an attribute of a Step. Value is a string or an int64.
type Attribute struct {
	Key   Key
	Value any
}

// Line is a log line of a guest.
type Line struct {
	Time  time.Duration // since the start of the call
	Level slog.Level
	Text  string
}

// Snapshot is a copy of a Recording.
type Snapshot struct {
	// Steps are in the order of their start. The first ones are kept.
	Steps        []Step
	DroppedSteps int
	// Lines are the last ones.
	Lines        []Line
	DroppedLines int
}

// positionKey is the key of the position in a context.
type positionKey struct{}

// position is a place in a recording: spans that are started there are children of the step with the index.
type position struct {
	recording *Recording
	step      int
}

// Record returns a context whose spans and log lines are added to the Recording of a call that starts now. Handler adds
// the ID of the call to the log records of the context.
func Record(ctx context.Context, id string) (context.Context, *Recording) {
	r := &Recording{id: id, started: time.Now(), steps: make([]Step, 0, 8)} // most calls have no more
	return context.WithValue(ctx, positionKey{}, position{r, -1}), r
}

// Log adds a guest's log line to the recording in ctx, if there is one.
func Log(ctx context.Context, level slog.Level, text string) {
	if at, ok := ctx.Value(positionKey{}).(position); ok {
		at.recording.log(level, text)
	}
}

// Snapshot returns a copy of what has been recorded so far. A nil Recording is empty.
func (r *Recording) Snapshot() Snapshot {
	if r == nil {
		return Snapshot{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{Steps: append([]Step(nil), r.steps...), DroppedSteps: r.droppedSteps,
		Lines: append([]Line(nil), r.lines...), DroppedLines: r.droppedLines}
	for i := range s.Steps {
		s.Steps[i].Attributes = append([]Attribute(nil), s.Steps[i].Attributes...)
	}
	return s
}

// Current returns the name of the latest step that is running, or "".
func (r *Recording) Current() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.steps) - 1; i >= 0; i-- {
		if r.steps[i].Running {
			return r.steps[i].Name
		}
	}
	return ""
}

// start adds a step at the position and returns the context for its children.
func (at position) start(ctx context.Context, name string) (context.Context, *recordedStep) {
	r := at.recording
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) == maxSteps {
		r.droppedSteps++
		return ctx, nil
	}
	r.steps = append(r.steps, Step{Name: clip.Marked(name, maxValue), Parent: at.step, Start: time.Since(r.started), Running: true})
	step := len(r.steps) - 1
	return context.WithValue(ctx, positionKey{}, position{r, step}), &recordedStep{r, step}
}

func (r *Recording) log(level slog.Level, text string) {
	text = clip.Marked(text, maxLine)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, Line{time.Since(r.started), level, text})
	r.logBytes += len(text) + lineOverhead
	for r.logBytes > maxLogBytes {
		r.logBytes -= len(r.lines[0].Text) + lineOverhead
		r.lines[0] = Line{} // the array behind r.lines would keep its text
		r.lines = r.lines[1:]
		r.droppedLines++
	}
}

// lineOverhead counts for each log line, so that empty lines are limited too.
const lineOverhead = 40

// recordedStep is a step of a recording. Methods of a nil *recordedStep do nothing.
type recordedStep struct {
	recording *Recording
	index     int
}

// change changes the step unless it has ended.
func (s *recordedStep) change(do func(*Step)) {
	if s == nil {
		return
	}
	s.recording.mu.Lock()
	defer s.recording.mu.Unlock()
	if step := &s.recording.steps[s.index]; step.Running {
		do(step)
	}
}

func (s *recordedStep) set(key Key, value any) {
	s.change(func(step *Step) {
		if text, ok := value.(string); ok {
			value = clip.Marked(text, maxValue)
		}
		if len(step.Attributes) < maxAttributes {
			step.Attributes = append(step.Attributes, Attribute{key, value})
		}
	})
}

func (s *recordedStep) end() {
	s.change(func(step *Step) {
		step.Running, step.Duration = false, time.Since(s.recording.started)-step.Start
	})
}
