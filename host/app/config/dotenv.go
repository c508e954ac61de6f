package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// dotEnvName is the file beside the configuration file whose variables count where the environment has none.
const dotEnvName = ".env"

// maxDotEnv bounds the file, in bytes.
const maxDotEnv = 64 << 10

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// setDotEnv sets the variables of the file in dir that the environment has not. It is there for all that reads the
// environment, programs that hako starts included as far as they get its variables. No file is no error.
func setDotEnv(dir string) error {
	path := filepath.Join(dir, dotEnvName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Size() > maxDotEnv {
		err = fmt.Errorf("%s has more than %d KiB: it has one variable per line", path, maxDotEnv>>10)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	variables, err := parseDotEnv(string(text))
	if err != nil {
		return fmt.Errorf("configuration: %s:%w", path, err)
	}
	for _, v := range variables {
		if _, ok := os.LookupEnv(v[0]); !ok {
			if err := os.Setenv(v[0], v[1]); err != nil {
				return fmt.Errorf("configuration: %s: %s: %w", path, v[0], err)
			}
		}
	}
	return nil
}

// parseDotEnv reads lines of NAME=VALUE. A value may stand in single quotes, or in double quotes with \n, \" and \\;
// "#" begins a comment. Nothing is replaced in values. The error begins with the line.
func parseDotEnv(text string) (variables [][2]string, err error) {
	line := 0
	for raw := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line++
		entry := strings.TrimSpace(raw)
		if entry == "" || strings.HasPrefix(entry, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(entry, "export "), "=")
		if name = strings.TrimSpace(name); !ok || !variableName().MatchString(name) {
			return nil, fmt.Errorf("%d: a line must be NAME=VALUE or a comment (#)", line) // it may hold a secret
		}
		if value, ok = unquoted(strings.TrimSpace(value)); !ok || strings.Contains(value, "\x00") {
			return nil, fmt.Errorf("%d: the value of %s does not end with the quote that it begins with", line, name)
		}
		variables = append(variables, [2]string{name, value})
	}
	return variables, nil
}

var quotedValue = lazyregexp.New(`^(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?$`)

// unquoted returns a value without its quotes. It reports false if a quote is not closed.
func unquoted(value string) (string, bool) {
	if !strings.HasPrefix(value, "'") && !strings.HasPrefix(value, `"`) {
		value, _, _ = strings.Cut(" "+value, " #")
		return strings.TrimSpace(value), true
	}
	parts := quotedValue().FindStringSubmatch(value)
	if parts == nil {
		return "", false
	}
	return parts[1] + strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(parts[2]), true
}
