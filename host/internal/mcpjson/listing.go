// Package mcpjson reads what guests list and answer in the JSON of MCP: guests of the Extism ABI, and components that
// export wasmcp's interfaces.
package mcpjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictjson"
)

// Listing is what a guest offers.
type Listing struct {
	Tools []struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  annotations     `json:"annotations,omitzero"`
	} `json:"tools,omitempty"`
	Prompts []struct {
		Name        string `json:"name"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		Arguments   []struct {
			Name        string `json:"name"`
			Description string `json:"description,omitempty"`
			Required    bool   `json:"required,omitempty"`
		} `json:"arguments,omitempty"`
	} `json:"prompts,omitempty"`
	Resources []struct {
		URI string `json:"uri"`
		resourceInfo
	} `json:"resources,omitempty"`
	ResourceTemplates []struct {
		URITemplate string `json:"uriTemplate"`
		resourceInfo
	} `json:"resourceTemplates,omitempty"`
}

type resourceInfo struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

type annotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool  `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

// Complete adds a Listing as JSON to granting, a manifest without tools. It normalizes what manifests do not accept: a
// schema without type gets "object", the $schema of older drafts is dropped, and a missing description becomes the
// title or name. If the result still breaks a rule of manifests, such as a tool name that clients do not accept, the
// error wraps a *manifest.Error.
func Complete(granting *manifest.Manifest, list []byte) (*manifest.Manifest, error) {
	var l Listing
	if err := strictjson.Unmarshal(list, &l); err != nil {
		return nil, fmt.Errorf("what the plugin lists: %w", err)
	}
	m := *granting
	for _, t := range l.Tools {
		tool := manifest.Tool{
			Name: t.Name, Title: localizedText(oneLine(cmp.Or(t.Title,
				t.Annotations.Title))), Description: localizedText(
				cmp.Or(strings.TrimSpace(t.Description), t.Title, t.Name)),
			InputSchema: normalizeSchema(t.InputSchema), Annotations: t.Annotations.hints(),
		}
		if !isNull(t.OutputSchema) {
			tool.OutputSchema = normalizeSchema(t.OutputSchema)
		}
		m.Tools = append(m.Tools, tool)
	}
	for _, p := range l.Prompts {
		prompt := manifest.Prompt{Name: p.Name, Title: localizedText(oneLine(p.Title)),
			Description: localizedText(p.Description)}
		for _, a := range p.Arguments {
			prompt.Arguments = append(prompt.Arguments,
				manifest.PromptArgument{Name: a.Name, Description: localizedText(a.Description), Required: a.Required})
		}
		m.Prompts = append(m.Prompts, prompt)
	}
	for _, r := range l.Resources {
		m.Resources = append(m.Resources, manifest.Resource{URI: r.URI, Name: oneLine(cmp.Or(r.Name, r.URI)),
			Title: localizedText(oneLine(r.Title)), Description: localizedText(r.Description), MIMEType: r.MIMEType})
	}
	for _, r := range l.ResourceTemplates {
		m.ResourceTemplates = append(m.ResourceTemplates, manifest.ResourceTemplate{URITemplate: r.URITemplate,
			Name: oneLine(cmp.Or(r.Name, r.URITemplate)), Title: localizedText(
				oneLine(r.Title)), Description: localizedText(r.Description), MIMEType: r.MIMEType})
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("what the plugin lists cannot be offered: %w", err)
	}
	return &m, nil
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
