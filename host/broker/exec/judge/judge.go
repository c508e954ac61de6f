// Package judge says what a command line would start, and holds each of those commands against rules.
//
// A line is taken apart with a shell's grammar, and what programs start on behalf of others (sh -c, env, xargs, find
// -exec, sudo, ...) is found too. Nothing runs here. What is only known once the line runs ("$program", $(...)) is
// reported as such, so that whoever runs it can have the final arguments judged with Argv.
//
// The options of common programs are read as the programs do (table.go), so that a rule about "--force" meets "-f" and
// "--forc", and what can start other programs is asked about. Only what is known to be harmless is let through.
//
// Rules are a fence and not a wall: a program that may run can do whatever the sandbox around it allows. They say what
// people mean to permit; the kernel holds what must not happen.
package judge

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
)

// Action is what becomes of a command. A larger one is stricter.
type Action int

// Actions.
const (
	Allow Action = iota
	Ask
	Deny
)

// String is the action as rules spell it.
func (a Action) String() string { return [...]string{"allow", "ask", "deny"}[a] }

// Command is one program that would start, as far as its arguments are known.
type Command struct {
	// Argv is the program and the arguments known.
	Argv []string
	// Open says that there will be more arguments, which nobody can tell beforehand.
	Open bool
	// Later says that the line's shell will add arguments, which it knows when the command starts: to be judged with
	// Argv then.
	Later bool
	// Via are the programs that start it, outermost first. Empty for one that the line itself starts.
	Via []string

	// args is what the program makes of Argv; nil if this package does not know it.
	args *reading
}

// Name is the program's name without its directory and, as Windows has it, without ".exe".
func (c *Command) Name() string { return baseName(c.Argv[0]) }

// String shows the command to people.
func (c *Command) String() string {
	text := quoteAll(c.Argv)
	if c.Open || c.Later {
		text += " ..."
	}
	return text
}

// Verdict is what the rules say of a whole line: the strictest of what they say of its commands.
type Verdict struct {
	Action Action
	// Rule names the rule that decided; empty if none matched.
	Rule string
	// Reason says what the rule is about.
	Reason string
	// Command is the one that it decided on; of several the first, if possible one that is fully known. Nil if no
	// command starts, or if the line as a whole was refused.
	Command *Command
	// Commands are all that would start, in the order of the line, commands within commands after those that start
	// them.
	Commands []Command
	// Functions are the names that the line gives to functions of its own.
	Functions []string
	// Deferred says that the line's shell will start more than Commands names, or with more arguments: to be judged
	// with Argv then.
	Deferred bool
	// Opaque says that other programs would start what nobody can tell beforehand. Action is then at least Ask.
	Opaque bool
	// Unjudged names the programs that no rule decided on and whose options this package does not know. What they do
	// is held by the sandbox alone.
	Unjudged []string
}

// Later reports whether all that Action depends on will be judged again, with more known, when the line runs.
func (v *Verdict) Later() bool { return v.Command != nil && v.Command.Later && !v.Opaque }

// Rules that are not in a list, as verdicts name them. That of options is followed by the program's name.
const (
	RuleOpaque  = "unknown commands"
	RuleUnknown = "unknown programs"
	ruleOptions = "options of "
)

// Judge holds commands against rules. It is safe for concurrent use.
type Judge struct {
	rules []Rule
	named []string
}

// New returns a Judge for rules, of which the first that matches a command decides. The defaults come after them. A
// command that none matches is allowed if this package knows the program, and that its arguments make it start no
// others and load no code. Other programs are allowed if their names are among named, those that were granted by name;
// if not, a person is asked. The error names the rule that is wrong.
func New(rules []Rule, named []string) (*Judge, error) {
	j := &Judge{rules: append(append([]Rule(nil), rules...), Defaults()...), named: named}
	for i := range j.rules {
		if err := j.rules[i].compile(); err != nil {
			return nil, fmt.Errorf("command rule %q: %w", j.rules[i].Name, err)
		}
	}
	return j, nil
}

// maxDepth bounds commands within commands.
const maxDepth = 8

// Line judges a command line. The error is a *LineError if it is no command line, or holds what cannot be judged.
func (j *Judge) Line(line string) (*Verdict, error) {
	f := new(finder)
	if err := f.line(line, nil); err != nil {
		return nil, err
	}
	return j.decide(f), nil
}

// Argv judges a program with its arguments, as they are when it starts. The error is a *LineError if a line among the
// arguments ("sh -c") is none.
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

// decision is what becomes of one command.
type decision struct {
	action       Action
	rule, reason string
	unjudged     bool
}

// command decides about one command: by the first rule that matches, and else by its options.
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
			"and it was granted as one of all programs, not by its name: only the sandbox holds it", quoted(name)),
	}
}

// options decides by the options and arguments of a program that this package knows.
func (c *Command) options() decision {
	rule := ruleOptions + c.Name()
	switch {
	case len(c.args.doubts) > 0:
		return decision{action: Ask, rule: rule, reason: c.args.doubts[0].text}
	case c.Open && c.args.risky() && !c.args.closed:
		return decision{action: Ask, rule: rule, reason: "it gets arguments that are not known beforehand, " +
			`and some of its options start other programs: "--" before them helps`}
	}
	return decision{}
}

// LineError says that a line cannot be judged, and so must not run.
type LineError struct{ Reason string }

func (e *LineError) Error() string { return "command line: " + e.Reason }

func baseName(program string) string {
	name := path.Base(strings.ReplaceAll(program, `\`, "/"))
	return strings.TrimSuffix(name, ".exe")
}

// IsMultiCall reports whether the program with that name is many in one file, and does what the name it is called by
// says.
func IsMultiCall(name string) bool {
	return slices.Contains([]string{"busybox", "toybox", "coreutils"}, name)
}

// tableName is the name of a program in the table.
func tableName(name string) string {
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		return "ld.so"
	}
	return name
}
