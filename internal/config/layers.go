package config

import (
	"fmt"
	"os"
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

// layer puts flags, environment, what the file has set and defaults on top of each other. Viper knows which of them
// counts; types and rules are the settings' own, because viper folds keys to lower case and does not tell where in a
// file they were.
func (c *Config) layer(flags *pflag.FlagSet, fileDir string) error {
	byKey := flagsByKey(flags)
	layers, err := c.layers(byKey, fileDir)
	if err != nil {
		return err
	}
	var problems []string
	for _, s := range c.settings {
		if outer := outerOrigin(s, byKey[s.key]); outer != "" {
			c.origins[s.key] = outer
		} else if c.origins[s.key] == "" {
			c.origins[s.key] = OriginDefault
		}
		if raw := layers.Get(s.key); raw != nil {
			if err := s.set(raw); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", c.origins[s.key], err))
			}
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("configuration: %s", strings.Join(problems, "\n"))
	}
	return nil
}

// layers tells viper of all the layers.
func (c *Config) layers(flags map[string]*pflag.Flag, fileDir string) (*viper.Viper, error) {
	// No key holds this delimiter, so that a key is one word to viper.
	layers := viper.NewWithOptions(viper.KeyDelimiter("|"))
	values := map[string]any{}
	for _, s := range c.settings {
		switch {
		case s.path && s.fallback != "":
			layers.SetDefault(s.key, absolute(s.fallback, fileDir))
		case s.fallback != "":
			layers.SetDefault(s.key, s.fallback)
		}
		if c.origins[s.key] != "" {
			values[s.key] = s.raw()
		}
		if err := layers.BindEnv(append([]string{s.key}, s.environment()...)...); err != nil {
			return nil, err
		}
		if flag := flags[s.key]; flag != nil {
			if err := layers.BindPFlag(s.key, flag); err != nil {
				return nil, err
			}
		}
	}
	return layers, layers.MergeConfigMap(values)
}

// outerOrigin names the flag or the variable that sets s, in viper's order; empty if there is none.
func outerOrigin(s setting, flag *pflag.Flag) string {
	if flag != nil && flag.Changed {
		return "flag --" + flag.Name
	}
	for _, name := range s.environment() {
		if os.Getenv(name) != "" {
			return "env " + name
		}
	}
	return ""
}

// kubernetesLink matches the variables that Kubernetes sets for a service called "hako".
var kubernetesLink = lazyregexp.New(`^HAKO_(SERVICE_(HOST|PORT)|PORT(_|$))`)

// unknownVariables warns of variables that look like hako's and mean nothing, and are none of those that the file names
// as places of secrets. They are no errors, because others set some.
func unknownVariables(environ []string, settings []setting, secrets []Secret) []string {
	known := []string{fileVariable, clientVariable}
	var warnings []string
	for _, s := range settings {
		known = append(known, variable(s.key))
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || kubernetesLink.MatchString(name) ||
			slices.ContainsFunc(secrets, func(s Secret) bool { return s.Source.Env == name }) {
			continue
		}
		if near := strictyaml.Nearest(name, known); near == "" {
			warnings = append(warnings, fmt.Sprintf("the environment variable %s sets nothing", name))
		} else if near != name {
			warnings = append(warnings, fmt.Sprintf("the environment variable %s sets nothing: did you mean %s?", name,
				near))
		}
	}
	return warnings
}
