package judge

import (
	"fmt"
	"slices"
	"strings"
)

// nested are the commands that a command starts.
type nested struct {
	commands []Command
	lines    []string // for a shell
	unknown  string   // why some of them are not known; empty if all are known
}

const unknownScript = "the content of a script is not known beforehand"

// setUnknown records the first reason why commands are not known.
func (in *nested) setUnknown(format string, args ...any) {
	if in.unknown == "" {
		in.unknown = fmt.Sprintf(format, args...)
	}
}

// wrapper describes how a program names the program that it starts after its options: "nice -n 5 PROGRAM ARGUMENT...".
type wrapper struct {
	// skip is the number of operands before the program. Options may follow them.
	skip int
	// assignments reports that operands of the form NAME=VALUE may precede the program.
	assignments bool
	// open reports that it adds arguments, joined that it passes its operands to a shell as one line.
	open, joined bool
	// script reports that its operand is a script, and that without one it reads commands from standard input.
	script bool
	// optional reports that it has a function of its own without a program.
	optional bool
}

// nestedCommands returns the commands that c starts.
func nestedCommands(c *Command) (nested, error) {
	name := c.Name()
	switch {
	case name == "find" || name == "gfind":
		return nestedInFind(c), nil
	case name == "fd" || name == "fdfind":
		return afterOption(c, "-x", "--exec", "-X", "--exec-batch"), nil
	case name == "eval":
		in := nested{lines: []string{strings.Join(c.Argv[1:], " ")}}
		if c.Open {
			in.setUnknown("eval gets more arguments, which are not known beforehand")
		}
		return in, nil
	case name == "trap" && len(c.Argv) > 2:
		return nested{lines: c.Argv[1:2]}, nil
	case name == "source" || name == ".":
		return nested{unknown: unknownScript}, nil
	case c.args != nil && c.args.wrapper != nil:
		return c.args.start(c)
	}
	return nested{}, nil
}

// start returns the commands that a wrapper starts, from its options and operands.
func (r *parsedArgs) start(c *Command) (nested, error) {
	var in nested
	rest := r.rest
	if r.unparsed {
		in.setUnknown("%s has options that hako cannot read, so which program it starts is not known", c.Name())
	}
	for _, g := range r.given {
		if g.kind == line && g.has {
			in.lines = append(in.lines, g.value)
		}
	}
	if r.wrapper.script && r.has("c") && !r.takes("c") { // the line of a shell is its first operand
		if len(rest) > 0 {
			in.lines = append(in.lines, rest[0])
		}
	}
	if r.name == "env" && len(rest) > 0 && rest[0] == "-" {
		rest = rest[1:] // the same as -i
	}
	for r.wrapper.assignments && len(rest) > 0 && strings.Contains(rest[0], "=") {
		name, _, _ := strings.Cut(rest[0], "=")
		if err := checkVariable(name); err != nil {
			return nested{}, err
		}
		rest = rest[1:]
	}
	switch {
	case r.wrapper.script:
		if len(in.lines) == 0 {
			in.setUnknown("the content of a script or of standard input is not known beforehand")
		}
	case len(rest) > 0:
		in.commands = append(in.commands, Command{Argv: rest, Open: c.Open || r.wrapper.open})
		r.noteReplaceable(&in, rest)
		if r.wrapper.joined {
			in.lines = append(in.lines, strings.Join(rest, " "))
		}
	case len(in.lines) == 0 && (c.Open || !r.wrapper.optional):
		in.setUnknown("which program %s starts is not known beforehand", c.Name())
	}
	return in, nil
}

// takes reports whether an option has a value.
func (r *parsedArgs) takes(name string) bool {
	o := r.named(name)
	return o != nil && o.value != noValue
}

// noteReplaceable records a program whose file may be another one when it starts: a path outside of the system's
// directories, or one with a placeholder of xargs.
func (r *parsedArgs) noteReplaceable(in *nested, argv []string) {
	if r.name == "xargs" && r.has("I", "i") {
		placeholder := "{}"
		for _, value := range append(r.values("I"), r.values("i")...) {
			placeholder = value
		}
		in.replaced(r.name, argv, placeholder)
	}
	if strings.Contains(argv[0], "/") && !systemFile(argv[0]) {
		in.setUnknown(replaceableFile, r.name, quoted(argv[0]))
	}
}

const replaceableFile = "%s starts %s, a file that may be another program by then: name a program without its directory"

// replaced records a command with a placeholder in the place of the program, or of an argument that names further
// programs.
func (in *nested) replaced(by string, argv []string, placeholder string) {
	name := tableName(baseName(argv[0]))
	p := lookUp(name)
	holds := func(word string) bool { return strings.Contains(word, placeholder) }
	startsOthers := p != nil && p.wrapper != nil || name == "find" || name == "eval"
	if holds(argv[0]) || startsOthers && slices.ContainsFunc(argv[1:], holds) {
		in.setUnknown("%s replaces %s with what it finds, which can be a program", by, quoted(placeholder))
	}
}

// systemFile reports whether a path is in a directory of installed programs.
func systemFile(name string) bool {
	return slices.ContainsFunc([]string{"/bin/", "/sbin/", "/usr/", "/lib", "/opt/"}, func(dir string) bool {
		return strings.HasPrefix(name, dir) && !strings.Contains(name, "..")
	})
}

// findOperators are the words of find's expressions, by the number of their arguments.
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

// nestedInFind returns the commands that find starts: -exec PROGRAM ARGUMENT... ";", or "{} +".
func nestedInFind(c *Command) nested {
	var in nested
	for rest := c.Argv[1:]; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		n, known := findArity[word]
		switch {
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, word):
			rest = in.parseExec(rest, c.Open)
		case known:
			rest = rest[min(n, len(rest)):]
		case strings.HasPrefix(word, "-") && len(word) > 1 && !strings.HasPrefix(word, "-O"):
			in.setUnknown("hako does not know the expression %s of find, which may start other programs", quoted(word))
		}
	}
	if c.Open {
		in.setUnknown("find gets more arguments, which are not known beforehand")
	}
	return in
}

// parseExec parses the words after -exec and returns the rest.
func (in *nested) parseExec(rest []string, open bool) []string {
	end := 0
	for end < len(rest) && rest[end] != ";" && (rest[end] != "+" || end == 0 || rest[end-1] != "{}") {
		end++
	}
	if end == 0 {
		if open {
			in.setUnknown("which program find starts is not known beforehand")
		}
		return rest
	}
	in.replaced("find", rest[:end], "{}")
	if name := rest[0]; strings.Contains(name, "/") && !systemFile(name) {
		in.setUnknown(replaceableFile, "find", quoted(name))
	}
	in.commands = append(in.commands, Command{Argv: rest[:end:end], Open: true})
	return rest[min(end+1, len(rest)):]
}

// afterOption returns the command that follows one of options.
func afterOption(c *Command, options ...string) nested {
	var in nested
	at := slices.IndexFunc(c.Argv, func(word string) bool { return slices.Contains(options, word) })
	switch {
	case at < 0 && c.Open:
		in.setUnknown("%s gets more arguments, which are not known beforehand", c.Name())
	case at+1 == len(c.Argv):
		in.setUnknown("which program %s starts is not known beforehand", c.Name())
	case at >= 0:
		in.commands = []Command{{Argv: c.Argv[at+1:], Open: true}}
	}
	return in
}
