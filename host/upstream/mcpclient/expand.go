package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// reference matches ${NAME} or ${NAME:-default}, the form of MCP clients' configurations, also after "env:".
var reference = lazyregexp.New(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// environment has the variables for ${NAME}.
type environment map[string]string

func newEnvironment(environ []string) environment {
	e := environment{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			e[name] = value
		}
	}
	return e
}

// path is expand for a file or directory. "~" is the home directory.
func (e environment) path(text string) (string, error) {
	filled, err := e.expand(text)
	if rest, ok := strings.CutPrefix(filled, "~"); ok && (rest == "" || strings.ContainsAny(rest[:1], `/\`)) {
		home := e.home()
		if home == "" {
			return "", errors.New("~ is the home directory, and HOME is not set: write the whole path")
		}
		filled = home + rest
	}
	return filled, err
}

func (e environment) home() string { return cmp.Or(e["HOME"], e["USERPROFILE"]) }

// addDefaults adds the names that other clients have for directories: dir, where the configuration is, and the home
// directory.
func (e environment) addDefaults(dir string) {
	for name, value := range map[string]string{"workspaceFolder": dir, "userHome": e.home()} {
		if _, ok := e[name]; !ok && value != "" {
			e[name] = value
		}
	}
}

// expand replaces the variables in text. Their values are not expanded again.
func (e environment) expand(text string) (string, error) {
	var missing error
	filled := reference().ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference().FindStringSubmatch(ref)
		value, ok := e[parts[1]]
		switch {
		case ok && (value != "" || parts[2] == ""):
			return value
		case parts[2] != "":
			return parts[3]
		}
		if missing == nil {
			missing = fmt.Errorf("the environment variable %s is not set: set it where hako runs, or write ${%s:-default}", parts[1], parts[1])
		}
		return ""
	})
	return filled, missing
}

func (e environment) expandAll(texts []string) ([]string, error) {
	filled := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if filled[i], err = e.expand(text); err != nil {
			return nil, err
		}
	}
	return filled, nil
}

// value returns the value of v: a secret from its source, or a text with its variables expanded.
func (e environment) value(ctx context.Context, v Value) (string, error) {
	if !v.Secret.IsZero() {
		return v.Secret.Read(ctx)
	}
	return e.expand(v.Text)
}

// inherited are the variables that programs get. By convention, none contains a secret.
var inherited = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ",
	// Windows
	"SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "COMSPEC",
}

// forProgram returns the environment of a server's program: the inherited variables and those of its entry.
func (e environment) forProgram(ctx context.Context, env map[string]Value) ([]string, error) {
	var list []string
	for _, name := range inherited {
		value, ok := e[name]
		if _, named := env[name]; ok && !named {
			list = append(list, name+"="+value)
		}
	}
	for name, v := range env {
		value, err := e.value(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("env.%s: %w", name, err)
		}
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}
