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
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("plugin %s: exec: "+format, append([]any{c.Name}, args...)...))
	}
	e := &c.Exec
	if c.Asked.Exec == nil {
		if len(e.Programs)+len(e.Env)+len(e.Ports) > 0 || e.Unconfined {
			fail("it does not ask to run commands")
		}
		return errors.Join(errs...)
	}
	for _, name := range e.Programs {
		switch {
		case name == manifest.AnyProgram && len(e.Programs) > 1:
			fail(`"*" allows all programs: leave the others out, or leave it out`)
		case name != manifest.AnyProgram && !filepath.IsAbs(name) && !program.MatchString(name):
			fail("%q is neither the name of a program nor its absolute path", name)
		case !asksFor(c.Asked.Exec, name):
			errs = append(errs, notAsked(c.Name, name, c.Asked.Exec))
		}
	}
	for _, name := range e.Env {
		if !environment.MatchString(name) || slices.Contains(settled, name) {
			fail("the variable %q cannot be passed on: name one other than %s", name, strings.Join(settled, ", "))
		}
	}
	if slices.Contains(e.Ports, 0) {
		fail("there is no port 0")
	}
	if c.RevokedAt.IsZero() && len(e.Programs) == 0 {
		errs = append(errs, noPrograms(c.Name))
	}
	return errors.Join(errs...)
}

// asksFor reports whether a plugin asks for the program of that name or path.
func asksFor(asked *manifest.ExecPermission, name string) bool {
	return slices.Contains(asked.Programs, manifest.AnyProgram) || slices.Contains(asked.Programs, filepath.Base(name))
}

func noPrograms(plugin string) error {
	return fmt.Errorf("plugin %[1]s: no programs are named that it may run: hako plugin approve %[1]s --program git --program ls", plugin)
}

func notAsked(plugin, name string, asked *manifest.ExecPermission) error {
	return fmt.Errorf("plugin %s: it does not ask to run %s, only %s", plugin, name, strings.Join(asked.Programs, ", "))
}

// exec returns which commands are granted.
func (c *Consent) exec(plugin string, asked *manifest.ExecPermission) (*Exec, error) {
	e := execUpdated(c.Exec, asked)
	switch {
	case len(c.Exec.Programs) == 0:
		return nil, noPrograms(plugin)
	case len(e.Programs) == 0:
		return nil, notAsked(plugin, c.Exec.Programs[0], asked)
	}
	e.Env, e.Ports = slices.Clone(e.Env), slices.Clone(e.Ports)
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
