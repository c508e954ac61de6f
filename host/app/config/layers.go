package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

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

// layer puts flags, the environment, what the file has set and defaults on top of each other.
func (c *Config) layer(flags *pflag.FlagSet, fileDir string) error {
	byKey := flagsByKey(flags)
	var problems []string
	for _, s := range c.settings {
		var err error
		flag, variable := byKey[s.key], s.setVariable()
		switch {
		case flag != nil && flag.Changed:
			c.origins[s.key] = "flag --" + flag.Name
			err = s.setFlag(flag)
		case variable != "":
			c.origins[s.key] = "env " + variable
			err = s.parse(os.Getenv(variable))
		case c.origins[s.key] != "": // the file
		default:
			c.origins[s.key] = OriginDefault
			err = s.setDefault(fileDir)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", c.origins[s.key], err))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("configuration: %s", strings.Join(problems, "\n"))
	}
	return nil
}

// setVariable returns the environment variable that sets s, or "". An empty variable sets nothing.
func (s setting) setVariable() string {
	for _, name := range s.environment() {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

func (s setting) setFlag(flag *pflag.Flag) error {
	list, isList := s.value.(*[]string)
	values, isSlice := flag.Value.(pflag.SliceValue)
	if isList && isSlice {
		*list = values.GetSlice()
		return nil
	}
	return s.parse(flag.Value.String())
}

func (s setting) setDefault(fileDir string) error {
	switch {
	case s.fallback == "":
		return nil
	case s.path:
		return s.parse(absolute(s.fallback, fileDir))
	}
	return s.parse(s.fallback)
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
