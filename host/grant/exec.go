package grant

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/lazyregexp"
)

var (
	program     = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$`)
	environment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// hostVariables are the variables that the host sets for every command.
var hostVariables = []string{"PATH", "HOME", "TMPDIR"}

// checkExec checks the operator's settings for commands.
func (c *Consent) checkExec() error {
	e := &c.Exec
	if c.Asked.Exec == nil {
		if len(e.Programs)+len(e.Env)+len(e.Connect)+len(e.Ports) > 0 || e.Unconfined {
			return execError(c.Name, "programs", bilingual("it does not ask to run commands",
				"このプラグインはコマンドの実行を求めていません"))
		}
		return nil
	}
	errs := []error{c.checkPrograms()}
	for _, name := range e.Env {
		if !environment().MatchString(name) || slices.Contains(hostVariables, name) {
			errs = append(errs, execError(c.Name, "env",
				bilingual("the variable %q cannot be passed on: name one other than %s",
					"環境変数 %q は渡せません。%s 以外の名前を指定してください", name, strings.Join(hostVariables, ", "))))
		}
	}
	return errors.Join(append(errs, c.checkConnect())...)
}

func (c *Consent) checkPrograms() error {
	var errs []error
	for _, name := range c.Exec.Programs {
		switch {
		case name == manifest.AnyProgram && len(c.Exec.Programs) > 1:
			errs = append(errs, execError(c.Name, "programs",
				bilingual(`"*" allows all programs: leave the others out, or leave it out`,
					"「*」はすべてのプログラムを許可します。「*」だけにするか、「*」を除いてください")))
		case name != manifest.AnyProgram && !filepath.IsAbs(name) && !program().MatchString(name):
			errs = append(errs, execError(c.Name, "programs",
				bilingual("%q is neither the name of a program nor its absolute path",
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

// asksFor reports whether a plugin asks for the program with that name or path.
func asksFor(asked *manifest.ExecPermission, name string) bool {
	return slices.Contains(asked.Programs, manifest.AnyProgram) || slices.Contains(asked.Programs, filepath.Base(name))
}

func noPrograms(plugin string) error {
	return choiceError("exec.programs", bilingual("name at least one program", "プログラムを 1 つ以上指定してください"),
		fmt.Sprintf("plugin %s: no programs are named that it may run: name them with --program", plugin))
}

func notAsked(plugin, name string, asked *manifest.ExecPermission) error {
	text := bilingual("it does not ask to run %s, only %s", "%s の実行は求められていません。求められているのは %s だけです", name,
		strings.Join(asked.Programs, ", "))
	return choiceError("exec.programs", text, fmt.Sprintf("plugin %s: %s", plugin, text["en"]))
}

// exec returns the grant for commands.
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

// execAdditions lists the programs in asked beyond approved.
func (w wording) execAdditions(approved, asked *manifest.ExecPermission, language string) []string {
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

func (w wording) exec(p *manifest.ExecPermission, language string) string {
	line := w.anyProgram
	if !slices.Contains(p.Programs, manifest.AnyProgram) {
		line = w.f(w.programs, strings.Join(p.Programs, ", "))
	}
	return w.reason(line, p.Reason, language)
}

// execUpdated returns the settings for commands that a new version still asks for.
func execUpdated(e Exec, asked *manifest.ExecPermission) Exec {
	if asked == nil {
		return Exec{}
	}
	e.Programs = slices.DeleteFunc(slices.Clone(e.Programs), func(name string) bool { return !asksFor(asked, name) })
	return e
}
