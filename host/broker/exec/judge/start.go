package judge

import (
	"fmt"
	"slices"
	"strings"
)

// inner is what a command starts in turn.
type inner struct {
	commands []Command
	lines    []string // for a shell
	unknown  string   // why something of it cannot be told; empty if all can
}

// cannot notes the first reason why something cannot be told.
func (in *inner) cannot(format string, args ...any) {
	if in.unknown == "" {
		in.unknown = fmt.Sprintf(format, args...)
	}
}

// starter says how a program names the one that it starts, after its options: "nice -n 5 PROGRAM ARGUMENT...".
type starter struct {
	// skip is how many operands stand before the program. Options may follow them.
	skip int
	// assignments says that operands of the form NAME=VALUE stand before the program.
	assignments bool
	// open says that it adds arguments of its own, joined that it gives its operands to a shell as one line.
	open, joined bool
	// script says that its operand is a script, and that without one it reads commands from its standard input.
	script bool
	// optional says that it does something of its own without a program.
	optional bool
}

// started says what c starts.
func started(c *Command) (inner, error) {
	name := c.Name()
	switch {
	case name == "find" || name == "gfind":
		return found(c), nil
	case name == "fd" || name == "fdfind":
		return afterOption(c, "-x", "--exec", "-X", "--exec-batch"), nil
	case name == "eval":
		in := inner{lines: []string{strings.Join(c.Argv[1:], " ")}}
		if c.Open {
			in.cannot("eval gets more arguments, which are not known beforehand")
		}
		return in, nil
	case name == "trap" && len(c.Argv) > 2:
		return inner{lines: c.Argv[1:2]}, nil
	case name == "source" || name == ".":
		return inner{unknown: "what is in a script cannot be told beforehand"}, nil
	case c.args != nil && c.args.starter != nil:
		return c.args.start(c)
	}
	return inner{}, nil
}

// start says what a program that starts others starts, from its options and operands.
func (r *reading) start(c *Command) (inner, error) {
	var in inner
	rest := r.rest
	if r.strange {
		in.cannot("%s has options that hako cannot read, so which program it starts is not known", c.Name())
	}
	for _, g := range r.given {
		if g.kind == line && g.has {
			in.lines = append(in.lines, g.value)
		}
	}
	if r.starter.script && r.has("c") && !r.takes("c") { // a shell's line is its first operand
		if len(rest) > 0 {
			in.lines = append(in.lines, rest[0])
		}
	}
	if r.name == "env" && len(rest) > 0 && rest[0] == "-" {
		rest = rest[1:] // the same as -i
	}
	for r.starter.assignments && len(rest) > 0 && strings.Contains(rest[0], "=") {
		name, _, _ := strings.Cut(rest[0], "=")
		if err := checkVariable(name); err != nil {
			return inner{}, err
		}
		rest = rest[1:]
	}
	switch {
	case r.starter.script:
		if len(in.lines) == 0 {
			in.cannot("what is in a script, or comes on standard input, cannot be told beforehand")
		}
	case len(rest) > 0:
		in.commands = append(in.commands, Command{Argv: rest, Open: c.Open || r.starter.open})
		r.movable(&in, rest)
		if r.starter.joined {
			in.lines = append(in.lines, strings.Join(rest, " "))
		}
	case len(in.lines) == 0 && (c.Open || !r.starter.optional):
		in.cannot("which program %s starts is not known beforehand", c.Name())
	}
	return in, nil
}

// takes reports whether the option with a name has a value.
func (r *reading) takes(name string) bool {
	o := r.named(name)
	return o != nil && o.value != noValue
}

// movable notes a program whose file cannot be told from its name when it starts: of a name with a directory, only
// those of the system are. What xargs puts in the place of something else is known only then, too.
func (r *reading) movable(in *inner, argv []string) {
	if r.name == "xargs" && r.has("I", "i") {
		placeholder := "{}"
		for _, value := range append(r.values("I"), r.values("i")...) {
			placeholder = value
		}
		in.replaced(r.name, argv, placeholder)
	}
	if strings.Contains(argv[0], "/") && !systemFile(argv[0]) {
		in.cannot(movableFile, r.name, quoted(argv[0]))
	}
}

const movableFile = "%s starts %s, a file that may be another program by then: name a program without its directory"

// replaced notes a command in which a placeholder stands for the program, or for an argument that says what starts in
// turn.
func (in *inner) replaced(by string, argv []string, placeholder string) {
	name := tableName(baseName(argv[0]))
	p := lookUp(name)
	holds := func(word string) bool { return strings.Contains(word, placeholder) }
	startsOthers := p != nil && p.starter != nil || name == "find" || name == "eval"
	if holds(argv[0]) || startsOthers && slices.ContainsFunc(argv[1:], holds) {
		in.cannot("%s puts what it finds in the place of %s, which can be a program", by, quoted(placeholder))
	}
}

// systemFile reports whether a path leads to where programs are installed.
func systemFile(name string) bool {
	return slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/", "/lib", "/opt/"}, func(dir string) bool {
		return strings.HasPrefix(name, dir) && !strings.Contains(name, "..")
	})
}

// findOperators are what find takes in its expression, by how many words follow.
var findOperators = map[int]string{
	0: `daystart depth d follow help ignore_readdir_race noignore_readdir_race mount xdev noleaf version warn nowarn empty executable false nogroup nouser
		readable true writable delete ls print print0 prune quit a and o or not H L P`,
	1: `amin anewer cmin cnewer context ctime atime mtime mmin fstype gid group ilname iname inum ipath iregex iwholename links lname name newer path perm
		regex samefile size type uid used user wholename xtype maxdepth mindepth regextype files0-from printf fprint fprint0 fls
		newerat newermt newerct newerBt neweraa newermm newercc neweram newerma newerac newerca newermc newercm D`,
	2: `fprintf`,
}

var findArity = func() map[string]int {
	arity := map[string]int{}
	for n, names := range findOperators {
		for _, name := range strings.Fields(names) {
			arity["-"+name] = n
		}
	}
	return arity
}()

// found finds the programs that find starts: -exec PROGRAM ARGUMENT... ";", or "{} +".
func found(c *Command) inner {
	var in inner
	for rest := c.Argv[1:]; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		n, known := findArity[word]
		switch {
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, word):
			rest = in.executed(rest, c.Open)
		case known:
			rest = rest[min(n, len(rest)):]
		case strings.HasPrefix(word, "-") && len(word) > 1 && !strings.HasPrefix(word, "-O"):
			in.cannot("hako does not know the expression %s of find, which may start other programs", quoted(word))
		}
	}
	if c.Open {
		in.cannot("find gets more arguments, which are not known beforehand")
	}
	return in
}

// executed reads the words after -exec, and returns what follows them.
func (in *inner) executed(rest []string, open bool) []string {
	end := 0
	for end < len(rest) && rest[end] != ";" && (rest[end] != "+" || end == 0 || rest[end-1] != "{}") {
		end++
	}
	if end == 0 {
		if open {
			in.cannot("which program find starts is not known beforehand")
		}
		return rest
	}
	in.replaced("find", rest[:end], "{}")
	if name := rest[0]; strings.Contains(name, "/") && !systemFile(name) {
		in.cannot(movableFile, "find", quoted(name))
	}
	in.commands = append(in.commands, Command{Argv: rest[:end:end], Open: true})
	return rest[min(end+1, len(rest)):]
}

// afterOption finds the program that follows one of options.
func afterOption(c *Command, options ...string) inner {
	var in inner
	at := slices.IndexFunc(c.Argv, func(word string) bool { return slices.Contains(options, word) })
	switch {
	case at < 0 && c.Open:
		in.cannot("%s gets more arguments, which are not known beforehand", c.Name())
	case at+1 == len(c.Argv):
		in.cannot("which program %s starts is not known beforehand", c.Name())
	case at >= 0:
		in.commands = []Command{{Argv: c.Argv[at+1:], Open: true}}
	}
	return in
}
