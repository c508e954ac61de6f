package execbroker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/pdk/abi"
)

// authorize checks a request against the rules before any program starts, and asks a person if a rule requires that. It
// adds the rules and the approved commands to spec.
func (b *Broker) authorize(ctx context.Context, call *broker.Call, spec *confine.Spec) *abi.Error {
	spec.Rules = b.rules()
	j, err := judge.New(spec.Rules, spec.Named())
	if err != nil {
		return abi.Errorf(abi.CodeInternal, "%v", err) // the rules were validated with the policy file
	}
	verdict, err := verdictOn(j, spec)
	var refused *judge.LineError
	switch {
	case errors.As(err, &refused):
		return abi.Errorf(abi.CodeInvalid, "%v", refused)
	case err != nil:
		return abi.Errorf(abi.CodeInternal, "%v", err)
	case verdict.Action == judge.Deny:
		return abi.Errorf(abi.CodeNotGranted, "%s: denied by the rule %q: %s", textOf(verdict, spec),
			verdict.Rule, verdict.Reason)
	}
	if failure := b.granted(verdict, spec); failure != nil {
		return failure
	}
	if verdict.Action == judge.Allow || verdict.Later() {
		return nil // commands whose arguments are known later are checked at their start
	}
	question := broker.Question{Text: lineOf(spec), Rule: verdict.Rule, Reason: verdict.Reason}
	if err := ask(ctx, call, question); err != nil {
		return abi.Errorf(abi.CodeNotGranted, "%v", err)
	}
	for i := range verdict.Commands {
		if c := &verdict.Commands[i]; !c.Open && !c.Later {
			spec.Approved = append(spec.Approved, c.Argv)
		}
	}
	return nil
}

func verdictOn(j *judge.Judge, spec *confine.Spec) (*judge.Verdict, error) {
	if len(spec.Argv) > 0 {
		return j.Argv(spec.Argv)
	}
	return j.Line(spec.Line)
}

// lineOf returns the request as a command line for people.
func lineOf(spec *confine.Spec) string {
	if len(spec.Argv) > 0 {
		return (&judge.Command{Argv: spec.Argv}).String()
	}
	return spec.Line
}

// textOf returns the command that decided the verdict, for people.
func textOf(v *judge.Verdict, spec *confine.Spec) string {
	if v.Command != nil {
		return v.Command.String()
	}
	return lineOf(spec)
}

// granted checks the programs that the request itself starts, so that none runs if one of them is not granted.
func (b *Broker) granted(v *judge.Verdict, spec *confine.Spec) *abi.Error {
	for i := range v.Commands {
		c := &v.Commands[i]
		name := c.Argv[0]
		if len(c.Via) > 0 || judge.IsShell(c.Name()) || len(spec.Argv) == 0 &&
			(interp.IsBuiltin(name) || slices.Contains(v.Functions, name)) {
			continue
		}
		if _, err := spec.Program(spec.Dir, name); err != nil {
			return abi.Errorf(abi.CodeNotGranted, "%v. Granted programs: %s. The operator can grant it: hako plugin "+
				"approve %s --program %s, with the others",
				err, strings.Join(b.names(), ", "), b.plugin, c.Name())
		}
	}
	return nil
}

// names returns the names of the granted programs, for people.
func (b *Broker) names() []string {
	var names []string
	for _, program := range b.base.Programs {
		name := program.Name
		if name == "*" {
			name = "all in " + program.Path
		}
		names = append(names, name)
	}
	return names
}

var errNobody = errors.New("nobody can be asked for approval here: call it through a frontend that supports " +
	"approvals, or allow it with a rule under commands in the policy file")

// ask asks a person to approve a command. Nil means approval.
func ask(ctx context.Context, call *broker.Call, q broker.Question) error {
	err := errNobody
	if call.Ask != nil {
		err = call.Ask(ctx, q)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: the rule %q requires approval (%s), and %w", q.Text, q.Rule, q.Reason, err)
}
