package manifest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
)

// MaxBytes is the largest manifest that Parse takes.
const MaxBytes = 1 << 20

// Problem is one thing that is wrong with a manifest, a schema or a value: where, and in which way.
type Problem = strictyaml.Problem

// Error lists what is wrong with a manifest, a schema or a value, at most 20 problems. Its text has one problem per
// line.
type Error = strictyaml.Error

// Parse reads a manifest from YAML and validates it.
//
// It is strict: unknown and repeated keys, values of another type, anchors and aliases, tags, several documents,
// nesting beyond 64 levels, more than MaxBytes and what is not UTF-8 are errors. The error is an *Error, with line and
// column, and holds everything that is wrong both here and under the rules of Validate, so that an author can mend it
// all at once.
func Parse(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := strictyaml.Read(data, MaxBytes, m.read, m.validateModule); err != nil {
		return nil, err
	}
	return m, nil
}

// ParseModule parses the manifest in a module as Parse does. The manifest of an Extism plugin lists no tools, and the
// plugin is asked for them, or it lists tools with the export that each calls. The manifest of a component may list
// tools, without what the component's types say. Package tool completes both. Module.Manifest must not be nil.
func ParseModule(m *wasmfile.Module) (*Manifest, error) {
	switch {
	case m.Component != nil:
		return ParseComponent(m.Manifest)
	case !m.IsExtism():
		return Parse(m.Manifest)
	}
	parsed := &Manifest{}
	if err := strictyaml.Read(m.Manifest, MaxBytes, parsed.read, parsed.validateExtism); err != nil {
		return nil, err
	}
	return parsed, nil
}

// ParseComponent reads the manifest of a component as Parse does. It need not list anything, and its tools need no
// descriptions and schemas: those are made from the component's functions.
func ParseComponent(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := strictyaml.Read(data, MaxBytes, m.read, m.validateComponent); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Manifest) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"$schema":           strictyaml.Ignore,
		"name":              strictyaml.String(&m.Name),
		"version":           strictyaml.String(&m.Version),
		"description":       ReadText(&m.Description),
		"license":           strictyaml.String(&m.License),
		"tools":             strictyaml.List(&m.Tools, readTool),
		"resources":         strictyaml.List(&m.Resources, readResource),
		"resourceTemplates": strictyaml.List(&m.ResourceTemplates, readResourceTemplate),
		"prompts":           strictyaml.List(&m.Prompts, readPrompt),
		"retired":           strictyaml.List(&m.Retired, readRetired),
		"permissions":       m.Permissions.read,
		"state":             ReadState(&m.Permissions.State),
		"config":            readConfig(&m.Config),
		"limits":            m.Limits.Read,
	})
	m.Permissions.Limits, m.Permissions.Claims = m.askedLimits(), m.askedClaims()
}

// ReadText reads a text by language; a plain string is English.
func ReadText(dst *Text) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*dst = Text{}
		if v.IsText() {
			(*dst)["en"], _ = v.Text()
			return
		}
		v.Map(func(language string, v strictyaml.Value) {
			(*dst)[language], _ = v.Text()
		})
		if len(*dst) == 0 {
			v.Problem("must not be empty: write a text, or one by language (en: ..., ja: ...)")
		}
	}
}

func readTool(v strictyaml.Value, t *Tool) {
	v.Object(strictyaml.Fields{
		"name":         strictyaml.String(&t.Name),
		"export":       strictyaml.String(&t.Export),
		"argument":     strictyaml.String(&t.Argument),
		"result":       strictyaml.String(&t.Result),
		"title":        ReadText(&t.Title),
		"description":  ReadText(&t.Description),
		"inputSchema":  readSchema(&t.InputSchema),
		"outputSchema": readSchema(&t.OutputSchema),
		"annotations":  t.Annotations.read,
		"icons":        strictyaml.List(&t.Icons, readIcon),
		"limits":       t.Limits.Read,
		"when": func(v strictyaml.Value) {
			t.When = map[string][]string{}
			v.Map(func(key string, v strictyaml.Value) {
				var values []string
				strictyaml.Strings(&values)(v)
				t.When[key] = values
			})
		},
		"declarations": strictyaml.Bool(&t.Declarations),
		"replaces": func(v strictyaml.Value) {
			t.Replaces = &Replaces{}
			t.Replaces.read(v)
		},
	})
}

// readSchema reads a JSON Schema, written as YAML or as a text that holds JSON.
func readSchema(dst *json.RawMessage) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		if !v.IsText() {
			*dst = v.JSON()
			return
		}
		text, _ := v.Text()
		*dst = bytes.TrimSpace([]byte(text))
	}
}

func (a *Annotations) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"readOnlyHint":    strictyaml.BoolPointer(&a.ReadOnlyHint),
		"destructiveHint": strictyaml.BoolPointer(&a.DestructiveHint),
		"idempotentHint":  strictyaml.BoolPointer(&a.IdempotentHint),
		"openWorldHint":   strictyaml.BoolPointer(&a.OpenWorldHint),
	})
}

func readIcon(v strictyaml.Value, i *Icon) {
	v.Object(strictyaml.Fields{
		"src":      strictyaml.String(&i.Src),
		"mimeType": strictyaml.String(&i.MIMEType),
		"sizes":    strictyaml.Strings(&i.Sizes),
	})
}

func readResource(v strictyaml.Value, r *Resource) {
	v.Object(strictyaml.Fields{
		"uri":         strictyaml.String(&r.URI),
		"name":        strictyaml.String(&r.Name),
		"title":       ReadText(&r.Title),
		"description": ReadText(&r.Description),
		"mimeType":    strictyaml.String(&r.MIMEType),
	})
}

func readResourceTemplate(v strictyaml.Value, r *ResourceTemplate) {
	v.Object(strictyaml.Fields{
		"uriTemplate": strictyaml.String(&r.URITemplate),
		"name":        strictyaml.String(&r.Name),
		"title":       ReadText(&r.Title),
		"description": ReadText(&r.Description),
		"mimeType":    strictyaml.String(&r.MIMEType),
	})
}

func readPrompt(v strictyaml.Value, p *Prompt) {
	v.Object(strictyaml.Fields{
		"name":        strictyaml.String(&p.Name),
		"title":       ReadText(&p.Title),
		"description": ReadText(&p.Description),
		"arguments":   strictyaml.List(&p.Arguments, readPromptArgument),
	})
}

func readPromptArgument(v strictyaml.Value, a *PromptArgument) {
	v.Object(strictyaml.Fields{
		"name":        strictyaml.String(&a.Name),
		"description": ReadText(&a.Description),
		"required":    strictyaml.Bool(&a.Required),
	})
}

func readRetired(v strictyaml.Value, r *Retired) {
	v.Object(strictyaml.Fields{
		"tool":     strictyaml.String(&r.Tool),
		"prompt":   strictyaml.String(&r.Prompt),
		"resource": strictyaml.String(&r.Resource),
		"instead":  ReadText(&r.Instead),
	})
}

func (p *Permissions) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"http":  strictyaml.List(&p.HTTP, readHTTPPermission),
		"files": strictyaml.List(&p.Files, readFilePermission),
		"sql": func(v strictyaml.Value) {
			p.SQL = &SQLPermission{}
			p.SQL.read(v)
		},
		"exec": func(v strictyaml.Value) {
			p.Exec = &ExecPermission{}
			p.Exec.read(v)
		},
		"tools": func(v strictyaml.Value) {
			p.Tools = &ToolsPermission{}
			p.Tools.read(v)
		},
	})
}

func readHTTPPermission(v strictyaml.Value, p *HTTPPermission) {
	v.Object(strictyaml.Fields{
		"name":       strictyaml.String(&p.Name),
		"url":        strictyaml.String(&p.URL),
		"configKey":  strictyaml.String(&p.ConfigKey),
		"methods":    strictyaml.Strings(&p.Methods),
		"paths":      strictyaml.Strings(&p.Paths),
		"credential": strictyaml.String(&p.Credential),
		"reason":     ReadText(&p.Reason),
	})
}

func readFilePermission(v strictyaml.Value, p *FilePermission) {
	stated := false
	v.Object(strictyaml.Fields{
		"mount": strictyaml.String(&p.Mount),
		"access": func(v strictyaml.Value) {
			stated = true
			if access, ok := v.Text(); ok {
				p.readAccess(v, access)
			}
		},
		"roots":  strictyaml.Bool(&p.Roots),
		"reason": ReadText(&p.Reason),
	})
	if !stated {
		v.Problem("access is missing: %q or %q", ReadOnly, ReadWrite)
	}
}

func (p *ExecPermission) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"programs": strictyaml.Strings(&p.Programs),
		"reason":   ReadText(&p.Reason),
	})
}

func (p *ToolsPermission) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"names":  strictyaml.Strings(&p.Names),
		"reason": ReadText(&p.Reason),
	})
}

func (p *SQLPermission) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"migrations": strictyaml.Strings(&p.Migrations),
		"quota":      strictyaml.Size(&p.Quota),
		"reason":     ReadText(&p.Reason),
	})
}

// ReadState reads a State.
func ReadState(dst *State) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		text, ok := v.Text()
		if ok && !slices.Contains(States, State(text)) {
			v.Problem("must be %q, %q or %q", StateCall, StateSession, StateShared)
		}
		*dst = State(text)
	}
}

func (p *FilePermission) readAccess(v strictyaml.Value, access string) {
	switch access {
	case ReadOnly, ReadWrite:
		p.Write = access == ReadWrite
	default:
		v.Problem("must be %q or %q", ReadOnly, ReadWrite)
	}
}

func readConfig(dst *map[string]ConfigKey) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*dst = map[string]ConfigKey{}
		v.Map(func(name string, v strictyaml.Value) {
			var key ConfigKey
			key.read(v)
			(*dst)[name] = key
		})
	}
}

func (k *ConfigKey) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"type":        strictyaml.String(&k.Type),
		"description": ReadText(&k.Description),
		"default":     func(v strictyaml.Value) { k.Default = readAny(v) },
		"required":    strictyaml.Bool(&k.Required),
		"credential":  strictyaml.String(&k.Credential),
		"enum":        strictyaml.List(&k.Enum, func(v strictyaml.Value, a *any) { *a = readAny(v) }),
	})
}

// readAny reads a value as schema.Decode has it.
func readAny(v strictyaml.Value) any {
	data := v.JSON()
	if data == nil {
		return nil // reported
	}
	value, err := schema.Decode(data)
	if err != nil || value == nil {
		v.Problem("must not be empty")
	}
	return value
}
