package confine

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/hako-run/hako/host/judge"
)

// dialect makes the interpreter do what bash does where it differs: printf, PIPESTATUS, descriptors above 2 and kill
// for jobs. It belongs to one script. What cannot be done, refuse reports before anything of the script runs.
type dialect struct {
	functions map[string]bool

	mu sync.Mutex
	// statuses are those of the parts of each pipeline, by its number.
	statuses [][]int
	// files are the descriptors above 2 that exec has opened.
	files map[string]*os.File
	jobs  map[string]*job
}

// job is what was started with "&".
type job struct {
	running map[*os.Process]bool
	signal  syscall.Signal // that has ended it, or 0
}

// Commands that rewrite puts into a script. The names cannot be written in it: they hold a newline.
const (
	cmdPart   = "\npart"   // records the status of a part of a pipeline
	cmdStatus = "\nstatus" // sets PIPESTATUS
	cmdOpen   = "\nopen"   // opens a descriptor as its standard output or input
	cmdClose  = "\nclose"
	// varJobs counts the jobs, as the interpreter does for "$!"; in a job, varJob is its number.
	varJobs, varJob = "__hako_jobs", "__hako_job"
	// descriptors is the directory of the descriptors above 2, for redirections.
	descriptors = "/dev/hako-descriptor"
)

func newDialect(file *syntax.File) *dialect {
	return &dialect{functions: functions(file), files: map[string]*os.File{}, jobs: map[string]*job{}}
}

// close closes the descriptors that the script has left open.
func (d *dialect) close() {
	for _, f := range d.files {
		_ = f.Close()
	}
}

// unsupported are the builtins of bash that the interpreter knows and does not have.
var unsupported = strings.Fields("bg bind caller compgen complete compopt disown enable fc fg history jobs logout newgrp suspend ulimit")

// refuse returns an error that names the first thing in the script which cannot be done, with its place.
func (d *dialect) refuse(file *syntax.File) (err error) {
	refused := func(at syntax.Pos, format string, args ...any) {
		if err == nil {
			err = fmt.Errorf("line %d, column %d: %s. Nothing of the command line was run", at.Line(), at.Col(), fmt.Sprintf(format, args...))
		}
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			for _, r := range node.Redirs {
				if what := unsupportedRedirect(node, r); what != "" {
					refused(r.Pos(), "%s", what)
				}
			}
		case *syntax.ProcSubst:
			if node.Op == syntax.CmdOut {
				refused(node.Pos(), ">(...) is not supported: use a pipe (|)")
			}
		case *syntax.CallExpr:
			if len(node.Args) == 0 {
				break
			}
			name := node.Args[0].Lit()
			if slices.Contains(unsupported, name) && !d.functions[name] {
				refused(node.Pos(), "the builtin %s is not supported", name)
			}
			if name == "read" && len(node.Args) > 1 {
				for _, word := range node.Args[1:] {
					option := word.Lit()
					if len(option) > 1 && option[0] == '-' && strings.Trim(option[1:], "rsap") != "" {
						refused(word.Pos(), "read %s is not supported: -r, -s, -a and -p are", option)
					}
				}
			}
		}
		return err == nil
	})
	return err
}

// high reports whether a descriptor is above 2, as written.
func high(number string) bool { return len(number) == 1 && number[0] >= '3' && number[0] <= '9' }

// unsupportedRedirect says what of a redirection is not supported, or "".
func unsupportedRedirect(stmt *syntax.Stmt, r *syntax.Redirect) string {
	number, target := "", ""
	if r.N != nil {
		number = r.N.Value
	}
	if r.Word != nil {
		target = r.Word.Lit()
	}
	switch {
	case r.Op == syntax.RdrInOut:
		return "<> is not supported: open the file for reading (<) or for writing (>)"
	case number != "" && !high(number) && !slices.Contains([]string{"0", "1", "2"}, number):
		return fmt.Sprintf("the descriptor %s is not supported: 0 to 9 are", number)
	case high(number) && (!isExec(stmt) || len(stmt.Redirs) > 1):
		return fmt.Sprintf("the descriptor %s can be opened and closed by exec alone, one at a time (exec %[1]s>FILE): open it on a line of its own", number)
	case high(number) && r.Op == syntax.DplIn && target != "-" && !high(target),
		!high(number) && r.Op == syntax.DplIn && target != "-" && target != "0" && !high(target):
		return fmt.Sprintf("<&%s is not supported", target)
	case isExec(stmt) && !high(number) && (high(target) && r.Op == syntax.DplOut):
		return "" // exec >&3
	case r.Op == syntax.DplOut && target != "-" && target != "1" && target != "2" && !high(target):
		return fmt.Sprintf(">&%s is not supported: name the descriptor, 1 to 9", target)
	}
	return ""
}

// isExec reports whether a statement is exec with redirections alone.
func isExec(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && len(call.Assigns) == 0 && call.Args[0].Lit() == "exec"
}

func word(text string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: text}}}
}

func callOf(words ...string) *syntax.Stmt {
	call := &syntax.CallExpr{}
	for _, w := range words {
		call.Args = append(call.Args, word(w))
	}
	return &syntax.Stmt{Cmd: call}
}

func block(stmts ...*syntax.Stmt) *syntax.Block { return &syntax.Block{Stmts: stmts} }

// rewrite replaces what the interpreter does not have by commands that handle does. text is the script.
func (d *dialect) rewrite(file *syntax.File, text string) {
	pipes := strings.Contains(text, "PIPESTATUS")
	inPipe := map[*syntax.Stmt]bool{} // parts of pipelines
	var stmts []*syntax.Stmt
	syntax.Walk(file, func(node syntax.Node) bool {
		if stmt, ok := node.(*syntax.Stmt); ok {
			stmts = append(stmts, stmt)
			if pipe, ok := pipeline(stmt); ok {
				inPipe[pipe.X], inPipe[pipe.Y] = true, true
			}
		}
		return true
	})
	slices.Reverse(stmts) // inner ones first
	for _, stmt := range stmts {
		d.rewriteRedirects(stmt)
		if _, pipe := pipeline(stmt); pipes && !inPipe[stmt] && (pipe || isCall(stmt)) && !isExec(stmt) {
			d.recordStatus(stmt)
		}
		if stmt.Background {
			inner := *stmt
			inner.Background = false
			*stmt = syntax.Stmt{Position: stmt.Position, Cmd: block(
				count(varJobs, varJobs, "1"),
				&syntax.Stmt{Background: true, Cmd: block(count(varJob, varJobs, "0"), &inner)})}
		}
	}
}

// count returns the assignment of a sum to a variable.
func count(name, from, add string) *syntax.Stmt {
	number := func(text string) *syntax.Word {
		return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}}
	}
	sum := &syntax.ArithmExp{X: &syntax.BinaryArithm{Op: syntax.Add, X: number(from), Y: number(add)}}
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Assigns: []*syntax.Assign{{Name: &syntax.Lit{Value: name},
		Value: &syntax.Word{Parts: []syntax.WordPart{sum}}}}}}
}

func pipeline(stmt *syntax.Stmt) (*syntax.BinaryCmd, bool) {
	binary, ok := stmt.Cmd.(*syntax.BinaryCmd)
	return binary, ok && (binary.Op == syntax.Pipe || binary.Op == syntax.PipeAll)
}

func isCall(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0
}

// recordStatus makes a statement set PIPESTATUS. Each part of a pipeline runs in a subshell, as in bash.
func (d *dialect) recordStatus(stmt *syntax.Stmt) {
	number := len(d.statuses)
	inner := *stmt
	inner.Negated, inner.Background = false, false
	parts := 0
	var record func(stmt *syntax.Stmt)
	record = func(stmt *syntax.Stmt) {
		if pipe, ok := pipeline(stmt); ok {
			record(pipe.X)
			record(pipe.Y)
			return
		}
		part := *stmt
		*stmt = syntax.Stmt{Position: stmt.Position, Cmd: block(
			&syntax.Stmt{Cmd: &syntax.Subshell{Stmts: []*syntax.Stmt{&part}}},
			callOf(cmdPart, strconv.Itoa(number), strconv.Itoa(parts)))}
		parts++
	}
	if _, ok := pipeline(&inner); ok {
		record(&inner)
	}
	d.statuses = append(d.statuses, make([]int, parts))
	*stmt = syntax.Stmt{Position: stmt.Position, Negated: stmt.Negated, Background: stmt.Background,
		Cmd: block(&inner, callOf(cmdStatus, strconv.Itoa(number)))}
}

// rewriteRedirects replaces descriptors above 2: "exec 3>FILE" opens one, ">&3" is a redirection to the file behind it.
func (d *dialect) rewriteRedirects(stmt *syntax.Stmt) {
	for _, r := range stmt.Redirs {
		if r.Op == syntax.DplOut && r.Word != nil && high(r.Word.Lit()) {
			r.Op, r.Word = syntax.AppOut, word(path.Join(descriptors, r.Word.Lit()))
		} else if r.Op == syntax.DplIn && r.Word != nil && high(r.Word.Lit()) {
			r.Op, r.Word = syntax.RdrIn, word(path.Join(descriptors, r.Word.Lit()))
		}
	}
	if !isExec(stmt) || len(stmt.Redirs) != 1 || stmt.Redirs[0].N == nil || !high(stmt.Redirs[0].N.Value) {
		return
	}
	r := *stmt.Redirs[0]
	number := r.N.Value
	opened := callOf(cmdOpen, number, "out")
	switch r.Op {
	case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		opened = callOf(cmdOpen, number, "in")
	case syntax.DplOut, syntax.DplIn:
		if r.Word.Lit() == "-" {
			stmt.Cmd, stmt.Redirs = callOf(cmdClose, number).Cmd, nil
			return
		}
	}
	r.N = nil
	stmt.Cmd, stmt.Redirs = opened.Cmd, []*syntax.Redirect{&r}
}

// open opens a file for a redirection.
func (d *dialect) open(next interp.OpenHandlerFunc) interp.OpenHandlerFunc {
	return func(ctx context.Context, name string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
		number, ok := strings.CutPrefix(name, descriptors+"/")
		if !ok {
			return next(ctx, name, flag, perm)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.files[number] == nil {
			return nil, fmt.Errorf("%s: bad file descriptor", number)
		}
		return duplicate(d.files[number])
	}
}

// call handles the commands that differ, and returns what the interpreter is to run instead.
func (d *dialect) call(ctx context.Context, argv []string) ([]string, error) {
	h := interp.HandlerCtx(ctx)
	if j := d.job(h.Env); j != nil {
		d.mu.Lock()
		ended := j.signal
		d.mu.Unlock()
		if ended != 0 {
			return exitWith(ended), nil
		}
	}
	switch argv[0] {
	case cmdPart, cmdStatus:
		return d.status(argv, h.LastExitStatus), nil
	case cmdOpen, cmdClose:
		return d.descriptor(argv, h), nil
	}
	words := argv
	for len(words) > 1 && (words[0] == "builtin" || words[0] == "command") && !strings.HasPrefix(words[1], "-") {
		words = words[1:]
	}
	switch {
	case len(words) == len(argv) && d.functions[argv[0]]:
	case words[0] == "printf" && len(words) > 1:
		return d.printf(words[1:], h), nil
	case words[0] == "kill":
		return d.kill(words[1:], h)
	}
	return argv, nil
}

func exitWith(signal syscall.Signal) []string {
	return []string{"exit", strconv.Itoa(statusSignaled + int(signal))}
}

// returning returns a command that does nothing and has a status.
func returning(status int) []string {
	if status == 0 {
		return []string{"true"}
	}
	return []string{"eval", fmt.Sprintf("(exit %d)", status)}
}

func (d *dialect) status(argv []string, last int) []string {
	number, _ := strconv.Atoi(argv[1])
	d.mu.Lock()
	defer d.mu.Unlock()
	statuses := d.statuses[number]
	if argv[0] == cmdPart {
		part, _ := strconv.Atoi(argv[2])
		statuses[part] = last
		return returning(last)
	}
	if len(statuses) == 0 {
		statuses = []int{last}
	}
	list := strings.Trim(fmt.Sprint(statuses), "[]")
	return []string{"eval", fmt.Sprintf("PIPESTATUS=(%s); (exit %d)", list, last)}
}

func (d *dialect) descriptor(argv []string, h interp.HandlerContext) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	number := argv[1]
	if old := d.files[number]; old != nil {
		_ = old.Close()
		delete(d.files, number)
	}
	if argv[0] == cmdClose {
		return returning(0)
	}
	var stream any = h.Stdout
	if argv[2] == "in" {
		stream = h.Stdin
	}
	f, ok := stream.(*os.File)
	if !ok {
		fmt.Fprintf(h.Stderr, "exec: %s: this stream cannot be opened as a descriptor\n", number)
		return returning(1)
	}
	var err error
	if d.files[number], err = duplicate(f); err != nil {
		delete(d.files, number)
		fmt.Fprintf(h.Stderr, "exec: %s: %v\n", number, err)
		return returning(1)
	}
	return returning(0)
}

// printf formats the arguments of printf and leaves the printing, or the assignment of -v, to the interpreter.
func (d *dialect) printf(args []string, h interp.HandlerContext) []string {
	variable := ""
	if args[0] == "-v" && len(args) > 2 {
		variable, args = args[1], args[2:]
		name, index, _ := strings.Cut(variable, "[")
		if !syntax.ValidName(name) || strings.Trim(strings.TrimSuffix(index, "]"), "0123456789") != "" || judge.IsLoader(name) {
			fmt.Fprintf(h.Stderr, "printf: %s: cannot be set\n", variable)
			return returning(2)
		}
	}
	if args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 || len(args[0]) > 1 && args[0][0] == '-' && variable == "" && args[0] == "-v" {
		fmt.Fprintln(h.Stderr, "printf: usage: printf [-v var] format [arguments]")
		return returning(2)
	}
	text, complaints := printfText(args[0], args[1:])
	for _, complaint := range complaints {
		fmt.Fprintln(h.Stderr, complaint)
	}
	status := min(1, len(complaints))
	switch {
	case variable != "":
		quoted, err := syntax.Quote(strings.ReplaceAll(text, "\x00", ""), syntax.LangBash)
		if err != nil {
			quoted = "''"
		}
		return []string{"eval", fmt.Sprintf("%s=%s; (exit %d)", variable, quoted, status)}
	case status == 0:
		return []string{"printf", "%s", text}
	}
	_, _ = io.WriteString(h.Stdout, text)
	return returning(status)
}

// kill ends jobs, which "$!" names. Processes are left to the program kill, if it is granted.
func (d *dialect) kill(args []string, h interp.HandlerContext) ([]string, error) {
	signal := syscall.SIGTERM
	targets := args
	switch {
	case len(args) > 1 && args[0] == "-s":
		signal, targets = signalNamed(args[1]), args[2:]
	case len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0] != "--":
		signal, targets = signalNamed(args[0][1:]), args[1:]
	}
	isJob := func(target string) bool {
		return len(target) > 1 && target[0] == 'g' && strings.Trim(target[1:], "0123456789") == ""
	}
	if len(targets) == 0 || !slices.ContainsFunc(targets, isJob) {
		return append([]string{"/bin/kill"}, args...), nil
	}
	status := 0
	for _, target := range targets {
		if !isJob(target) || signal < 0 {
			fmt.Fprintf(h.Stderr, "kill: %s: jobs, which $! names, and processes cannot be mixed, and the signal must have a name or number\n", target)
			status = 1
			continue
		}
		d.signal(target[1:], signal)
	}
	return returning(status), nil
}

func signalNamed(name string) syscall.Signal {
	if n, err := strconv.ParseUint(name, 10, 6); err == nil {
		return syscall.Signal(n)
	}
	return signalNumber("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
}

// signal sends a signal to the processes of a job. One that ends programs also ends what the job runs later.
func (d *dialect) signal(number string, signal syscall.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobLocked(number)
	if signal == syscall.SIGTERM || signal == syscall.SIGKILL || signal == syscall.SIGINT || signal == syscall.SIGHUP {
		j.signal = signal
	}
	for process := range j.running {
		_ = process.Signal(signal) // It may have ended meanwhile.
	}
}

func (d *dialect) jobLocked(number string) *job {
	if d.jobs[number] == nil {
		d.jobs[number] = &job{running: map[*os.Process]bool{}}
	}
	return d.jobs[number]
}

// job returns the job that a command with this environment belongs to, or nil.
func (d *dialect) job(env expand.Environ) *job {
	number := env.Get(varJob).Str
	if number == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobLocked(number)
}

// track returns a function that adds a process to the job of env, until the function that it returns is called.
func (d *dialect) track(env expand.Environ, outer tracker) tracker {
	j := d.job(env)
	if j == nil {
		return outer
	}
	return func(process *os.Process) (ended func()) {
		done := func() {}
		if outer != nil {
			done = outer(process)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		j.running[process] = true
		if j.signal != 0 {
			_ = process.Signal(j.signal)
		}
		return func() {
			d.mu.Lock()
			delete(j.running, process)
			d.mu.Unlock()
			done()
		}
	}
}

// tracker is told of a process that has started; the function that it returns is called when the process has ended.
type tracker func(*os.Process) (ended func())
