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
	// maxLine bounds a line, in bytes.
	maxLine = 64 << 10
	// maxCommands bounds the commands in a line, those within others included.
	maxCommands = 1000
)

// finder collects the commands of a line.
type finder struct {
	commands  []Command
	functions []string
	deferred  bool
	opaque    string // the first reason why something cannot be told; empty if all can
}

// unknown notes that something cannot be told, and why. What the host's own shell starts is told when it does.
func (f *finder) unknown(via []string, why string) {
	switch {
	case interpreted(via):
		f.deferred = true
	case f.opaque == "":
		f.opaque = why
	}
}

// interpreted reports whether only shells stand between the line and what via starts: those the host interprets itself.
func interpreted(via []string) bool {
	return !slices.ContainsFunc(via, func(name string) bool { return !IsShell(name) && !slices.Contains(builtins, name) })
}

// builtins start commands without leaving the shell.
var builtins = []string{"eval", "trap", "source", ".", "command", "builtin", "exec"}

// IsShell reports whether name is that of a shell, whose lines and scripts can be judged command by command while they run.
func IsShell(name string) bool { return name == "sh" || aliases[name] == "sh" }

// line finds the commands of a line that via starts.
func (f *finder) line(text string, via []string) error {
	switch {
	case len(text) > maxLine:
		return &LineError{fmt.Sprintf("longer than %d bytes: put it into a file, or run its parts one by one", maxLine)}
	case len(via) > maxDepth:
		return &LineError{fmt.Sprintf("commands within commands more than %d deep", maxDepth)}
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

// node looks at one node of the syntax tree. Those below it are visited as well, so that each command substitution, wherever it
// stands, is found for itself.
func (f *finder) node(node syntax.Node, via []string) error {
	switch node := node.(type) {
	case *syntax.CallExpr:
		return f.call(node, via)
	case *syntax.FuncDecl:
		switch {
		case node.Name == nil:
			return &LineError{"a function without a name"}
		case slices.Contains(reserved, node.Name.Value):
			return &LineError{fmt.Sprintf("a function called %s would stand in for the command", node.Name.Value)}
		}
		f.functions = append(f.functions, node.Name.Value)
	case *syntax.Assign:
		return checkAssignment(node)
	case *syntax.CoprocClause:
		return &LineError{"coproc is not served"}
	case *syntax.Redirect:
		return checkRedirect(node)
	}
	return nil
}

// reserved are names that mean something to this package: a function in their place would make it look at the wrong thing.
var reserved = []string{"command", "builtin", "exec", "eval", "source", "."}

func (f *finder) call(call *syntax.CallExpr, via []string) error {
	if len(call.Args) == 0 {
		return nil // assignments alone
	}
	c := Command{Via: via}
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

const openLine = "its line depends on variables, commands or files, and another program than hako's own shell would read it"

// command notes a command and what it starts in turn.
func (f *finder) command(c Command) error {
	if len(f.commands) == maxCommands {
		return &LineError{fmt.Sprintf("more than %d commands", maxCommands)}
	}
	if len(c.Via) > maxDepth {
		return &LineError{fmt.Sprintf("commands within commands more than %d deep", maxDepth)}
	}
	c.args = read(tableName(c.Name()), c.Argv[1:])
	f.commands = append(f.commands, c)
	inner, err := started(&c)
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

// loaders are variables by which a command line would change what other programs do or which ones are found. A prefix ends with "*".
var loaders = []string{
	"PATH", "IFS", "ENV", "BASH_ENV", "BASH_FUNC_*", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "LD_*", "DYLD_*", "GCONV_PATH", "MALLOC_*",
	"PYTHON*", "PERL*", "RUBY*", "NODE_*", "JAVA_TOOL_OPTIONS", "GIT_*", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE",
	"SHELL", "TMPDIR", "HOME", "XDG_*", "CDPATH", "TAR_OPTIONS", "TAPE", "RSYNC_*", "GREP_OPTIONS", "MAKEFLAGS", "GO*", "CC", "CXX",
	// These change how a program reads its options, or add some.
	"POSIXLY_CORRECT", "GZIP", "BZIP*", "XZ_*", "ZIP*", "UNZIP*", "RIPGREP_CONFIG_PATH", "CURL_HOME", "WGETRC", "LESS*", "MANOPT", "OPENSSL_*",
}

// IsLoader reports whether name is a variable by which a command line would change what other programs do, or which ones are found.
func IsLoader(name string) bool {
	return slices.ContainsFunc(loaders, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

// checkRedirect refuses to write to devices. Whoever opens a file holds its final path against the grants.
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
		return &LineError{fmt.Sprintf("%s is a device: only %s can be redirected to or from", target, strings.Join(harmlessDevices, ", "))}
	}
	return nil
}

var harmlessDevices = []string{"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr"}

// checkAssignment refuses to set a loader where the line says so. Other ways to set a variable end where the runner gives
// commands their environment.
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
		return &LineError{fmt.Sprintf("%s cannot be set here, because it changes which programs run or how: the operator sets the environment", name)}
	}
	return nil
}
