package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/visible"
)

// Setup is a way to configure a server.
type Setup struct {
	// Kind is the type of the package's registry, such as "npm", or the transport of a remote server.
	Kind string `json:"kind"`
	// Config is the document for the file of upstream servers (docs/upstreams.md). Nil means that hako cannot use the
	// setup, for Reason.
	Config *Config `json:"config,omitempty"`
	Reason string  `json:"reason,omitempty"`
	// Notes tell the operator what to set or to know.
	Notes []string `json:"notes,omitempty"`
}

// Config is a document in the form that MCP clients share, with one server.
type Config struct {
	Servers map[string]ConfigEntry `json:"mcpServers"`
}

// ConfigEntry is a program or the address of a server.
type ConfigEntry struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// packageJSON is a package of a server.json.
type packageJSON struct {
	RegistryType         string        `json:"registryType"`
	RegistryBaseURL      string        `json:"registryBaseUrl"`
	Identifier           string        `json:"identifier"`
	Version              string        `json:"version"`
	Transport            transportJSON `json:"transport"`
	RuntimeArguments     []inputJSON   `json:"runtimeArguments"`
	PackageArguments     []inputJSON   `json:"packageArguments"`
	EnvironmentVariables []inputJSON   `json:"environmentVariables"`
}

// transportJSON is a transport of a server.json.
type transportJSON struct {
	Type      string               `json:"type"`
	URL       string               `json:"url"`
	Headers   []inputJSON          `json:"headers"`
	Variables map[string]inputJSON `json:"variables"`
}

// inputJSON is an argument, a variable or a header of a server.json.
type inputJSON struct {
	// Type is "positional" or "named" for arguments.
	Type        string               `json:"type"`
	Name        string               `json:"name"`
	ValueHint   string               `json:"valueHint"`
	Description string               `json:"description"`
	Value       scalar               `json:"value"`
	Default     scalar               `json:"default"`
	IsRequired  bool                 `json:"isRequired"`
	IsSecret    bool                 `json:"isSecret"`
	Variables   map[string]inputJSON `json:"variables"`
}

// scalar is a string. Some publishers write numbers and booleans instead.
type scalar string

func (s *scalar) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(s))
	}
	if data[0] == '{' || data[0] == '[' {
		return errors.New("must be a string")
	}
	if string(data) != "null" {
		*s = scalar(data)
	}
	return nil
}

// maxInputs bounds the arguments, variables and headers of a setup, maxValue the length of each.
const (
	maxInputs = 50
	maxValue  = 2000
)

// writer writes a setup. Values that the operator has to provide become ${NAME} with names that begin with prefix, so
// that no entry of a registry reads a variable of hako's environment that exists for something else.
type writer struct {
	prefix string
	own    []string
	notes  []string
	inputs int
	err    error
}

func newWriter(key string) *writer { return &writer{prefix: variableName(key)} }

// finish returns the setup with entry, or the reason why there is none.
func (w *writer) finish(kind, key string, entry ConfigEntry) Setup {
	for _, text := range slices.Concat([]string{entry.Command, entry.URL}, entry.Args) {
		w.check(text)
	}
	for _, texts := range []map[string]string{entry.Env, entry.Headers} {
		for name, text := range texts {
			w.check(name)
			w.check(text)
		}
	}
	if w.err != nil {
		return Setup{Kind: tidy(kind, maxTitle), Reason: tidy(w.err.Error(), maxDescription)}
	}
	return Setup{Kind: kind, Config: &Config{map[string]ConfigEntry{key: entry}}, Notes: w.notes}
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// check refuses hidden characters and references to variables that writer did not make.
func (w *writer) check(text string) {
	if _, hidden := visible.First(text, ""); hidden {
		w.fail("its entry has hidden characters")
	}
	if len(text) > maxValue {
		w.fail("its entry has a value of more than %d bytes", maxValue)
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "${")
		if !found {
			return
		}
		name, _, _ := strings.Cut(after, "}")
		if !slices.Contains(w.own, name) {
			w.fail("its entry refers to a variable of hako's environment: ${%s", clipName(after))
			return
		}
		rest = after
	}
}

// provided returns a reference to a variable that the operator sets.
func (w *writer) provided(name string, in inputJSON) string {
	own := w.prefix + "_" + variableName(name)
	if !slices.Contains(w.own, own) {
		w.own = append(w.own, own)
		secret := ""
		if in.IsSecret {
			secret = " (secret)"
		}
		w.note("set %s%s%s", own, secret, described(in))
	}
	return "${" + own + "}"
}

func (w *writer) note(format string, args ...any) {
	w.notes = append(w.notes, tidy(fmt.Sprintf(format, args...), maxDescription))
}

func described(in inputJSON) string {
	if in.Description == "" {
		return ""
	}
	return ": " + in.Description
}

// value returns the value of an input, or false if it is optional and nobody has to set it.
func (w *writer) value(name string, in inputJSON) (string, bool) {
	if w.inputs++; w.inputs > maxInputs {
		w.fail("its entry has more than %d arguments, variables and headers", maxInputs)
		return "", false
	}
	switch {
	case in.Value != "":
		return w.fill(string(in.Value), in.Variables), true
	case in.Default != "":
		return string(in.Default), true
	case in.IsRequired || in.IsSecret:
		return w.provided(name, in), true
	}
	w.note("optional: %s%s", name, described(in))
	return "", false
}

var placeholder = lazyregexp.New(`\{[A-Za-z0-9_.-]{1,100}\}`)

// fill replaces the {name} of variables in a template. Others stay as they are.
func (w *writer) fill(template string, variables map[string]inputJSON) string {
	return placeholder().ReplaceAllStringFunc(template, func(found string) string {
		name := found[1 : len(found)-1]
		in, ok := variables[name]
		if !ok {
			return found
		}
		in.Variables, in.IsRequired = nil, true // a template needs all of its parts
		text, _ := w.value(name, in)
		return text
	})
}

// arguments returns a command line. What is named takes two arguments, which every program understands.
func (w *writer) arguments(list []inputJSON) (args []string) {
	for _, in := range list {
		name := in.Name
		if in.Type != "named" {
			name = in.ValueHint
		}
		if in.Type == "named" && in.Value == "" && in.Default == "" && !in.IsRequired && !in.IsSecret {
			w.note("optional: %s%s", name, described(in))
			continue
		}
		text, ok := w.value(name, in)
		if !ok {
			continue
		}
		if in.Type == "named" {
			args = append(args, in.Name)
		}
		args = append(args, text)
	}
	return args
}

var environmentName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)

// pairs returns variables or headers by name.
func (w *writer) pairs(list []inputJSON, valid func(string) bool) map[string]string {
	pairs := map[string]string{}
	for _, in := range list {
		if !valid(in.Name) {
			w.fail("its entry has an invalid name of a variable or header: %q", clipName(in.Name))
			return nil
		}
		if text, ok := w.value(in.Name, in); ok {
			pairs[in.Name] = text
		}
	}
	return pairs
}

// setup is the setup of a remote server.
func (t *transportJSON) setup(key string) Setup {
	w := newWriter(key)
	switch t.Type {
	case "streamable-http":
	case "sse":
		w.fail("it has the transport sse of MCP 2024-11-05, which hako does not support")
	default:
		w.fail("it has the unknown transport %q", clipName(t.Type))
	}
	entry := ConfigEntry{URL: w.fill(t.URL, t.Variables)}
	example := entry.URL
	for _, own := range w.own {
		example = strings.ReplaceAll(example, "${"+own+"}", "x")
	}
	if u, err := url.Parse(example); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsFunc(example, notPlain) || !strings.HasPrefix(t.URL, "https://") {
		w.fail("its address is not an https URL")
	}
	entry.Headers = w.pairs(t.Headers, httpguts.ValidHeaderFieldName)
	return w.finish(t.Type, key, entry)
}

// runner is the command that starts packages of a registry.
type runner struct {
	command    string
	identifier lazyregexp.Regexp
	// bases are the registries that command uses.
	bases []string
}

var runners = map[string]runner{
	"npm": {"npx", lazyregexp.New(`^(@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$`),
		[]string{"https://registry.npmjs.org"}},
	"pypi": {"uvx", lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`), []string{"https://pypi.org"}},
	"nuget": {"dnx", lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`),
		[]string{"https://api.nuget.org", "https://api.nuget.org/v3/index.json"}},
	"oci": {"docker", lazyregexp.New(`^[a-z0-9][A-Za-z0-9._/:@-]*$`), []string{"https://docker.io"}},
}

var packageVersion = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// setup is the setup of a program that communicates over its standard input and output.
func (p *packageJSON) setup(key string) Setup {
	w := newWriter(key)
	r, known := runners[p.RegistryType]
	switch {
	case !known:
		w.fail("it is a package of the type %q, which no command starts by its name", clipName(p.RegistryType))
	case p.Transport.Type != "" && p.Transport.Type != "stdio":
		w.fail("its package is a server with the transport %q: start it yourself, and name its url",
			clipName(p.Transport.Type))
	case len(p.Identifier) > maxName || !r.identifier().MatchString(p.Identifier),
		p.Version != "" && (len(p.Version) > maxName || !packageVersion().MatchString(p.Version)):
		w.fail("the identifier or version of its package is invalid")
	case p.RegistryBaseURL != "" && !slices.Contains(r.bases, strings.TrimSuffix(p.RegistryBaseURL, "/")):
		w.fail("its package is at %s, which %s does not use by default", Shown(p.RegistryBaseURL), r.command)
	}
	if w.err != nil {
		return w.finish(p.RegistryType, key, ConfigEntry{})
	}
	env := w.pairs(p.EnvironmentVariables, environmentName().MatchString)
	if len(p.RuntimeArguments) > 0 {
		w.note("its publisher chose the arguments of %s: read them", r.command)
	}
	entry := ConfigEntry{Command: r.command, Env: env,
		Args: p.commandLine(w.arguments(p.RuntimeArguments), w.arguments(p.PackageArguments), env)}
	if p.Version == "" && !hasTag(p.Identifier) {
		w.note("it names no version: each start may run another one")
	}
	return w.finish(p.RegistryType, key, entry)
}

// commandLine returns the arguments of the runner.
func (p *packageJSON) commandLine(runtime, own []string, env map[string]string) (args []string) {
	pinned := p.Identifier
	if p.Version != "" {
		pinned += "@" + p.Version
	}
	switch p.RegistryType {
	case "npm":
		if !slices.Contains(runtime, "-y") && !slices.Contains(runtime, "--yes") {
			args = []string{"-y"}
		}
		return slices.Concat(args, runtime, []string{pinned}, own)
	case "nuget":
		args = slices.Concat(runtime, []string{pinned, "--yes"})
		if len(own) > 0 {
			args = append(append(args, "--"), own...)
		}
		return args
	case "oci":
		if len(runtime) == 0 || runtime[0] != "run" {
			args = []string{"run", "-i", "--rm"}
			for _, name := range slices.Sorted(maps.Keys(env)) {
				args = append(args, "-e", name)
			}
		}
		image := p.Identifier
		if p.Version != "" && !hasTag(image) {
			image += ":" + p.Version
		}
		return slices.Concat(args, runtime, []string{image}, own)
	}
	return slices.Concat(runtime, []string{pinned}, own)
}

// hasTag reports whether the name of an image has a tag or digest.
func hasTag(image string) bool {
	return strings.ContainsAny(image[strings.LastIndexByte(image, '/')+1:], ":@")
}

// configName returns a name for the server in hako's configuration.
func configName(server string) string {
	namespace, name, _ := strings.Cut(server, "/")
	if slices.Contains([]string{"mcp", "server", "mcp-server"}, name) {
		name = namespace[strings.LastIndexByte(namespace, '.')+1:]
	}
	name = strings.TrimLeft(name, "0123456789._-")
	if name == "" {
		return "server"
	}
	return name[:min(len(name), 40)]
}

// variableName returns text as part of the name of an environment variable.
func variableName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(strings.TrimLeft(text[:min(len(text), 100)], "-")))
}

// clipName shortens a text for a message.
func clipName(text string) string { return tidy(text, 60) }
