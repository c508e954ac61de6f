// Package script decides what the fakes of models answer. Parse reads a Script, and Script.Answer returns the
// first Step that matches a Conversation (docs/fakes.md).
package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Step is one answer and when it is given. Its zero value fits every conversation that does not end in results, and
// says nothing.
type Step struct {
	// When fits the last text of the user's. Nil fits any.
	When *regexp.Regexp
	// After fits the results of the calls before, one per line. Nil fits only a conversation that does not end in
	// results.
	After *regexp.Regexp
	// Times is the number of answers after which the step is used up. Zero means no limit.
	Times int

	// Think is the model's reasoning before its answer, in a form that only the vendor's fake reads.
	Think string
	// Say and the arguments of Call may hold $1 or ${name} for what When has in parentheses, ${name} for what After has
	// in named parentheses, and ${result} for the results.
	Say  string
	Call []Call
	// Stop is empty for the natural reason, or one of the constants.
	Stop string
	// Fail is an error instead of an answer, or nil.
	Fail *Failure
	// Cut ends the stream in the middle.
	Cut bool
	// Wait is the time before the first token, Pace the time per token.
	Wait, Pace time.Duration

	used int // guarded by Script.mu
}

// Reasons to stop.
const (
	Length   = "length"
	Refusal  = "refusal"
	Filtered = "filtered"
)

// Call is a tool call. Arguments are sent as they are, JSON or not.
type Call struct {
	Tool      string
	Arguments string
}

// Failure is an error of the vendor's.
type Failure struct {
	// Kind is one of Kinds. The vendor's fake gives it its form.
	Kind string
	// RetryAfter is sent along, in seconds, unless it is empty.
	RetryAfter string
	// Streamed sends it as an event after the answer has begun.
	Streamed bool
}

// kinds are those of failures.
var kinds = []string{"rate_limit", "overloaded", "server", "context", "key", "credit", "invalid", "model", "policy"}

// Script is a list of steps. The zero value and nil repeat the message. It is safe for concurrent use.
type Script struct {
	Steps []Step

	mu sync.Mutex // guards Step.used
}

// Conversation is the conversation that a fake was sent.
type Conversation struct {
	// Text is the last text of the user's, Results are those that came after the last answer.
	Text    string
	Results []string
	// Tools are the names of the tools on offer; NoTools means that none may be called.
	Tools   []string
	NoTools bool
}

// Answer returns the answer to c, with nothing left to expand. Calls of tools that are not on offer are left out, so
// that an unknown name has to begin with "unknown".
func (s *Script) Answer(c *Conversation) Step {
	step := s.find(c)
	expand := func(text string) string { return step.expand(text, c) }
	answer := step
	answer.Say, answer.Call = expand(step.Say), nil
	for _, call := range step.Call {
		if !c.NoTools && (slices.Contains(c.Tools, call.Tool) || strings.HasPrefix(call.Tool, "unknown")) {
			answer.Call = append(answer.Call, Call{call.Tool, step.expandJSON(call.Arguments, c)})
		}
	}
	if len(step.Call) > 0 && len(answer.Call) == 0 && answer.Say == "" {
		answer.Say = fmt.Sprintf("I would call %s, but may not.", step.Call[0].Tool)
	}
	return answer
}

func (s *Script) find(c *Conversation) Step {
	if step, ok := s.spend(c); ok {
		return step
	}
	if len(c.Results) > 0 {
		return Step{Say: "${result}"}
	}
	return Step{When: anything, Say: "$0"}
}

// spend returns the first step that fits c, one use of it spent.
func (s *Script) spend(c *Conversation) (Step, bool) {
	if s == nil {
		return Step{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.fits(c) && (step.Times == 0 || step.used < step.Times) {
			step.used++
			return *step, true
		}
	}
	return Step{}, false
}

// anything is the condition of a step without When.
var anything = regexp.MustCompile(`(?s).*`)

func (s *Step) fits(c *Conversation) bool {
	if s.When != nil && !s.When.MatchString(c.Text) {
		return false
	}
	if s.After == nil || len(c.Results) == 0 {
		return s.After == nil && len(c.Results) == 0
	}
	return s.After.MatchString(strings.Join(c.Results, "\n"))
}

// expand fills the template text in.
func (s *Step) expand(text string, c *Conversation) string {
	when := s.When
	if when == nil {
		when = anything
	}
	match := when.FindStringSubmatchIndex(c.Text)
	text = s.expandFound(text, c)
	parts := strings.Split(text, "${result}")
	for i, part := range parts {
		parts[i] = string(when.ExpandString(nil, part, c.Text, match))
	}
	return strings.Join(parts, label.ReplaceAllString(strings.Join(c.Results, "\n"), ""))
}

// expandFound fills in what After has in named parentheses.
func (s *Step) expandFound(text string, c *Conversation) string {
	if s.After == nil {
		return text
	}
	found := s.After.FindStringSubmatch(strings.Join(c.Results, "\n"))
	for i, name := range s.After.SubexpNames() {
		if name != "" && i < len(found) {
			text = strings.ReplaceAll(text, "${"+name+"}", strings.ReplaceAll(found[i], "$", "$$"))
		}
	}
	return text
}

// label is a line in double brackets, as a host puts before and after what is data. Models do not repeat it.
var label = regexp.MustCompile(`(?m)^\[\[.*\]\]\n|\n?^\[\[.*\]\]$`)

// expandJSON fills in the texts within arguments. What is not JSON stays as it is.
func (s *Step) expandJSON(arguments string, c *Conversation) string {
	var value any
	if json.Unmarshal([]byte(arguments), &value) != nil {
		return arguments
	}
	filled, err := json.Marshal(s.expandValue(value, c))
	if err != nil {
		return arguments
	}
	return string(filled)
}

func (s *Step) expandValue(value any, c *Conversation) any {
	switch value := value.(type) {
	case string:
		return s.expand(value, c)
	case []any:
		for i := range value {
			value[i] = s.expandValue(value[i], c)
		}
	case map[string]any:
		for name := range value {
			value[name] = s.expandValue(value[name], c)
		}
	}
	return value
}

// Tokens splits text into parts of a few characters, as models send it.
func Tokens(text string) []string {
	var tokens []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(4, len(runes))
		tokens = append(tokens, string(runes[:n]))
		runes = runes[n:]
	}
	return tokens
}
