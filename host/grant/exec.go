package grant

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

var (
	program     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$`)
	environment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// settled are the variables that the host sets for every command.
var settled = []string{"PATH", "HOME", "TMPDIR"}

// checkExec checks what the operator settles about commands.
func (c *Consent) checkExec() error {
	e := &c.Exec
	if c.Asked.Exec == nil {
		if len(e.Programs)+len(e.Env)+len(e.Connect)+len(e.Ports) > 0 || e.Unconfined {
			return wrongExec(c.Name, "programs", both("it does not ask to run commands", "このプラグインはコマンドの実行を求めていません"))
		}
		return nil
	}
	errs := []error{c.checkPrograms()}
	for _, name := range e.Env {
		if !environment.MatchString(name) || slices.Contains(settled, name) {
			errs = append(errs, wrongExec(c.Name, "env", both("the variable %q cannot be passed on: name one other than %s",
				"環境変数 %q は渡せません。%s 以外の名前を指定してください", name, strings.Join(settled, ", "))))
		}
	}
	return errors.Join(append(errs, c.checkConnect())...)
}

func (c *Consent) checkPrograms() error {
	var errs []error
	for _, name := range c.Exec.Programs {
		switch {
		case name == manifest.AnyProgram && len(c.Exec.Programs) > 1:
			errs = append(errs, wrongExec(c.Name, "programs", both(`"*" allows all programs: leave the others out, or leave it out`,
				"「*」はすべてのプログラムを許可します。「*」だけにするか、「*」を除いてください")))
		case name != manifest.AnyProgram && !filepath.IsAbs(name) && !program.MatchString(name):
			errs = append(errs, wrongExec(c.Name, "programs", both("%q is neither the name of a program nor its absolute path",
				"%q はプログラムの名前でも絶対パスでもありません", name)))
		case !asksFor(c.Asked.Exec, name):
			errs = append(errs, notAsked(c.Name, name, c.Asked.Exec))
		}
	}
	if c.RevokedAt.IsZero() && len(c.Exec.Programs) == 0 {
		errs = append(errs, noPrograms(c.Name))
	}
	return errors.Join(errs...)
}

// asksFor reports whether a plugin asks for the program of that name or path.
func asksFor(asked *manifest.ExecPermission, name string) bool {
	return slices.Contains(asked.Programs, manifest.AnyProgram) || slices.Contains(asked.Programs, filepath.Base(name))
}

func noPrograms(plugin string) error {
	return wrong("exec.programs", both("name at least one program", "プログラムを 1 つ以上指定してください"),
		fmt.Sprintf("plugin %[1]s: no programs are named that it may run: hako plugin approve %[1]s --program git --program ls", plugin))
}

func notAsked(plugin, name string, asked *manifest.ExecPermission) error {
	text := both("it does not ask to run %s, only %s", "%s の実行は求められていません。求められているのは %s だけです", name, strings.Join(asked.Programs, ", "))
	return wrong("exec.programs", text, fmt.Sprintf("plugin %s: %s", plugin, text["en"]))
}

// exec returns which commands are granted.
func (c *Consent) exec(plugin string, asked *manifest.ExecPermission) (*Exec, error) {
	e := execUpdated(c.Exec, asked)
	switch {
	case len(c.Exec.Programs) == 0:
		return nil, noPrograms(plugin)
	case len(e.Programs) == 0:
		return nil, notAsked(plugin, c.Exec.Programs[0], asked)
	case len(c.Exec.Ports) > 0:
		return nil, portsError(plugin, c.Exec.Ports)
	}
	e.Env, e.Connect = slices.Clone(e.Env), slices.Clone(e.Connect)
	return &e, nil
}

// execAdditions lists what asked wants to run beyond approved.
func (w words) execAdditions(approved, asked *manifest.ExecPermission, language string) []string {
	switch {
	case asked == nil:
		return nil
	case approved == nil:
		return []string{w.exec(asked, language)}
	}
	more := slices.DeleteFunc(sorted(asked.Programs), func(name string) bool { return asksFor(approved, name) })
	switch {
	case len(more) == 0:
		return nil
	case more[0] == manifest.AnyProgram:
		return []string{w.addAnyProgram}
	}
	return []string{w.f(w.addPrograms, strings.Join(more, ", "))}
}

func (w words) exec(p *manifest.ExecPermission, language string) string {
	line := w.anyProgram
	if !slices.Contains(p.Programs, manifest.AnyProgram) {
		line = w.f(w.programs, strings.Join(p.Programs, ", "))
	}
	return w.reason(line, p.Reason, language)
}

// execUpdated is what was settled about commands, as far as a new version still asks for them.
func execUpdated(e Exec, asked *manifest.ExecPermission) Exec {
	if asked == nil {
		return Exec{}
	}
	e.Programs = slices.DeleteFunc(slices.Clone(e.Programs), func(name string) bool { return !asksFor(asked, name) })
	return e
}
