package chat

import (
	"time"

	"github.com/hako-run/hako/host/llm"
)

// Outcome sorts turns for metrics. The set is fixed: those below and the reasons of Error.
type Outcome string

// Outcomes of turns that are no Error.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeLimit   Outcome = "limit"   // the model was stopped from calling more tools
	OutcomeLength  Outcome = "length"  // the answer was cut off
	OutcomeRefused Outcome = "refused" // the model or its provider refused
	OutcomeStopped Outcome = "stopped" // the person stopped it, or its time ran out
)

// Record is what is known of a turn when it has ended.
type Record struct {
	// Door is the caller's.
	Door    string
	Outcome Outcome
	// Duration is from the turn's arrival to its answer, waiting for the turn before it included.
	Duration      time.Duration
	Rounds, Calls int
	Usage         llm.Usage
	Cost          float64
	// TraceID is the trace that the turn belongs to; empty if none.
	TraceID string
}
