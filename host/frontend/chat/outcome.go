package chat

import "time"

// Outcome classifies turns for metrics: one of the constants below or a reason of Error.
type Outcome string

// Outcomes of turns without an Error.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeLimit   Outcome = "limit"   // the model was stopped from calling more tools
	OutcomeLength  Outcome = "length"  // the answer was cut off
	OutcomeRefused Outcome = "refused" // the model or its provider refused
	OutcomeStopped Outcome = "stopped" // the person stopped it, or its time ran out
)

// Record describes a turn that has ended.
type Record struct {
	// Frontend is the caller's frontend.
	Frontend string
	Outcome  Outcome
	// Duration is the time from the turn's arrival to its answer, including its wait in the queue.
	Duration      time.Duration
	Rounds, Calls int
	// TraceID is the ID of the turn's trace, or empty.
	TraceID string
}
