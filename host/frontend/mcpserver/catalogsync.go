package mcpserver

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/manifest"
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
	c := &catalogSync{server: s}
	c.headers.Store(&map[string][]transport.ParamHeader{})
	return c
}

// sync updates the SDK's server to the current catalog.
func (c *catalogSync) sync() {
	c.mu.Lock()
	defer c.mu.Unlock()
	view, sdk := c.server.catalog.View(), c.server.sdk

	headers := maps.Clone(*c.headers.Load())
	update(c, &c.tools, index(view.Tools, toolName),
		func(t *catalog.Tool) { c.addTool(headers, t) }, sdk.RemoveTools)
	maps.DeleteFunc(headers, func(name string, _ []transport.ParamHeader) bool { return c.tools[name] == nil })
	c.headers.Store(&headers)

	update(c, &c.resources, index(view.Resources, resourceURI), c.addResource, sdk.RemoveResources)
	update(c, &c.templates, index(view.Templates, templateURI), c.addTemplate, sdk.RemoveResourceTemplates)
	update(c, &c.prompts, index(view.Prompts, promptName), c.addPrompt, sdk.RemovePrompts)
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
func update[T comparable](c *catalogSync, have *map[string]T, want map[string]T, add func(T), remove func(...string)) {
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
			c.server.options.Logger.Warn("not offered over MCP", "name", name, "err", err)
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

func (c *catalogSync) addTool(headers map[string][]transport.ParamHeader, t *catalog.Tool) {
	delete(headers, t.Name)
	c.server.sdk.AddTool(c.tool(t), c.server.callListedTool)
	headers[t.Name] = transport.ParamHeaders(toolschema.Listed(t.Spec.InputSchema))
}

// again adds all entries again.
func (c *catalogSync) again() {
	c.mu.Lock()
	c.tools, c.resources, c.templates, c.prompts = nil, nil, nil, nil
	c.mu.Unlock()
	c.sync()
}

// touch has the SDK notify clients that the list of tools has changed, which it does when a tool is added again.
func (c *catalogSync) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	headers := maps.Clone(*c.headers.Load())
	for _, tool := range c.tools {
		if _, listed := headers[tool.Name]; listed {
			c.addTool(headers, tool)
			break
		}
	}
	c.headers.Store(&headers)
}

// touchAll has the SDK notify clients that every list has changed.
func (c *catalogSync) touchAll() {
	c.touch()
	c.mu.Lock()
	defer c.mu.Unlock()
	addOne(c.resources, c.addResource)
	addOne(c.templates, c.addTemplate)
	addOne(c.prompts, c.addPrompt)
}

// addOne adds one of the entries again.
func addOne[T any](entries map[string]T, add func(T)) {
	for _, entry := range entries {
		_ = try(func() { add(entry) }) // the SDK has refused this entry before, so it is not listed
		return
	}
}

// listed returns the arguments of a tool that are repeated in headers. It reports false if there is no such tool.
func (c *catalogSync) listed(tool string) (headers []transport.ParamHeader, ok bool) {
	headers, ok = (*c.headers.Load())[tool]
	return headers, ok
}

func (c *catalogSync) text(t manifest.Text) string { return t.In(c.server.now().Language) }

func (c *catalogSync) tool(t *catalog.Tool) *mcp.Tool {
	tool := &mcp.Tool{
		Name:        t.Name,
		Title:       c.text(t.Spec.Title),
		Description: c.text(t.Spec.Description),
		InputSchema: toolschema.Listed(t.Spec.InputSchema),
		Annotations: annotations(t.Spec.Annotations),
		Icons:       icons(t.Spec.Icons),
		Meta:        metadata(t.Spec.Meta),
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

func (c *catalogSync) addResource(r *catalog.Resource) {
	c.server.sdk.AddResource(c.resource(r), c.server.readResource)
}

func (c *catalogSync) resource(r *catalog.Resource) *mcp.Resource {
	return &mcp.Resource{
		URI:         r.Spec.URI,
		Name:        r.Spec.Name,
		Title:       c.text(r.Spec.Title),
		Description: c.text(r.Spec.Description),
		MIMEType:    r.Spec.MIMEType,
		Meta:        metadata(r.Spec.Meta),
	}
}

func (c *catalogSync) addTemplate(t *catalog.Template) {
	c.server.sdk.AddResourceTemplate(c.template(t), c.server.readResource)
}

func (c *catalogSync) template(t *catalog.Template) *mcp.ResourceTemplate {
	return &mcp.ResourceTemplate{
		URITemplate: t.Spec.URITemplate,
		Name:        t.Spec.Name,
		Title:       c.text(t.Spec.Title),
		Description: c.text(t.Spec.Description),
		MIMEType:    t.Spec.MIMEType,
		Meta:        metadata(t.Spec.Meta),
	}
}

func (c *catalogSync) addPrompt(p *catalog.Prompt) {
	c.server.sdk.AddPrompt(c.prompt(p), c.server.getPrompt)
}

func (c *catalogSync) prompt(p *catalog.Prompt) *mcp.Prompt {
	prompt := &mcp.Prompt{Name: p.Name, Title: c.text(p.Spec.Title), Description: c.text(p.Spec.Description)}
	for _, argument := range p.Spec.Arguments {
		prompt.Arguments = append(prompt.Arguments, &mcp.PromptArgument{
			Name: argument.Name, Description: c.text(argument.Description), Required: argument.Required,
		})
	}
	return prompt
}
