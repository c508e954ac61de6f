package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hako-run/hako/internal/strictjson"
)

// Types of events that matter here (platform.claude.com/docs/en/managed-agents/events-and-streaming).
const (
	typeCall             = "agent.custom_tool_use"
	typeResult           = "user.custom_tool_result"
	typeInterrupt        = "user.interrupt"
	typeRunning          = "session.status_running"
	typeIdle             = "session.status_idle"
	typeTerminated       = "session.status_terminated"
	typeDeleted          = "session.deleted"
	typeThreadTerminated = "session.thread_status_terminated"
)

// eventTypes are those that are listed.
var eventTypes = []string{typeCall, typeResult, typeInterrupt, typeRunning, typeIdle, typeTerminated, typeDeleted,
	typeThreadTerminated}

// event has the relevant fields of a session's event. Fields that its type does not have are empty.
type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	// ProcessedAt is nil while the event is queued.
	ProcessedAt *time.Time `json:"processed_at"`
	// Thread identifies a subagent; empty means the session's own, or for an interrupt all of them.
	Thread string `json:"session_thread_id"`
	// Name and Input are a call's. Input is kept as it was written, so that no number loses digits.
	Name  string          `json:"name"`
	Input json.RawMessage `json:"-"`
	// refused explains why Input was left out, after "The arguments of NAME": it is longer than maxInput, or an object
	// in it has a key twice.
	refused string
	// Call is the ID of the call that a result is for.
	Call string `json:"custom_tool_use_id"`
	// Stop is the reason for which the session is idle.
	Stop struct {
		Type   string   `json:"type"`
		Events []string `json:"event_ids"`
	} `json:"stop_reason"`
}

// maxInput bounds the arguments of a call, in bytes.
const maxInput = 4 << 20

// maxName bounds the name of a called tool, in bytes. The API allows 128.
const maxName = 256

// parseEvent parses and validates an event.
func parseEvent(raw string) (*event, error) {
	e := new(event)
	input, err := strictjson.UnmarshalExcept([]byte(raw), "input", e)
	if err != nil {
		return nil, fmt.Errorf("an event cannot be read: %w", err)
	}
	switch {
	case e.Type == typeCall && (!identifier().MatchString(e.ID) || e.Name == "" || len(e.Name) > maxName):
		return nil, fmt.Errorf("an event of type %s has no ID or no tool name", typeCall)
	case e.Type == typeResult && !identifier().MatchString(e.Call):
		return nil, fmt.Errorf("an event of type %s does not name its call", typeResult)
	case e.Thread != "" && !identifier().MatchString(e.Thread):
		return nil, errors.New("an event has an invalid thread ID")
	}
	if len(input) > maxInput {
		e.refused = fmt.Sprintf("have more than %d bytes, and it was not called. Call it again with less.", maxInput)
	} else if input != nil {
		if err := strictjson.Check(input); err != nil {
			e.refused = fmt.Sprintf("cannot be used (%v), and it was not called. Call it again with each key once.",
				err)
		}
	}
	if e.refused == "" {
		e.Input = json.RawMessage(input)
	}
	return e, nil
}
