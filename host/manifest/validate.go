package manifest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

var (
	pluginName = lazyregexp.New(`^[a-z][a-z0-9-]{0,39}$`)
	toolName   = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)
	// version is the grammar of Semantic Versioning 2.0.0.
	version = lazyregexp.New(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)` +
		`(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?` +
		`(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	license  = lazyregexp.New(`^[A-Za-z0-9.+():-][A-Za-z0-9.+(): -]{0,199}$`)
	mimeType = lazyregexp.New(`^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; ?[A-Za-z0-9=.;" _-]+)?$`)
	iconSize = lazyregexp.New(`^(any|[1-9][0-9]{0,4}x[1-9][0-9]{0,4})$`)
)

// ValidName reports whether text may be the name of a plugin.
func ValidName(text string) bool { return pluginName().MatchString(text) }

// maxItems bounds the entries of each kind in a manifest.
const maxItems = 256

// validation collects the problems of a manifest.
type validation struct {
	Error
	// component is set for the manifest of a component: its tools may lack descriptions and schemas.
	component bool
}

// Validate checks the rules that hold across the fields of a manifest, and compiles the schemas of its tools. The error
// is an *Error. Parse checks the same; a manifest put together in Go must be validated before use. It is not safe for
// concurrent use.
func (m *Manifest) Validate() error {
	var v validation
	v.offers(m)
	v.manifest(m)
	return v.Err()
}

// validateModule is Validate for the manifest of a core module.
func (m *Manifest) validateModule() error {
	var v validation
	for i, t := range m.Tools {
		if t.Export != "" {
			v.Add(strictyaml.Index("tools", i)+".export",
				"is for components and plugins of the Extism ABI, and this plugin is neither: remove it")
		}
		v.noFunction(strictyaml.Index("tools", i), t)
	}
	v.noPlaceholders(m)
	v.offers(m)
	v.manifest(m)
	return v.Err()
}

// noFunction rejects the keys for functions of the Extism ABI.
func (v *validation) noFunction(path string, t Tool) {
	for key, value := range map[string]string{"argument": t.Argument, "result": t.Result} {
		if value != "" {
			v.Add(path+"."+key, "is for functions of the Extism ABI, and this plugin has none: remove it")
		}
	}
}

// noPlaceholders rejects keys that are placeholders, which only the Extism ABI has.
func (v *validation) noPlaceholders(m *Manifest) {
	for _, name := range keys(m.Config) {
		if m.Config[name].Credential != "" {
			v.Add(strictyaml.Key("config", name)+".credential",
				"is for plugins of the Extism ABI: remove it, "+
					"the host sets the header of a permission's credential itself")
		}
	}
}

// placeholders validates the keys that are placeholders for credentials.
func (v *validation) placeholders(m *Manifest) {
	for _, name := range keys(m.Config) {
		k, path := m.Config[name], strictyaml.Key("config", name)
		switch asks := func(p HTTPPermission) bool { return p.Credential == k.Credential }; {
		case k.Credential == "":
		case k.Type != "string" || k.Default != nil || k.Enum != nil || k.Required:
			v.Add(path,
				"a placeholder for a credential must have the type string and neither default, enum nor required")
		case !slices.ContainsFunc(m.Permissions.HTTP, asks):
			v.Add(path+".credential", "must be the credential of an HTTP permission")
		case m.Placeholder(k.Credential) != name:
			v.Add(path+".credential", "has a placeholder already, %s: remove one of the two",
				m.Placeholder(k.Credential))
		case m.Permissions.State != "" && m.Permissions.State != StateCall:
			v.Add(path+".credential",
				"is another value in each call, which the state %s would outlive: remove one of the two",
				m.Permissions.State)
		}
	}
}

// validateExtism is Validate for the manifest of a plugin of the Extism ABI: its tools, if it lists any, call
// functions.
func (m *Manifest) validateExtism() error {
	var v validation
	for i, t := range m.Tools {
		v.function(strictyaml.Index("tools", i), t)
	}
	v.placeholders(m)
	if offered(m) > len(m.Tools) {
		v.Add("", "a plugin of the Extism ABI is asked for its resources and prompts: "+
			"remove resources, resourceTemplates and prompts")
	}
	if m.Permissions.SQL != nil {
		v.Add("permissions.sql", "a plugin of the Extism ABI has no functions for a database: remove it")
	}
	if m.Permissions.Exec != nil {
		v.Add("permissions.exec", "a plugin of the Extism ABI has no functions for commands: remove it")
	}
	if m.Permissions.Tools != nil {
		v.Add("permissions.tools", "a plugin of the Extism ABI has no functions for other tools: remove it")
	}
	v.manifest(m)
	return v.Err()
}

// function validates how a tool calls a function of the Extism ABI.
func (v *validation) function(path string, t Tool) {
	if t.Export == "" {
		v.Add(path+".export", "is missing: name the function that the tool calls, "+
			"or remove tools, so that the plugin is asked for what it offers")
	}
	if t.Result != "" && t.Result != ResultText && t.Result != ResultJSON {
		v.Add(path+".result", "must be %q or %q", ResultText, ResultJSON)
	}
	if t.OutputSchema != nil && t.Result != ResultJSON {
		v.Add(path+".result", "must be %q, because there is an outputSchema", ResultJSON)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.InputSchema, &schema) == nil && t.Argument != "" && schema.Properties[t.Argument] == nil {
		v.Add(path+".argument", "must be a property of inputSchema")
	}
}

// validateComponent is Validate for the manifest of a component before it is completed.
func (m *Manifest) validateComponent() error {
	v := validation{component: true}
	for i, t := range m.Tools {
		v.noFunction(strictyaml.Index("tools", i), t)
	}
	v.noPlaceholders(m)
	v.manifest(m)
	return v.Err()
}

func (v *validation) manifest(m *Manifest) {
	v.match("name", m.Name, pluginName, `1 to 40 of a-z, 0-9 and "-", starting with a letter`)
	v.match("version", m.Version, version, `a semantic version such as "1.0.0"`)
	v.text("description", m.Description, maxDescription)
	v.optional("license", m.License, license, `an SPDX expression such as "Apache-2.0"`)
	v.tools(m.Tools, m.Config)
	for i := range m.Tools {
		if m.Tools[i].Declarations && m.Permissions.Tools == nil {
			v.Add(strictyaml.Index("tools", i)+".declarations",
				"needs permissions.tools: without it the tool calls no others")
		}
	}
	v.resources(m.Resources)
	v.resourceTemplates(m.ResourceTemplates)
	v.prompts(m.Prompts)
	v.retired(m)
	v.config(m.Config)
	v.httpPermissions(m.Permissions.HTTP, m.Config)
	v.filePermissions(m.Permissions.Files)
	v.sqlPermission(m.Permissions.SQL)
	v.execPermission(m.Permissions.Exec)
	v.toolsPermission(m.Permissions.Tools)
	v.limits("limits", m.Limits)
}

func (v *validation) match(path, value string, rule lazyregexp.Regexp, words string) {
	switch {
	case value == "":
		v.Add(path, "is missing: it must be %s", words)
	case !rule().MatchString(value):
		v.Add(path, "must be %s", words)
	}
}

func (v *validation) optional(path, value string, rule lazyregexp.Regexp, words string) {
	if value != "" {
		v.match(path, value, rule, words)
	}
}

// items checks the length of a list and that the names of its items are unique.
func items[T any](v *validation, path string, list []T, name func(T) (key, value string)) {
	if len(list) > maxItems {
		v.Add(path, "lists %d; at most %d are allowed", len(list), maxItems)
	}
	seen := map[string]int{}
	for i, item := range list {
		key, value := name(item)
		at := strictyaml.Index(path, i)
		if first, ok := seen[value]; ok && value != "" {
			v.Add(at+key, "is the same as in %s: each needs its own", strictyaml.Index(path, first))
			continue
		}
		seen[value] = i
	}
}

func (v *validation) offers(m *Manifest) {
	if offered(m) == 0 {
		v.Add("tools", "the manifest offers nothing: list tools, resources, resourceTemplates or prompts")
	}
}

// offered counts what a manifest offers.
func offered(m *Manifest) int {
	return len(m.Tools) + len(m.Resources) + len(m.ResourceTemplates) + len(m.Prompts)
}

func (v *validation) tools(tools []Tool, config map[string]ConfigKey) {
	items(v, "tools", tools, func(t Tool) (string, string) { return ".name", t.Name })
	for i := range tools {
		path, t := strictyaml.Index("tools", i), &tools[i]
		v.match(path+".name", t.Name, toolName, `1 to 64 of A-Z, a-z, 0-9, "_" and "-"`)
		v.text(path+".title", t.Title, maxTitle)
		if v.component {
			v.text(path+".description", t.Description, maxDescription)
		} else {
			v.required(path+".description", t.Description, maxDescription)
		}
		if t.input = nil; !v.component || t.InputSchema != nil {
			t.input = v.schema(path+".inputSchema", t.InputSchema)
		}
		if t.output = nil; t.OutputSchema != nil {
			t.output = v.schema(path+".outputSchema", t.OutputSchema)
		}
		v.annotations(path+".annotations", t.Annotations)
		v.icons(path+".icons", t.Icons)
		v.toolLimits(path+".limits", t.Limits)
		v.when(path+".when", t.When, config)
		if t.Replaces != nil {
			v.replaces(path+".replaces", t, tools)
		}
	}
}

// when checks that a tool depends on configuration keys that there are, and on values that they can have.
func (v *validation) when(path string, when map[string][]string, config map[string]ConfigKey) {
	for _, key := range keys(when) {
		at, k := strictyaml.Key(path, key), config[key]
		if k.Type != "string" {
			v.Add(at, "must be a key of config with the type string")
			continue
		}
		for i, value := range when[key] {
			if !k.allows(value) {
				v.Add(strictyaml.Index(at, i), "must be one of %s", schema.Constants(k.Enum))
			}
		}
		if len(when[key]) == 0 {
			v.Add(at, "must name a value")
		}
	}
}

// schema compiles a schema; the paths of its problems continue path.
func (v *validation) schema(path string, data json.RawMessage) *lazySchema {
	s, err := schema.Compile(data)
	if err == nil {
		return &lazySchema{compiled: s}
	}
	var problems *Error
	if !errors.As(err, &problems) {
		v.Add(path, "%v", err)
		return nil
	}
	for _, p := range problems.Problems {
		at := path
		if p.Path != "" {
			at += "." + p.Path
		}
		v.Add(strings.ReplaceAll(at, ".[", "["), "%s", p.Message)
	}
	return nil
}

func (v *validation) annotations(path string, a Annotations) {
	if isTrue(a.ReadOnlyHint) && isTrue(a.DestructiveHint) {
		v.Add(path,
			"a tool cannot be both read-only and destructive: set one of readOnlyHint and destructiveHint to false")
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func (v *validation) icons(path string, icons []Icon) {
	if len(icons) > maxItems {
		v.Add(path, "lists %d; at most %d are allowed", len(icons), maxItems)
	}
	for i, icon := range icons {
		at := strictyaml.Index(path, i)
		if !isASCII(icon.Src) || !strings.HasPrefix(icon.Src, "https://") &&
			!strings.HasPrefix(icon.Src, "data:image/") {
			v.Add(at+".src", `must be a URI that starts with "https://" or "data:image/"`)
		}
		v.optional(at+".mimeType", icon.MIMEType, mimeType, `a media type such as "image/png"`)
		for j, size := range icon.Sizes {
			v.match(strictyaml.Index(at+".sizes", j), size, iconSize, `"any" or width x height such as "48x48"`)
		}
	}
}

func (v *validation) prompts(prompts []Prompt) {
	items(v, "prompts", prompts, func(p Prompt) (string, string) { return ".name", p.Name })
	for i, p := range prompts {
		path := strictyaml.Index("prompts", i)
		v.match(path+".name", p.Name, toolName, `1 to 64 of A-Z, a-z, 0-9, "_" and "-"`)
		v.text(path+".title", p.Title, maxTitle)
		v.text(path+".description", p.Description, maxDescription)
		items(v, path+".arguments", p.Arguments, func(a PromptArgument) (string, string) { return ".name", a.Name })
		for j, a := range p.Arguments {
			at := strictyaml.Index(path+".arguments", j)
			v.match(at+".name", a.Name, toolName, `1 to 64 of A-Z, a-z, 0-9, "_" and "-"`)
			v.text(at+".description", a.Description, maxDescription)
		}
	}
}
