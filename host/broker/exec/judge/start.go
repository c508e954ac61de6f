package judge

import (
	"slices"
	"strings"
)

// inner is what a command starts in turn.
type inner struct {
	commands []Command
	lines    []string // for a shell
	unknown  bool     // something that cannot be told
}

// starter describes a program that starts another one, which its operands name: "nice -n 5 PROGRAM ARGUMENT...".
type starter struct {
	// takes are the options that take the next word as their value, without dashes.
	takes []string
	// skip is how many operands stand before the program. Options may follow them.
	skip int
	// assignments says that operands of the form NAME=VALUE stand before the program.
	assignments bool
	// open says that it adds arguments of its own, joined that it gives its operands to a shell as one line.
	open, joined bool
	// lines are the options whose value is a line for a shell, words those whose value stands for several arguments.
	lines, words []string
	// script says that its operand is a script, and that without one it reads commands from its standard input.
	script bool
	// optional says that it does something of its own without a program.
	optional bool
}

var shell = starter{takes: []string{"o", "O", "rcfile", "init-file"}, lines: []string{"c"}, script: true}

var starters = map[string]starter{
	"sh": shell, "bash": shell, "dash": shell, "ash": shell, "zsh": shell, "ksh": shell, "mksh": shell, "yash": shell, "rbash": shell, "fish": shell,
	"csh": shell, "tcsh": shell,

	"env":              {takes: []string{"u", "unset", "C", "chdir", "a", "argv0"}, assignments: true, words: []string{"S", "split-string"}, optional: true},
	"sudo":             {takes: []string{"u", "user", "g", "group", "p", "prompt", "C", "close-from", "D", "chdir", "h", "host", "r", "role", "t", "type", "T", "R", "chroot", "U"}, assignments: true, optional: true},
	"doas":             {takes: []string{"u", "C", "a"}},
	"su":               {takes: []string{"g", "group", "G", "supp-group", "s", "shell", "w"}, lines: []string{"c", "command", "session-command"}, skip: 1, script: true},
	"runuser":          {takes: []string{"u", "user", "g", "group", "G", "supp-group", "s", "shell", "w"}, lines: []string{"c", "command", "session-command"}, skip: 1, script: true},
	"nohup":            {},
	"setsid":           {},
	"nice":             {takes: []string{"n", "adjustment"}, optional: true},
	"ionice":           {takes: []string{"c", "class", "n", "classdata", "p", "pid", "P", "u"}, optional: true},
	"chrt":             {takes: []string{"T", "P", "D"}, skip: 1},
	"taskset":          {skip: 1},
	"numactl":          {takes: []string{"N", "m", "C", "p", "i"}},
	"timeout":          {takes: []string{"k", "kill-after", "s", "signal"}, skip: 1},
	"time":             {takes: []string{"f", "format", "o", "output"}},
	"stdbuf":           {takes: []string{"i", "input", "o", "output", "e", "error"}},
	"unbuffer":         {},
	"watch":            {takes: []string{"n", "interval"}, joined: true},
	"flock":            {takes: []string{"w", "timeout", "E"}, skip: 1, lines: []string{"c", "command"}, optional: true},
	"script":           {skip: 1, takes: []string{"E", "I", "O", "B", "T", "m", "o"}, lines: []string{"c", "command"}, optional: true},
	"strace":           {takes: []string{"e", "o", "p", "s", "u", "E", "a", "I", "O", "P", "S", "b", "X"}},
	"ltrace":           {takes: []string{"e", "o", "p", "s", "u", "a", "n", "A", "D", "F", "l", "x"}},
	"gdb":              {takes: []string{"p", "x", "ex", "iex", "c", "d"}},
	"valgrind":         {},
	"chroot":           {skip: 1},
	"unshare":          {takes: []string{"R", "w", "S", "G", "root", "wd", "setuid", "setgid"}, optional: true},
	"nsenter":          {takes: []string{"t", "target", "S", "G", "W"}, optional: true},
	"setpriv":          {takes: []string{}},
	"prlimit":          {takes: []string{"p", "pid", "o"}, optional: true},
	"capsh":            {takes: []string{}, lines: []string{"c"}},
	"systemd-run":      {takes: []string{"p", "property", "u", "unit", "E", "setenv", "M", "H", "slice", "description"}},
	"busybox":          {optional: true},
	"toybox":           {optional: true},
	"ssh-agent":        {takes: []string{"a", "t", "E"}, optional: true},
	"dbus-run-session": {takes: []string{"config-file"}},
	"xvfb-run":         {takes: []string{"n", "e", "f", "s", "w", "p"}},
	"proxychains":      {takes: []string{"f"}},
	"rlwrap":           {takes: []string{"a", "b", "f", "H", "P", "p", "q", "s", "C", "D", "S", "t", "z"}},
	"ld.so":            {takes: []string{"library-path", "inhibit-rpath", "audit", "preload", "argv0"}},

	"xargs":    {takes: []string{"a", "arg-file", "d", "delimiter", "E", "I", "L", "n", "P", "s", "max-args", "max-procs", "max-lines", "max-chars"}, open: true, optional: true},
	"parallel": {takes: []string{"j", "jobs", "a", "arg-file", "S", "I", "N", "n", "d"}, open: true, joined: true, optional: true},

	"command": {optional: true}, "builtin": {}, "exec": {takes: []string{"a"}, optional: true},
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
		return inner{lines: []string{strings.Join(c.Argv[1:], " ")}, unknown: c.Open}, nil
	case name == "trap" && len(c.Argv) > 2:
		return inner{lines: c.Argv[1:2]}, nil
	case name == "source" || name == ".":
		return inner{unknown: true}, nil
	case strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl"):
		name = "ld.so"
	}
	if s, ok := starters[name]; ok {
		return s.split(c)
	}
	return inner{}, nil
}

// split takes the options and operands of c apart.
func (s *starter) split(c *Command) (inner, error) {
	var in inner
	rest, skip := c.Argv[1:], s.skip
	for len(rest) > 0 {
		word := rest[0]
		switch {
		case word == "--":
			return s.operands(c, rest[1:], skip, in)
		case isOption(word, s.script):
			rest = s.option(&in, word, rest[1:])
		case skip > 0:
			rest, skip = rest[1:], skip-1
		default:
			return s.operands(c, rest, 0, in)
		}
	}
	return s.operands(c, nil, 0, in)
}

func isOption(word string, plus bool) bool {
	return len(word) > 1 && (word[0] == '-' || plus && word[0] == '+')
}

// option reads one word of options and returns what follows it and its value.
func (s *starter) option(in *inner, word string, rest []string) []string {
	name, value, has := s.spell(word)
	line, words := slices.Contains(s.lines, name), slices.Contains(s.words, name)
	if !has && (line || words || slices.Contains(s.takes, name)) {
		if len(rest) == 0 {
			in.unknown = in.unknown || line || words
			return nil
		}
		value, rest = rest[0], rest[1:]
	}
	switch {
	case line:
		in.lines = append(in.lines, value)
	case words:
		// What follows are more arguments of the same command.
		in.lines = append(in.lines, strings.TrimSpace(value+" "+quoteAll(rest)))
		rest = nil
	}
	return rest
}

// spell takes "-n5", "-n", "--adjustment=5" or "-ec" apart into the option that counts and its value.
func (s *starter) spell(word string) (name, value string, has bool) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		return strings.Cut(long, "=")
	}
	letters := word[1:]
	if slices.Contains(s.takes, letters) {
		return letters, "", false // one word after one dash: gdb -ex
	}
	for i := range letters {
		letter := letters[i : i+1]
		switch {
		case s.script && s.skip == 0 && letter == "c":
			return letter, "", false // a shell's options may go on after "c": the line is the next word
		case slices.Contains(s.takes, letter) || slices.Contains(s.lines, letter) || slices.Contains(s.words, letter):
			return letter, letters[i+1:], i+1 < len(letters)
		}
	}
	return letters, "", false
}

// operands finds the program among the operands, of which the first ones are not meant.
func (s *starter) operands(c *Command, rest []string, skip int, in inner) (inner, error) {
	rest = rest[min(skip, len(rest)):]
	for s.assignments && len(rest) > 0 && strings.Contains(rest[0], "=") {
		name, _, _ := strings.Cut(rest[0], "=")
		if err := checkVariable(name); err != nil {
			return inner{}, err
		}
		rest = rest[1:]
	}
	switch {
	case s.script:
		in.unknown = in.unknown || len(in.lines) == 0
	case len(rest) > 0:
		in.commands = append(in.commands, Command{Argv: rest, Open: c.Open || s.open})
		if s.joined {
			in.lines = append(in.lines, strings.Join(rest, " "))
		}
	case len(in.lines) == 0 && (c.Open || !s.optional):
		in.unknown = true
	}
	return in, nil
}

// found finds the programs that find starts: -exec PROGRAM ARGUMENT... ; or +.
func found(c *Command) inner {
	var in inner
	for rest := c.Argv[1:]; len(rest) > 0; {
		option := rest[0]
		rest = rest[1:]
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, option) {
			continue
		}
		end := slices.IndexFunc(rest, func(word string) bool { return word == ";" || word == "+" })
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			in.unknown = in.unknown || c.Open
			continue
		}
		in.commands = append(in.commands, Command{Argv: rest[:end:end], Open: true})
		rest = rest[end:]
	}
	return in
}

// afterOption finds the program that follows one of options.
func afterOption(c *Command, options ...string) inner {
	at := slices.IndexFunc(c.Argv, func(word string) bool { return slices.Contains(options, word) })
	switch {
	case at < 0:
		return inner{unknown: c.Open}
	case at+1 == len(c.Argv):
		return inner{unknown: true}
	}
	return inner{commands: []Command{{Argv: c.Argv[at+1:], Open: true}}}
}
