package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

// prefix starts the environment variables that are hako's.
const prefix = "HAKO_"

// fileVariable names the configuration file where --config does not.
const fileVariable = prefix + "CONFIG"

// clientVariable is read by MCP clients, as "hako mcp-config" tells them to.
const clientVariable = prefix + "TOKEN"

// OriginDefault is the origin of values that nobody has set.
const OriginDefault = "default"

// keyAnnotation marks a flag with the key that it sets.
const keyAnnotation = "hako-key"

// Flag makes the flag called name, which must be in flags, set the key.
func Flag(flags *pflag.FlagSet, name, key string) {
	if err := flags.SetAnnotation(name, keyAnnotation, []string{key}); err != nil {
		panic(err) // there is no such flag
	}
}

// keyDelimiter separates the levels of viper's keys. It is in none of ours, which are names of settings as a whole.
const keyDelimiter = "\x00"

// layer lets viper put flags, the environment, what the file has set and defaults on top of each other. Only single
// settings pass through it, whose keys are hako's own: it folds the case of keys, and names that users choose keep
// theirs. Values from the file are read and checked before, with their lines.
func (c *Config) layer(flags *pflag.FlagSet, fileDir string) error {
	layers := viper.NewWithOptions(viper.KeyDelimiter(keyDelimiter))
	byKey := flagsByKey(flags)
	fromFile := map[string]any{}
	for _, s := range c.settings {
		if c.origins[s.key] != "" {
			fromFile[s.key] = s.raw()
		}
		layers.SetDefault(s.key, s.defaultIn(fileDir))
		if names := s.environment(); names != nil {
			if err := layers.BindEnv(append([]string{s.key}, names...)...); err != nil {
				return err
			}
		}
		if flag := byKey[s.key]; flag != nil {
			if err := layers.BindPFlag(s.key, flag); err != nil {
				return err
			}
		}
	}
	if err := layers.MergeConfigMap(fromFile); err != nil {
		return err
	}
	var problems []string
	for _, s := range c.settings {
		c.origins[s.key] = s.origin(byKey[s.key], c.origins[s.key])
		if err := s.set(layers.Get(s.key)); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", c.origins[s.key], err))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("configuration: %s", strings.Join(problems, "\n"))
	}
	return nil
}

// flagsByKey returns the flags that set something.
func flagsByKey(flags *pflag.FlagSet) map[string]*pflag.Flag {
	byKey := map[string]*pflag.Flag{}
	if flags == nil {
		return byKey
	}
	flags.VisitAll(func(f *pflag.Flag) {
		for _, key := range f.Annotations[keyAnnotation] {
			byKey[key] = f
		}
	})
	return byKey
}

// origin names the layer whose value counts, which viper does not say. file is the place in the file, if it is there.
func (s setting) origin(flag *pflag.Flag, file string) string {
	if flag != nil && flag.Changed {
		return "flag --" + flag.Name
	}
	for _, name := range s.environment() {
		if os.Getenv(name) != "" {
			return "env " + name
		}
	}
	return cmp.Or(file, OriginDefault)
}

// defaultIn returns the default, as one would write it. Paths start at fileDir.
func (s setting) defaultIn(fileDir string) any {
	switch {
	case s.fallback == "":
		return nil
	case s.path:
		return absolute(s.fallback, fileDir)
	}
	return s.fallback
}

// set sets the value of a layer: text as one would write it, or what the file or a flag has already parsed. Nil leaves the
// zero value.
func (s setting) set(value any) error {
	if value == nil {
		return nil
	}
	if text, ok := value.(string); ok {
		return s.parse(text)
	}
	target, given := reflect.ValueOf(s.value).Elem(), reflect.ValueOf(value)
	if given.Type() != target.Type() {
		return s.parse(fmt.Sprint(value))
	}
	target.Set(given)
	return nil
}

// kubernetesLink matches the variables that Kubernetes sets for a service called "hako".
var kubernetesLink = lazyregexp.New(`^HAKO_(SERVICE_(HOST|PORT)|PORT(_|$))`)

// unknownVariables warns of HAKO_ variables that no setting has and that the file does not name as places of secrets.
// They are no errors, because others set such variables: Kubernetes for a service called "hako", clients HAKO_TOKEN.
func unknownVariables(environ []string, settings []setting, secrets []Secret) []string {
	known := []string{fileVariable, clientVariable}
	var warnings []string
	for _, s := range settings {
		known = append(known, s.environment()...)
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || kubernetesLink().MatchString(name) ||
			slices.ContainsFunc(secrets, func(s Secret) bool { return s.Source.Env == name }) {
			continue
		}
		secret := slices.IndexFunc(settings, func(s setting) bool { return s.isSecret() && variable(s.key) == name })
		near := strictyaml.Nearest(name, known)
		switch {
		case secret >= 0:
			warnings = append(warnings, fmt.Sprintf("the environment variable %s has no effect unless the configuration "+
				"file names it: %s: {env: %[1]s}", name, settings[secret].key))
		case near == "":
			warnings = append(warnings, fmt.Sprintf("the environment variable %s has no effect", name))
		case near != name:
			warnings = append(warnings, fmt.Sprintf("the environment variable %s has no effect: did you mean %s?", name,
				near))
		}
	}
	return warnings
}
