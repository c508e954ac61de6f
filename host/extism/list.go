package extism

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

// methodList is the request for everything that a guest offers. Only List makes it.
const methodList = "extism/list"

// listing is what a guest offers, in MCP's words.
type listing struct {
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

// List asks a plugin with an Adapter for everything that it offers. The answer is for Complete and may be kept as long as plugin and
// configuration stay the same. The errors are those of sandbox.Plugin.Call, and a *sandbox.GuestError for a plugin that calls listing
// an error itself.
func List(ctx context.Context, plugin *sandbox.Plugin) ([]byte, error) {
	response, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: methodList}})
	if err != nil {
		return nil, fmt.Errorf("ask for its tools: %w", err)
	}
	return response.StructuredContent, nil
}

// list asks the guest, export by export, in one call.
func (s *session) list(ctx context.Context) (*abi.Response, error) {
	exports, input := []string{exportDescribe}, object(nil)
	if !s.adapter.v1() {
		exports = []string{exportListTools, exportListPrompts, exportListResources, exportListTemplates}
		input = object{"context": callContext(s.guest)}
	}
	var all listing
	for _, export := range exports {
		if !s.adapter.exports[export] {
			continue
		}
		output, failed, err := s.invoke(ctx, export, input)
		switch {
		case err != nil:
			return nil, err
		case failed != nil:
			return nil, &sandbox.GuestError{Plugin: s.call.Plugin, Reason: "failed in " + export + ": " + failed.Message, Err: failed}
		}
		if err := strictjson.Unmarshal(output, &all); err != nil {
			return nil, &sandbox.GuestError{Plugin: s.call.Plugin, Reason: "gave for " + export + " what is not the JSON expected: " + err.Error(), Err: err}
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the listing: %w", err)
	}
	return &abi.Response{StructuredContent: data}, nil
}

// Complete returns granting, a manifest without tools, with what List returned, brought into the form that manifests have: a schema
// without type gets "object", one that names an older draft of JSON Schema is read as the one that hako knows, and a missing
// description becomes the title or name. It is an *manifest.Error, under a text that says so, if the result breaks a rule of
// manifests, for example because a tool has a name that clients do not accept.
func Complete(granting *manifest.Manifest, list []byte) (*manifest.Manifest, error) {
	var l listing
	if err := strictjson.Unmarshal(list, &l); err != nil {
		return nil, fmt.Errorf("what the plugin lists: %w", err)
	}
	m := *granting
	for _, t := range l.Tools {
		tool := manifest.Tool{
			Name: t.Name, Title: text(oneLine(cmp.Or(t.Title, t.Annotations.Title))), Description: text(cmp.Or(strings.TrimSpace(t.Description), t.Title, t.Name)),
			InputSchema: schema(t.InputSchema), Annotations: t.Annotations.hints(),
		}
		if !isNull(t.OutputSchema) {
			tool.OutputSchema = schema(t.OutputSchema)
		}
		m.Tools = append(m.Tools, tool)
	}
	for _, p := range l.Prompts {
		prompt := manifest.Prompt{Name: p.Name, Title: text(oneLine(p.Title)), Description: text(p.Description)}
		for _, a := range p.Arguments {
			prompt.Arguments = append(prompt.Arguments, manifest.PromptArgument{Name: a.Name, Description: text(a.Description), Required: a.Required})
		}
		m.Prompts = append(m.Prompts, prompt)
	}
	for _, r := range l.Resources {
		m.Resources = append(m.Resources, manifest.Resource{URI: r.URI, Name: oneLine(cmp.Or(r.Name, r.URI)),
			Title: text(oneLine(r.Title)), Description: text(r.Description), MIMEType: r.MIMEType})
	}
	for _, r := range l.ResourceTemplates {
		m.ResourceTemplates = append(m.ResourceTemplates, manifest.ResourceTemplate{URITemplate: r.URITemplate,
			Name: oneLine(cmp.Or(r.Name, r.URITemplate)), Title: text(oneLine(r.Title)), Description: text(r.Description), MIMEType: r.MIMEType})
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("what the plugin lists cannot be offered: %w", err)
	}
	return &m, nil
}

// hints drops a hint that means nothing beside another: what only reads destroys nothing.
func (a annotations) hints() manifest.Annotations {
	hints := manifest.Annotations{ReadOnlyHint: a.ReadOnlyHint, DestructiveHint: a.DestructiveHint, IdempotentHint: a.IdempotentHint, OpenWorldHint: a.OpenWorldHint}
	if a.ReadOnlyHint != nil && *a.ReadOnlyHint {
		hints.DestructiveHint = nil
	}
	return hints
}

// text is a text of unknown language, or none. Line ends are brought into one form.
func text(s string) manifest.Text {
	if s = strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")); s == "" {
		return nil
	}
	return manifest.Text{"en": s}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// schema brings a schema into the form that manifests have. What is no object stays, for Validate to name.
func schema(raw json.RawMessage) json.RawMessage {
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
