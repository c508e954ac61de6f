package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/broker/exec/judge"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/policy"
	"github.com/hako-run/hako/internal/strictyaml"
)

// maxCases is the largest file of cases, in bytes.
const maxCases = 16 << 20

// cases are what a policy is held against.
type cases struct {
	version  int
	calls    []policyCase
	commands []commandCase
}

// policyCase is a call with what the policy should say of it.
type policyCase struct {
	name, tool, plugin string
	hints              manifest.Annotations
	as                 callerFlags
	arguments          json.RawMessage
	want, rule         string
	line               int
}

// commandCase is a command line with what the rules should say of it.
type commandCase struct {
	name, text, want, rule string
	line                   int
}

func (a *app) policyTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE",
		Short: "Hold the policy against cases",
		Long: `Hold the policy against cases: calls with the decision that each should get, and command lines likewise. docs/policy.md has an example.

Exit codes: 0 all hold, 1 some do not, 2 usage, or the policy or the cases are not valid.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := a.path(args[0])
			file, err := readCases(path)
			if err != nil {
				return err
			}
			return a.withPolicy(cmd, func(v *view, p *policy.Policy) error { return a.runCases(v, p, path, file) })
		},
	}
}

func readCases(path string) (*cases, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := new(cases)
	err = strictyaml.Read(data, maxCases, func(v strictyaml.Value) {
		v.Object(strictyaml.Fields{
			"version":  strictyaml.Count(&f.version),
			"cases":    strictyaml.List(&f.calls, readCase),
			"commands": strictyaml.List(&f.commands, readCommandCase),
		})
	}, f.check)
	if err != nil {
		return nil, fmt.Errorf("cases %s: %w", path, err)
	}
	return f, nil
}

func readCase(v strictyaml.Value, c *policyCase) {
	c.line, c.as.frontend = v.Line(), pipeline.FrontendHTTP
	v.Object(strictyaml.Fields{
		"name":   strictyaml.String(&c.name),
		"tool":   strictyaml.String(&c.tool),
		"plugin": strictyaml.String(&c.plugin),
		"hints": func(v strictyaml.Value) {
			v.Object(strictyaml.Fields{
				"readOnly":    strictyaml.BoolPointer(&c.hints.ReadOnlyHint),
				"destructive": strictyaml.BoolPointer(&c.hints.DestructiveHint),
				"idempotent":  strictyaml.BoolPointer(&c.hints.IdempotentHint),
				"openWorld":   strictyaml.BoolPointer(&c.hints.OpenWorldHint),
			})
		},
		"as": func(v strictyaml.Value) {
			v.Object(strictyaml.Fields{
				"user":     strictyaml.String(&c.as.user),
				"email":    strictyaml.String(&c.as.email),
				"frontend": strictyaml.String(&c.as.frontend),
				"tenant":   strictyaml.String(&c.as.tenant),
				"token":    strictyaml.String(&c.as.token),
				"groups":   strictyaml.Strings(&c.as.groups),
			})
		},
		"arguments": func(v strictyaml.Value) { c.arguments = v.JSON() },
		"want":      readWant(&c.want),
		"rule":      strictyaml.String(&c.rule),
	})
}

func readCommandCase(v strictyaml.Value, c *commandCase) {
	c.line = v.Line()
	v.Object(strictyaml.Fields{
		"name": strictyaml.String(&c.name),
		"line": strictyaml.String(&c.text),
		"want": readWant(&c.want),
		"rule": strictyaml.String(&c.rule),
	})
}

func readWant(dst *string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		text, ok := v.Text()
		switch policy.Action(text) {
		case policy.Allow, policy.Ask, policy.Deny:
			*dst = text
		default:
			if ok {
				v.Problem("must be allow, ask or deny")
			}
		}
	}
}

func (f *cases) check() error {
	var e strictyaml.Error
	if f.version != 1 {
		e.Add("version", "must be 1, the version of this format")
	}
	if len(f.calls)+len(f.commands) == 0 {
		e.Add("", "there are no cases: list some under cases or commands")
	}
	for i, c := range f.calls {
		if c.tool == "" || c.want == "" {
			e.Add(strictyaml.Index("cases", i), "needs a tool and want: allow, ask or deny")
		}
	}
	for i, c := range f.commands {
		if c.text == "" || c.want == "" {
			e.Add(strictyaml.Index("commands", i), "needs a line and want: allow, ask or deny")
		}
	}
	return e.Err()
}

// runCases prints the cases that do not hold, and how many do.
func (a *app) runCases(v *view, p *policy.Policy, path string, f *cases) error {
	failed := 0
	report := func(name string, line int, want, got string, why string) {
		if want == got {
			return
		}
		failed++
		printf(a.stdout, "--- %s (%s:%d)\n-%s\n+%s\n%s", name, path, line, block(want), block(got), block(why))
	}
	for _, c := range f.calls {
		call, err := c.call(v)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, c.line, err)
		}
		d, steps := p.Explain(call)
		want, got := comparison(c.want, c.rule, string(d.Action), d.Rule)
		report(cmp.Or(c.name, c.tool), c.line, want, got, whyNot(c.rule, steps))
	}
	judge, err := judge.New(p.Commands, nil)
	if err != nil {
		return err
	}
	for _, c := range f.commands {
		action, rule := judged(judge, c.text)
		want, got := comparison(c.want, c.rule, action, rule)
		report(cmp.Or(c.name, c.text), c.line, want, got, "")
	}
	all := len(f.calls) + len(f.commands)
	if failed > 0 {
		printf(a.stdout, "%d of %d cases do not hold\n", failed, all)
		return &exitError{code: exitFailed}
	}
	err = printf(a.stdout, "all %d cases hold\n", all)
	return err
}

// call is the call of the case. A tool that is not on offer here has the plugin and the hints of the case.
func (c *policyCase) call(v *view) (*policy.Call, error) {
	if err := c.as.resolve(v.config); err != nil {
		return nil, err
	}
	arguments := c.arguments
	if arguments == nil {
		arguments = json.RawMessage("{}")
	}
	if c.plugin != "" {
		spec := &manifest.Tool{Name: c.tool, Annotations: c.hints}
		call := c.as.call(&catalog.Tool{Source: &catalog.Source{Name: c.plugin}, Name: c.tool, Spec: spec})
		call.Arguments = arguments
		return call, nil
	}
	tool, err := v.tool(c.tool)
	if err != nil {
		return nil, fmt.Errorf("%w\nA case about a tool that this machine does not have says its plugin", err)
	}
	if c.hints != (manifest.Annotations{}) {
		return nil, errors.New("hints are for tools that this machine does not have: name the plugin too")
	}
	call := c.as.call(tool)
	call.Arguments = arguments
	return call, nil
}

// comparison is what should be and what is, with the rules if the case names one or the actions differ.
func comparison(want, wantRule, got, gotRule string) (string, string) {
	if want == got && (wantRule == "" || wantRule == gotRule) {
		return "", ""
	}
	if wantRule != "" {
		want += fmt.Sprintf(" by %q", wantRule)
	}
	return want, got + fmt.Sprintf(" by %q", gotRule)
}

// whyNot says why the rule that a case names has not decided, if it was looked at.
func whyNot(rule string, steps []policy.Step) string {
	for _, step := range steps {
		if step.Rule == rule && !step.Decided {
			return fmt.Sprintf(" %q: %s\n", rule, step.Why)
		}
	}
	return ""
}

// ruleNone and ruleNoLine stand for rules where none decided about a command.
const (
	ruleNone   = "none"
	ruleNoLine = "not a command line"
)

func judged(j *judge.Judge, line string) (action, rule string) {
	verdict, err := j.Line(line)
	if err != nil {
		return judge.Deny.String(), ruleNoLine
	}
	return verdict.Action.String(), cmp.Or(verdict.Rule, ruleNone)
}
