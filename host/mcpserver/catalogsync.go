package mcpserver

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/mcpserver/transport"
	"github.com/hako-run/hako/internal/toolschema"
)

// catalogSync keeps the lists of the SDK's server equal to the catalog. The SDK notifies the clients of changes.
type catalogSync struct {
	server *Server

	// mu guards what follows and serialises sync.
	mu        sync.Mutex
	tools     map[string]*catalog.Tool
	resources map[string]*catalog.Resource
	templates map[string]*catalog.Template
	prompts   map[string]*catalog.Prompt

	// headers are the arguments that clients repeat in headers, by tool. Every tool that is listed is in it. The map in
	// it does not change.
	headers atomic.Pointer[map[string][]transport.ParamHeader]
}

func newCatalogSync(s *Server) *catalogSync {
	m := &catalogSync{server: s}
	m.headers.Store(&map[string][]transport.ParamHeader{})
	return m
}

// sync updates the SDK's server to the current catalog.
func (m *catalogSync) sync() {
	m.mu.Lock()
	defer m.mu.Unlock()
	view, sdk := m.server.catalog.View(), m.server.sdk

	headers := maps.Clone(*m.headers.Load())
	update(m, &m.tools, index(view.Tools, toolName),
		func(t *catalog.Tool) { m.addTool(headers, t) }, sdk.RemoveTools)
	maps.DeleteFunc(headers, func(name string, _ []transport.ParamHeader) bool { return m.tools[name] == nil })
	m.headers.Store(&headers)

	update(m, &m.resources, index(view.Resources, resourceURI), m.addResource, sdk.RemoveResources)
	update(m, &m.templates, index(view.Templates, templateURI), m.addTemplate, sdk.RemoveResourceTemplates)
	update(m, &m.prompts, index(view.Prompts, promptName), m.addPrompt, sdk.RemovePrompts)
}

func toolName(t *catalog.Tool) string        { return t.Name }
func resourceURI(r *catalog.Resource) string { return r.Spec.URI }
func templateURI(t *catalog.Template) string { return t.Spec.URITemplate }
func promptName(p *catalog.Prompt) string    { return p.Name }

func index[T any](list []T, name func(T) string) map[string]T {
	table := make(map[string]T, len(list))
	for _, entry := range list {
		table[name(entry)] = entry
	}
	return table
}

// update adds entries that are new or differ from *have, and removes the others. An entry that cannot be added is left
// out and logged.
func update[T comparable](m *catalogSync, have *map[string]T, want map[string]T, add func(T), remove func(...string)) {
	var gone []string
	for name := range *have {
		if _, ok := want[name]; !ok {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		remove(gone...)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if (*have)[name] == want[name] {
			continue
		}
		if err := try(func() { add(want[name]) }); err != nil {
			remove(name)
			m.server.options.Logger.Warn("not offered over MCP", "name", name, "err", err)
		}
	}
	*have = want
}

// try turns the panics with which the SDK refuses an entry into errors.
func try(f func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
	}()
	f()
	return nil
}

func (m *catalogSync) addTool(headers map[string][]transport.ParamHeader, t *catalog.Tool) {
	delete(headers, t.Name)
	m.server.sdk.AddTool(m.tool(t), m.server.callListedTool)
	headers[t.Name] = transport.ParamHeaders(t.Spec.InputSchema)
}

// again adds all entries again.
func (m *catalogSync) again() {
	m.mu.Lock()
	m.tools, m.resources, m.templates, m.prompts = nil, nil, nil, nil
	m.mu.Unlock()
	m.sync()
}

// touch has the SDK notify clients that the list of tools has changed, which it does when a tool is added again.
func (m *catalogSync) touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	headers := maps.Clone(*m.headers.Load())
	for _, tool := range m.tools {
		if _, listed := headers[tool.Name]; listed {
			m.addTool(headers, tool)
			break
		}
	}
	m.headers.Store(&headers)
}

// touchAll has the SDK notify clients that every list has changed.
func (m *catalogSync) touchAll() {
	m.touch()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, add := range []func() error{
		touchOne(m.resources, m.addResource), touchOne(m.templates, m.addTemplate), touchOne(m.prompts, m.addPrompt),
	} {
		_ = add() // it is not listed
	}
}

// touchOne returns a function that adds one of the entries again.
func touchOne[T any](entries map[string]T, add func(T)) func() error {
	return func() error {
		for _, entry := range entries {
			return try(func() { add(entry) })
		}
		return nil
	}
}

// listed returns the arguments of a tool that are repeated in headers. It reports false if there is no such tool.
func (m *catalogSync) listed(tool string) (headers []transport.ParamHeader, ok bool) {
	headers, ok = (*m.headers.Load())[tool]
	return headers, ok
}

func (m *catalogSync) text(t manifest.Text) string { return t.In(m.server.now().Language) }

func (m *catalogSync) tool(t *catalog.Tool) *mcp.Tool {
	tool := &mcp.Tool{
		Name:        t.Name,
		Title:       m.text(t.Spec.Title),
		Description: m.text(t.Spec.Description),
		InputSchema: toolschema.Listed(t.Spec.InputSchema),
		Annotations: annotations(t.Spec.Annotations),
		Icons:       icons(t.Spec.Icons),
	}
	tool.Annotations.Title = tool.Title // for clients of before 2025-06-18, which know no other
	if t.Spec.OutputSchema != nil {
		tool.OutputSchema = t.Spec.OutputSchema
	}
	return tool
}

func annotations(a manifest.Annotations) *mcp.ToolAnnotations {
	isSet := func(hint *bool) bool { return hint != nil && *hint }
	return &mcp.ToolAnnotations{
		ReadOnlyHint:    isSet(a.ReadOnlyHint),
		DestructiveHint: a.DestructiveHint,
		IdempotentHint:  isSet(a.IdempotentHint),
		OpenWorldHint:   a.OpenWorldHint,
	}
}

func icons(list []manifest.Icon) []mcp.Icon {
	var converted []mcp.Icon
	for _, icon := range list {
		converted = append(converted, mcp.Icon{Source: icon.Src, MIMEType: icon.MIMEType, Sizes: icon.Sizes})
	}
	return converted
}

func (m *catalogSync) addResource(r *catalog.Resource) {
	m.server.sdk.AddResource(m.resource(r), m.server.readResource)
}

func (m *catalogSync) resource(r *catalog.Resource) *mcp.Resource {
	return &mcp.Resource{
		URI:         r.Spec.URI,
		Name:        r.Spec.Name,
		Title:       m.text(r.Spec.Title),
		Description: m.text(r.Spec.Description),
		MIMEType:    r.Spec.MIMEType,
	}
}

func (m *catalogSync) addTemplate(t *catalog.Template) {
	m.server.sdk.AddResourceTemplate(m.template(t), m.server.readResource)
}

func (m *catalogSync) template(t *catalog.Template) *mcp.ResourceTemplate {
	return &mcp.ResourceTemplate{
		URITemplate: t.Spec.URITemplate,
		Name:        t.Spec.Name,
		Title:       m.text(t.Spec.Title),
		Description: m.text(t.Spec.Description),
		MIMEType:    t.Spec.MIMEType,
	}
}

func (m *catalogSync) addPrompt(p *catalog.Prompt) {
	m.server.sdk.AddPrompt(m.prompt(p), m.server.getPrompt)
}

func (m *catalogSync) prompt(p *catalog.Prompt) *mcp.Prompt {
	prompt := &mcp.Prompt{Name: p.Name, Title: m.text(p.Spec.Title), Description: m.text(p.Spec.Description)}
	for _, argument := range p.Spec.Arguments {
		prompt.Arguments = append(prompt.Arguments, &mcp.PromptArgument{
			Name: argument.Name, Description: m.text(argument.Description), Required: argument.Required,
		})
	}
	return prompt
}
