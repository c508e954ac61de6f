package judge

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxLine limits a line, in bytes.
	maxLine = 64 << 10
	// maxCommands limits the commands in a line, including nested ones.
	maxCommands = 1000
)

// finder collects the commands of a line.
type finder struct {
	commands  []Command
	functions []string
	reads     []*syntax.Assign // the variables of the builtin read alone
	deferred  bool
	opaque    string // the first reason why a command is not known beforehand; empty if all are known
}

// unknown records that commands are not known beforehand, and why. Commands that hako's own shell starts are judged at
// their start.
func (f *finder) unknown(via []string, why string) {
	switch {
	case interpreted(via):
		f.deferred = true
	case f.opaque == "":
		f.opaque = why
	}
}

// interpreted reports whether via consists of shells only, which hako interprets itself.
func interpreted(via []string) bool {
	return !slices.ContainsFunc(via, func(name string) bool {
		return !IsShell(name) &&
			!slices.Contains(builtins, name)
	})
}

// builtins are the shell builtins that run other commands.
var builtins = []string{"eval", "trap", "source", ".", "command", "builtin", "exec"}

// IsShell reports whether name is a shell. Its lines and scripts can be judged command by command while they run.
func IsShell(name string) bool { return name == "sh" || aliases[name] == "sh" }

// line finds the commands of a line that via starts.
func (f *finder) line(text string, via []string) error {
	switch {
	case len(text) > maxLine:
		return &LineError{fmt.Sprintf("longer than %d bytes: put it into a file, or run its parts one by one", maxLine)}
	case len(via) > maxDepth:
		return &LineError{fmt.Sprintf("commands are nested more than %d deep", maxDepth)}
	case strings.ContainsRune(text, 0):
		return &LineError{"a NUL character"}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return &LineError{parseReason(err)}
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		if err == nil {
			err = f.node(node, via)
		}
		return err == nil
	})
	return err
}

func parseReason(err error) string {
	var parse syntax.ParseError
	if errors.As(err, &parse) {
		return fmt.Sprintf("at %s: %s", parse.Pos, parse.Text)
	}
	return err.Error()
}

// node examines one node of the syntax tree. The walk visits the nodes below it too, so each command substitution is
// examined on its own.
func (f *finder) node(node syntax.Node, via []string) error {
	switch node := node.(type) {
	case *syntax.CallExpr:
		return f.call(node, via)
	case *syntax.FuncDecl:
		switch {
		case node.Name == nil:
			return &LineError{"a function has no name"}
		case slices.Contains(reserved, node.Name.Value):
			return &LineError{fmt.Sprintf("a function named %s would replace the command", node.Name.Value)}
		}
		f.functions = append(f.functions, node.Name.Value)
	case *syntax.Assign:
		if node.Name != nil && node.Name.Value == "IFS" && slices.Contains(f.reads, node) {
			return nil // "IFS=, read a b" splits the line that is read and nothing else
		}
		return checkAssignment(node)
	case *syntax.CoprocClause:
		return &LineError{"coproc is not supported"}
	case *syntax.Redirect:
		return checkRedirect(node)
	}
	return nil
}

// reserved are names that functions must not have, because this package interprets commands of these names.
var reserved = []string{"command", "builtin", "exec", "eval", "source", ".", "read"}

func (f *finder) call(call *syntax.CallExpr, via []string) error {
	if len(call.Args) == 0 {
		return nil // assignments alone
	}
	c := Command{Via: via}
	if call.Args[0].Lit() == "read" {
		f.reads = append(f.reads, call.Assigns...)
	}
	for _, word := range call.Args {
		fields, known := literal(word)
		switch {
		case known:
			c.Argv = append(c.Argv, fields...)
		case len(c.Argv) == 0: // the program itself
			f.unknown(via, openLine)
			return nil
		default:
			f.unknown(via, openLine)
			c.Later = c.Later || interpreted(via)
			c.Open = c.Open || !interpreted(via)
		}
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil
	}
	return f.command(c)
}

const openLine = "its line depends on variables, commands or files, and is not interpreted by hako's own shell"

// command records a command and the commands that it starts.
func (f *finder) command(c Command) error {
	if len(f.commands) == maxCommands {
		return &LineError{fmt.Sprintf("more than %d commands", maxCommands)}
	}
	if len(c.Via) > maxDepth {
		return &LineError{fmt.Sprintf("commands are nested more than %d deep", maxDepth)}
	}
	c.args = read(tableName(c.Name()), c.Argv[1:])
	f.commands = append(f.commands, c)
	inner, err := nestedCommands(&c)
	if err != nil {
		return err
	}
	via := append(slices.Clone(c.Via), c.Name())
	if inner.unknown != "" {
		f.unknown(via, inner.unknown)
	}
	for _, line := range inner.lines {
		if err := f.line(line, via); err != nil {
			return err
		}
	}
	for _, command := range inner.commands {
		command.Via, command.Later = via, c.Later
		if err := f.command(command); err != nil {
			return err
		}
	}
	return nil
}

// loaders are the variables that change which programs or libraries are found, or what programs do. A prefix ends with
// "*".
var loaders = []string{
	"PATH", "IFS", "ENV", "BASH_ENV", "BASH_FUNC_*", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "LD_*",
	"DYLD_*", "GCONV_PATH", "MALLOC_*",
	"PYTHON*", "PERL*", "RUBY*", "NODE_*", "JAVA_TOOL_OPTIONS", "GIT_*", "PAGER", "MANPAGER", "EDITOR", "VISUAL",
	"BROWSER", "LESSOPEN", "LESSCLOSE",
	"SHELL", "TMPDIR", "HOME", "XDG_*", "CDPATH", "TAR_OPTIONS", "TAPE", "RSYNC_*", "GREP_OPTIONS",
	"MAKEFLAGS", "GO*", "CC", "CXX",
	// These change how a program parses its options, or add some.
	"POSIXLY_CORRECT", "GZIP", "BZIP*", "XZ_*", "ZIP*", "UNZIP*", "RIPGREP_CONFIG_PATH", "CURL_HOME", "WGETRC",
	"LESS*", "MANOPT", "OPENSSL_*",
}

// IsLoader reports whether name is a variable that changes which programs or libraries are found, or what programs do.
func IsLoader(name string) bool {
	return slices.ContainsFunc(loaders, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

// checkRedirect refuses to redirect to devices. Access to other files is checked when they are opened.
func checkRedirect(redirect *syntax.Redirect) error {
	if redirect.Word == nil {
		return nil
	}
	fields, known := literal(redirect.Word)
	if !known || len(fields) != 1 {
		return nil
	}
	target := path.Clean(fields[0])
	if strings.HasPrefix(target, "/dev/") && !slices.Contains(harmlessDevices, target) {
		return &LineError{fmt.Sprintf("%s is a device: only %s can be redirected to or from", target,
			strings.Join(harmlessDevices, ", "))}
	}
	return nil
}

var harmlessDevices = []string{"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr"}

// checkAssignment refuses assignments to loaders in the line. Variables that are set in other ways are removed when the
// runner builds the environment of a command.
func checkAssignment(assign *syntax.Assign) error {
	var name string
	switch {
	case assign.Name != nil:
		name = assign.Name.Value
	case assign.Value != nil:
		fields, _ := literal(assign.Value) // export "NAME=value"
		name, _, _ = strings.Cut(strings.Join(fields, ""), "=")
	}
	return checkVariable(name)
}

func checkVariable(name string) error {
	if IsLoader(name) {
		return &LineError{fmt.Sprintf("%s cannot be set here, because it changes which programs run or how: the "+
			"operator sets the environment", name)}
	}
	return nil
}
