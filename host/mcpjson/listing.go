// Package mcpjson reads MCP's JSON from guests: those with the Extism ABI, and components that export wasmcp's
// interfaces. Complete adds a guest's Listing to its manifest, and DecodeResponse reads an answer.
package mcpjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Listing holds the entries of MCP's lists that a guest offers, not decoded yet, so that a broken one spoils no others.
type Listing struct {
	Tools             []json.RawMessage `json:"tools,omitempty"`
	Prompts           []json.RawMessage `json:"prompts,omitempty"`
	Resources         []json.RawMessage `json:"resources,omitempty"`
	ResourceTemplates []json.RawMessage `json:"resourceTemplates,omitempty"`
}

type toolEntry struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  annotations     `json:"annotations"`
}

type promptEntry struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Arguments   []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Required    bool   `json:"required"`
	} `json:"arguments"`
}

type resourceEntry struct {
	URI string `json:"uri"`
	resourceInfo
}

type templateEntry struct {
	URITemplate string `json:"uriTemplate"`
	resourceInfo
}

type resourceInfo struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`
}

type annotations struct {
	Title           string `json:"title"`
	ReadOnlyHint    *bool  `json:"readOnlyHint"`
	DestructiveHint *bool  `json:"destructiveHint"`
	IdempotentHint  *bool  `json:"idempotentHint"`
	OpenWorldHint   *bool  `json:"openWorldHint"`
}

// Complete adds a Listing as JSON to granting, a manifest without tools. It normalizes what manifests do not accept: a
// schema without type gets "object", the $schema of older drafts is dropped, and a missing description becomes the
// title or name.
//
// An entry that still breaks a rule of manifests, such as a tool with a name that clients do not accept, is left out;
// omitted names each with the reason. It is an error if nothing remains.
func Complete(granting *manifest.Manifest, list []byte) (m *manifest.Manifest, omitted []string, err error) {
	var l Listing
	if err := strictjson.Unmarshal(list, &l); err != nil {
		return nil, nil, fmt.Errorf("what the plugin lists: %w", err)
	}
	c := completion{Manifest: *granting}
	c.Tools = decodeEntries(&c, "tools", l.Tools, toolEntry.tool)
	c.Prompts = decodeEntries(&c, "prompts", l.Prompts, promptEntry.prompt)
	c.Resources = decodeEntries(&c, "resources", l.Resources, resourceEntry.resource)
	c.ResourceTemplates = decodeEntries(&c, "resourceTemplates", l.ResourceTemplates, templateEntry.template)
	for {
		err := c.Validate()
		if err == nil {
			return &c.Manifest, c.omitted, nil
		}
		if !c.omitBroken(err) {
			c.omitted = append(c.omitted, err.Error())
			return nil, nil, fmt.Errorf("what the plugin lists cannot be offered: %s", strings.Join(c.omitted, "; "))
		}
	}
}

// completion is a manifest that is being completed.
type completion struct {
	manifest.Manifest
	omitted []string
}

// decodeEntries decodes the entries of one list and leaves out those that are not of MCP's form.
func decodeEntries[E, T any](c *completion, list string, entries []json.RawMessage, convert func(E) T) []T {
	var items []T
	for i, raw := range entries {
		var entry E
		if err := strictjson.Unmarshal(raw, &entry); err != nil {
			c.omit(strictyaml.Index(list, i), "", err.Error())
			continue
		}
		items = append(items, convert(entry))
	}
	return items
}

// omitBroken removes the entries that err, of Validate, is about. It returns false if err is about something else.
func (c *completion) omitBroken(err error) bool {
	var broken *manifest.Error
	if !errors.As(err, &broken) {
		return false
	}
	before := len(c.omitted)
	c.Tools = omitProblems(c, "tools", c.Tools, broken, func(t manifest.Tool) string { return t.Name })
	c.Prompts = omitProblems(c, "prompts", c.Prompts, broken, func(p manifest.Prompt) string { return p.Name })
	c.Resources = omitProblems(c, "resources", c.Resources, broken, func(r manifest.Resource) string { return r.URI })
	c.ResourceTemplates = omitProblems(c, "resourceTemplates", c.ResourceTemplates, broken,
		func(t manifest.ResourceTemplate) string { return t.URITemplate })
	return len(c.omitted) > before
}

// omitProblems returns the items of one list without those that have problems.
func omitProblems[T any](c *completion, list string, items []T, broken *manifest.Error, name func(T) string) []T {
	var rest []T
	for i, item := range items {
		path := strictyaml.Index(list, i)
		at := slices.IndexFunc(broken.Problems, func(p manifest.Problem) bool {
			return p.Path == path || strings.HasPrefix(p.Path, path+".")
		})
		if at < 0 {
			rest = append(rest, item)
			continue
		}
		c.omit(path, name(item), strings.TrimPrefix(broken.Problems[at].String(), path+"."))
	}
	return rest
}

func (c *completion) omit(path, name, reason string) {
	if name != "" {
		list, _, _ := strings.Cut(path, "[")
		path = fmt.Sprintf("%s %q", strings.TrimSuffix(list, "s"), clip.Runes(name, 100))
	}
	c.omitted = append(c.omitted, path+": "+reason)
}

func (t toolEntry) tool() manifest.Tool {
	tool := manifest.Tool{
		Name: t.Name, Title: localizedText(oneLine(cmp.Or(t.Title, t.Annotations.Title))),
		Description: localizedText(cmp.Or(strings.TrimSpace(t.Description), t.Title, t.Name)),
		InputSchema: normalizeSchema(t.InputSchema), Annotations: t.Annotations.hints(),
	}
	if !isNull(t.OutputSchema) {
		tool.OutputSchema = normalizeSchema(t.OutputSchema)
	}
	return tool
}

func (p promptEntry) prompt() manifest.Prompt {
	prompt := manifest.Prompt{Name: p.Name, Title: localizedText(oneLine(p.Title)),
		Description: localizedText(p.Description)}
	for _, a := range p.Arguments {
		prompt.Arguments = append(prompt.Arguments,
			manifest.PromptArgument{Name: a.Name, Description: localizedText(a.Description), Required: a.Required})
	}
	return prompt
}

func (r resourceEntry) resource() manifest.Resource {
	return manifest.Resource{URI: r.URI, Name: oneLine(cmp.Or(r.Name, r.URI)), Title: localizedText(oneLine(r.Title)),
		Description: localizedText(r.Description), MIMEType: r.MIMEType}
}

func (r templateEntry) template() manifest.ResourceTemplate {
	return manifest.ResourceTemplate{URITemplate: r.URITemplate, Name: oneLine(cmp.Or(r.Name, r.URITemplate)),
		Title: localizedText(oneLine(r.Title)), Description: localizedText(r.Description), MIMEType: r.MIMEType}
}

// hints converts the annotations and drops destructiveHint where readOnlyHint makes it meaningless.
func (a annotations) hints() manifest.Annotations {
	hints := manifest.Annotations{ReadOnlyHint: a.ReadOnlyHint, DestructiveHint: a.DestructiveHint,
		IdempotentHint: a.IdempotentHint, OpenWorldHint: a.OpenWorldHint}
	if a.ReadOnlyHint != nil && *a.ReadOnlyHint {
		hints.DestructiveHint = nil
	}
	return hints
}

// localizedText returns a text of unknown language, or nil. It normalizes line ends.
func localizedText(s string) manifest.Text {
	if s = strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")); s == "" {
		return nil
	}
	return manifest.Text{"en": s}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// normalizeSchema converts a schema to the form of manifests. Validate rejects what is no object.
func normalizeSchema(raw json.RawMessage) json.RawMessage {
	keys := map[string]json.RawMessage{}
	if !isNull(raw) && json.Unmarshal(raw, &keys) != nil {
		return raw
	}
	delete(keys, "$schema")
	if isNull(keys["type"]) {
		keys["type"] = json.RawMessage(`"object"`)
	}
	data, err := json.Marshal(keys)
	if err != nil {
		return raw
	}
	return data
}
