// Package judge finds the programs that a command line would start and checks each of them against rules. New returns a
// Judge for a list of Rules; Judge.Line and Judge.Argv return a Verdict: allow, ask or deny.
//
// A line is parsed with a shell grammar. Programs that start others (sh -c, env, xargs, find -exec, sudo, ...) are
// followed. The package runs nothing. Arguments that are known only at run time ("$program", $(...)) are reported as
// such, so that the runner of the line can have the final arguments judged with Argv.
//
// The options of common programs are parsed like the programs do it (table.go), so that a rule about "--force" also
// matches "-f" and "--forc", and options that can start other programs need approval. Only what is known to be harmless
// is allowed without a rule.
//
// Rules are no security boundary: a program that may run can do whatever its sandbox allows. They express what people
// mean to permit; the kernel enforces what must not happen.
package judge

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"

	"github.com/hako-run/hako/pdk/locale"
)

// Action is the decision about a command. A larger one is stricter.
type Action int

// Actions.
const (
	Allow Action = iota
	Ask
	Deny
)

// String returns the action as rules spell it.
func (a Action) String() string { return [...]string{"allow", "ask", "deny"}[a] }

// Command is a program that would start, with its arguments as far as they are known.
type Command struct {
	// Argv is the program and its known arguments.
	Argv []string
	// Open reports that there will be more arguments, which are not known beforehand.
	Open bool
	// Later reports that the shell of the line will add arguments. They are known when the command starts, and must be
	// judged with Argv then.
	Later bool
	// Via are the programs that start it, outermost first. It is empty for a program that the line itself starts.
	Via []string

	// args are the parsed arguments; nil if this package does not know the program.
	args *parsedArgs
}

// Name returns the program's name without its directory and without the ".exe" of Windows.
func (c *Command) Name() string { return baseName(c.Argv[0]) }

// String returns the command as a shell line, for people.
func (c *Command) String() string {
	text := quoteAll(c.Argv)
	if c.Open || c.Later {
		text += " ..."
	}
	return text
}

// Verdict is the decision about a whole line, the strictest of the decisions about its commands.
type Verdict struct {
	Action Action
	// Rule names the rule that decided; empty if none matched.
	Rule string
	// Reason is the reason that the rule gives.
	Reason string
	// Command is the command that decided the verdict. Of several it is the first, preferably a fully known one. Nil if
	// no command starts, or if the line as a whole was refused.
	Command *Command
	// Commands are all commands that would start, in the order of the line. Nested commands follow the ones that start
	// them.
	Commands []Command
	// Functions are the names of the functions that the line defines.
	Functions []string
	// Deferred reports that the shell of the line will start further commands, or commands with more arguments. They
	// must be judged with Argv then.
	Deferred bool
	// Opaque reports that other programs would start commands that are not known beforehand. Action is at least Ask
	// then.
	Opaque bool
	// Unjudged names the programs that no rule decided on and that this package does not know. Only the sandbox
	// restricts them.
	Unjudged []string
}

// Later reports whether the command that decided Action will be judged again, with more arguments, when the line runs.
func (v *Verdict) Later() bool { return v.Command != nil && v.Command.Later && !v.Opaque }

// Names of built-in rules in verdicts. The program's name follows ruleOptions.
const (
	RuleOpaque  = "unknown commands"
	RuleUnknown = "unknown programs"
	ruleOptions = "options of "
)

// Judge checks commands against rules. It is safe for concurrent use.
type Judge struct {
	rules []Rule
	named []string
}

// New returns a Judge. The first matching rule decides; the built-in rules come after the given ones. Without a
// matching rule, a program that this package knows is allowed if its arguments cannot make it start other programs or
// load code. A program that it does not know is allowed if its name is in named, the programs that were granted by
// name; otherwise a person is asked. An error names the invalid rule.
func New(rules []Rule, named []string) (*Judge, error) {
	j := &Judge{rules: slices.Concat(rules, defaults), named: named}
	for i := range j.rules {
		if err := j.rules[i].compile(); err != nil {
			return nil, locale.Text{"en": "command rule %q: %w", "ja": "コマンドのルール %q: %w"}.Errorf(j.rules[i].Name, err)
		}
	}
	return j, nil
}

// maxDepth limits the nesting of commands.
const maxDepth = 8

// Line judges a command line. The error is a *LineError if it cannot be parsed or judged.
func (j *Judge) Line(line string) (*Verdict, error) {
	f := new(finder)
	if err := f.line(line, nil); err != nil {
		return nil, err
	}
	return j.decide(f), nil
}

// Argv judges a program with its final arguments. The error is a *LineError if a command line among the arguments ("sh
// -c") cannot be parsed.
func (j *Judge) Argv(argv []string) (*Verdict, error) {
	f := new(finder)
	if len(argv) == 0 || argv[0] == "" {
		return nil, &LineError{Reason: "there is no program to start"}
	}
	if err := f.command(Command{Argv: argv}); err != nil {
		return nil, err
	}
	return j.decide(f), nil
}

func (j *Judge) decide(f *finder) *Verdict {
	v := &Verdict{Commands: f.commands, Functions: f.functions, Deferred: f.deferred, Opaque: f.opaque != ""}
	if v.Opaque {
		v.Action, v.Rule, v.Reason = Ask, RuleOpaque, f.opaque
	}
	for i := range f.commands {
		c := &f.commands[i]
		d := j.command(c, f.functions)
		if d.unjudged && !slices.Contains(v.Unjudged, c.Name()) {
			v.Unjudged = append(v.Unjudged, c.Name())
		}
		if d.action > v.Action || d.action == v.Action && v.Later() && !c.Later {
			v.Action, v.Rule, v.Reason, v.Command = d.action, d.rule, d.reason, c
		}
	}
	return v
}

// decision is the decision about one command.
type decision struct {
	action       Action
	rule, reason string
	unjudged     bool
}

// command decides about one command, by the first matching rule or by its options.
func (j *Judge) command(c *Command, functions []string) decision {
	for i := range j.rules {
		if rule := &j.rules[i]; rule.matches(c) {
			return decision{action: rule.Action, rule: rule.Name, reason: rule.Reason}
		}
	}
	name := c.Name()
	switch {
	case c.args != nil:
		return c.options()
	case interpreted(c.Via) && (interp.IsBuiltin(c.Argv[0]) || slices.Contains(functions, c.Argv[0])):
		return decision{}
	case slices.Contains(j.named, name):
		return decision{unjudged: true}
	}
	return decision{
		action: Ask, rule: RuleUnknown, unjudged: true, reason: fmt.Sprintf("hako does not know what %s starts, "+
			"and it was granted with all programs, not by its name: only the sandbox restricts it", quoted(name)),
	}
}

// options decides about a program that this package knows, by its options and arguments.
func (c *Command) options() decision {
	rule := ruleOptions + c.Name()
	switch {
	case len(c.args.risks) > 0:
		return decision{action: Ask, rule: rule, reason: c.args.risks[0].text}
	case c.Open && c.args.risky() && !c.args.closed:
		return decision{action: Ask, rule: rule, reason: "it gets arguments that are not known beforehand, " +
			`and some of its options start other programs: "--" before them helps`}
	}
	return decision{}
}

// LineError reports that a line cannot be judged, and so must not run.
type LineError struct{ Reason string }

func (e *LineError) Error() string { return "command line: " + e.Reason }

func baseName(program string) string {
	name := path.Base(strings.ReplaceAll(program, `\`, "/"))
	return strings.TrimSuffix(name, ".exe")
}

// IsMultiCall reports whether the program is a multi-call binary, such as busybox, whose behavior depends on argv[0].
func IsMultiCall(name string) bool {
	return slices.Contains([]string{"busybox", "toybox", "coreutils"}, name)
}

// tableName returns the name of a program in the table.
func tableName(name string) string {
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		return "ld.so"
	}
	return name
}
