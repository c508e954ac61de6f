// Package policytest tests a policy against cases in a file: calls and command lines with the decision that each should
// get.
//
// Read parses a file of cases, and Cases.Run evaluates them and returns those that fail. docs/policy.md has an example.
package policytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/locale"
)

// maxFile is the largest file of cases, in bytes.
const maxFile = 16 << 20

// Cases are the cases of a file.
type Cases struct {
	Path     string
	Calls    []Call
	Commands []Command

	version int
}

// Call is a call with the decision that it should get.
type Call struct {
	Name, Tool string
	// Plugin and Hints describe a tool that is not on offer here.
	Plugin string
	Hints  manifest.Annotations
	// As is the caller. Its Frontend is empty if the case names none.
	As        policy.Caller
	Arguments json.RawMessage
	// Want is the action. Rule names the rule that should decide; empty: any may.
	Want policy.Action
	Rule string
	Line int
}

// Command is a command line with the decision that it should get. Rule names the rule that should decide; empty: any
// may.
type Command struct {
	Name, Text string
	Want       policy.Action
	Rule       string
	Line       int
}

// Read reads a file of cases. The error lists everything that is wrong in it, with lines and columns.
func Read(path string) (*Cases, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Cases{Path: path}
	err = strictyaml.Read(data, maxFile, func(v strictyaml.Value) {
		v.Object(strictyaml.Fields{
			"version":  strictyaml.Count(&c.version),
			"cases":    strictyaml.List(&c.Calls, readCall),
			"commands": strictyaml.List(&c.Commands, readCommand),
		})
	}, c.check)
	if err != nil {
		return nil, locale.Text{"en": "cases %s: %w", "ja": "ケース %s: %w"}.Errorf(path, err)
	}
	return c, nil
}

func readCall(v strictyaml.Value, c *Call) {
	c.Line = v.Line()
	v.Object(strictyaml.Fields{
		"name":   strictyaml.String(&c.Name),
		"tool":   strictyaml.String(&c.Tool),
		"plugin": strictyaml.String(&c.Plugin),
		"hints": func(v strictyaml.Value) {
			v.Object(strictyaml.Fields{
				"readOnly":    strictyaml.BoolPointer(&c.Hints.ReadOnlyHint),
				"destructive": strictyaml.BoolPointer(&c.Hints.DestructiveHint),
				"idempotent":  strictyaml.BoolPointer(&c.Hints.IdempotentHint),
				"openWorld":   strictyaml.BoolPointer(&c.Hints.OpenWorldHint),
			})
		},
		"as": func(v strictyaml.Value) {
			v.Object(strictyaml.Fields{
				"user":     strictyaml.String(&c.As.User),
				"email":    strictyaml.String(&c.As.Email),
				"frontend": strictyaml.String(&c.As.Frontend),
				"tenant":   strictyaml.String(&c.As.Tenant),
				"token":    strictyaml.String(&c.As.Token),
				"groups":   strictyaml.Strings(&c.As.Groups),
				"scopes":   strictyaml.Strings(&c.As.Scopes),
				"via":      strictyaml.String(&c.As.Via),
				"toolset":  strictyaml.String(&c.As.Toolset),
			})
		},
		"arguments": func(v strictyaml.Value) { c.Arguments = v.JSON() },
		"want":      policy.ReadAction(&c.Want),
		"rule":      strictyaml.String(&c.Rule),
	})
}

func readCommand(v strictyaml.Value, c *Command) {
	c.Line = v.Line()
	v.Object(strictyaml.Fields{
		"name": strictyaml.String(&c.Name),
		"line": strictyaml.String(&c.Text),
		"want": policy.ReadAction(&c.Want),
		"rule": strictyaml.String(&c.Rule),
	})
}

func (c *Cases) check() error {
	var e strictyaml.Error
	if c.version != 1 {
		e.Add("version", "must be 1, the version of this format")
	}
	if c.Len() == 0 {
		e.Add("", "there are no cases: list some under cases or commands")
	}
	for i, call := range c.Calls {
		if call.Tool == "" || call.Want == "" {
			e.Add(strictyaml.Index("cases", i), "needs a tool and want: allow, ask or deny")
		}
	}
	for i, command := range c.Commands {
		if command.Text == "" || command.Want == "" {
			e.Add(strictyaml.Index("commands", i), "needs a line and want: allow, ask or deny")
		}
	}
	return e.Err()
}

// Len returns the number of cases.
func (c *Cases) Len() int { return len(c.Calls) + len(c.Commands) }

// Failure is a case that failed.
type Failure struct {
	// Name is the name of the case, or its tool or command line.
	Name string
	Line int
	// Want and Got are the decisions, with the rules if they matter.
	Want, Got string
	// Why explains why the rule that the case names did not decide; empty if it was not evaluated.
	Why string
}

// Names of rules for command lines that no rule decides about.
const (
	ruleNone   = "none"
	ruleNoLine = "not a command line"
)

// Run evaluates the cases and returns those that fail, in their order. callOf returns the call that a case describes;
// if that fails, the error names the file and the line of the case.
func (c *Cases) Run(p *policy.Policy, callOf func(*Call) (*policy.Call, error)) (failures []Failure, err error) {
	for i := range c.Calls {
		want := &c.Calls[i]
		call, err := callOf(want)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", c.Path, want.Line, err)
		}
		got, steps := p.Explain(call, "en")
		if f := compare(want.Want, want.Rule, got.Action, got.Rule); f != nil {
			f.Name, f.Line = cmp.Or(want.Name, want.Tool), want.Line
			for _, step := range steps {
				if step.Rule == want.Rule && !step.Decided {
					f.Why = step.Mismatch.In("en")
				}
			}
			failures = append(failures, *f)
		}
	}
	j, err := judge.New(p.Commands, nil)
	if err != nil {
		return nil, err
	}
	for _, want := range c.Commands {
		action, rule := judge.Deny.String(), ruleNoLine
		if verdict, err := j.Line(want.Text); err == nil {
			action, rule = verdict.Action.String(), cmp.Or(verdict.Rule, ruleNone)
		}
		if f := compare(want.Want, want.Rule, policy.Action(action), rule); f != nil {
			f.Name, f.Line = cmp.Or(want.Name, want.Text), want.Line
			failures = append(failures, *f)
		}
	}
	return failures, nil
}

// compare returns a failure with both decisions if they differ, otherwise nil.
func compare(want policy.Action, wantRule string, got policy.Action, gotRule string) *Failure {
	if want == got && (wantRule == "" || wantRule == gotRule) {
		return nil
	}
	f := &Failure{Want: string(want), Got: fmt.Sprintf("%s by %q", got, gotRule)}
	if wantRule != "" {
		f.Want += fmt.Sprintf(" by %q", wantRule)
	}
	return f
}
