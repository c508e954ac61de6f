package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/abi"
)

// resolvers resolve the names of a call, by method: each sets what resolve says of served.
var resolvers = map[string]func(*Pipeline, *served) error{
	abi.CallTool:     (*Pipeline).resolveTool,
	abi.ReadResource: (*Pipeline).resolveResource,
	abi.GetPrompt:    (*Pipeline).resolvePrompt,
	abi.Complete:     (*Pipeline).resolveCompletion,
}

// resolve finds what is called in what the caller is offered.
func (p *Pipeline) resolve(_ context.Context, c *served) error {
	resolver := resolvers[c.Request.Method]
	if resolver == nil {
		return &InvalidError{fmt.Sprintf("unknown pipeline method %q", c.Request.Method)}
	}
	c.request = c.Request
	return resolver(p, c)
}

// found sets what is called: a tool, or else a method of the source.
func (c *served) found(source *catalog.Source, name string) {
	c.record.Name, c.record.Source = name, source.Name
	if c.subject == nil {
		c.subject = methodSubject(source, c.record.Method)
	}
}

func (p *Pipeline) resolveTool(c *served) error {
	offered := p.offerFor(c.Call)
	shown, ok := offered.Tool(c.Request.Name)
	if !ok {
		if shown = p.finderTool(c.Call); shown == nil {
			return p.notFound(c.Call, "tool", c.Request.Name)
		}
	}
	tool := shown.Real()
	c.shown, c.subject = shown, toolSubject(shown)
	c.found(tool.Source, tool.Name)
	if err := c.checkGranted(shown); err != nil {
		return err
	}
	c.request.Name = tool.Spec.Name
	if len(c.request.Arguments) == 0 || isNull(c.request.Arguments) {
		c.request.Arguments = json.RawMessage("{}")
	}
	c.arguments = func() (err error) {
		input, given := tool.Spec.Input(), c.request.Arguments
		declared, err := offered.arguments(shown.Name, input.Declared(given))
		if err != nil {
			return &argumentsError{shown.Name, err}
		}
		if c.request.Arguments, err = input.Arguments(declared); err != nil {
			return &argumentsError{shown.Name, input.Explain(err, given, declared)}
		}
		return nil
	}
	return nil
}

// isNull reports whether arguments are null, which stands for none.
func isNull(arguments json.RawMessage) bool { return string(bytes.TrimSpace(arguments)) == "null" }

func (p *Pipeline) resolveResource(c *served) error {
	view := p.offer(&c.Caller)
	c.request.Arguments = nil // it has none
	if resource, ok := view.Resource(c.request.URI); ok {
		c.found(resource.Source, resource.Spec.URI)
		return nil
	}
	template, variables, ok := view.Template(c.request.URI)
	if !ok {
		return p.notFound(c.Call, "resource", c.request.URI)
	}
	c.request.Template, c.request.Variables = template.Spec.URITemplate, variables
	c.found(template.Source, template.Spec.URITemplate)
	return nil
}

func (p *Pipeline) resolvePrompt(c *served) error {
	prompt, ok := p.offer(&c.Caller).Prompt(c.Request.Name)
	if !ok {
		return p.notFound(c.Call, "prompt", c.Request.Name)
	}
	c.found(prompt.Source, prompt.Name)
	c.request.Name = prompt.Spec.Name
	c.arguments = func() (err error) {
		c.request.Arguments, err = promptArguments(prompt.Spec, c.request.Arguments)
		return err
	}
	return nil
}

// promptArguments checks the arguments of a prompt, and returns them without those that are null.
func promptArguments(spec *manifest.Prompt, raw json.RawMessage) (json.RawMessage, error) {
	if isNull(raw) {
		raw = nil
	}
	var given map[string]*string
	if len(raw) > 0 {
		if err := strictjson.Unmarshal(raw, &given); err != nil {
			return nil, &InvalidError{"the arguments of a prompt are an object of strings"}
		}
	}
	known := map[string]bool{}
	for _, argument := range spec.Arguments {
		known[argument.Name] = true
		if argument.Required && given[argument.Name] == nil {
			return nil, &InvalidError{fmt.Sprintf("prompt %s needs the argument %s", spec.Name, argument.Name)}
		}
	}
	texts := make(map[string]string, len(given))
	for name, text := range given {
		if !known[name] {
			return nil, &InvalidError{fmt.Sprintf("prompt %s has no argument %s", spec.Name, name)}
		}
		if text != nil {
			texts[name] = *text
		}
	}
	if len(texts) == len(given) {
		return raw, nil
	}
	return json.Marshal(texts)
}

// resolveCompletion resolves the reference of a completion.
func (p *Pipeline) resolveCompletion(c *served) error {
	c.request.Arguments = nil // it has none
	if c.request.Ref == nil || c.request.Argument == nil {
		return &InvalidError{"a completion needs a ref and an argument"}
	}
	view, ref := p.offer(&c.Caller), *c.request.Ref
	switch ref.Type {
	case "ref/prompt":
		prompt, ok := view.Prompt(ref.Name)
		if !ok {
			return p.notFound(c.Call, "prompt", ref.Name)
		}
		c.found(prompt.Source, prompt.Name)
		c.request.Ref = &abi.Ref{Type: ref.Type, Name: prompt.Spec.Name}
		return nil
	case "ref/resource":
		for _, template := range view.Templates {
			if template.Spec.URITemplate == ref.URI {
				c.found(template.Source, ref.URI)
				c.request.Ref = &abi.Ref{Type: ref.Type, URI: ref.URI}
				return nil
			}
		}
		return p.notFound(c.Call, "resource", ref.URI)
	}
	return &InvalidError{fmt.Sprintf("a completion is for ref/prompt or ref/resource, not %q", ref.Type)}
}

// notFound returns the error for a name that is not offered.
func (p *Pipeline) notFound(call *Call, kind, name string) error {
	if p.offer(&call.Caller).set != nil { // do not reveal the offers to others
		return &NotFoundError{Kind: kind, Name: name, Near: p.near(call, kind, name)}
	}
	if p.options.Missing != nil {
		if err := p.options.Missing(kind, name); err != nil {
			return err
		}
	}
	if instead, ok := p.catalog.View().Instead(kind, name); ok {
		return &NotFoundError{Kind: kind, Name: name, Hint: instead.In(p.locale(call))}
	}
	return &NotFoundError{Kind: kind, Name: name, Near: p.near(call, kind, name)}
}

// near returns names that are similar to an unknown one and that the call could have.
func (p *Pipeline) near(call *Call, kind, name string) []string {
	var known []string
	view := p.offer(&call.Caller)
	switch kind {
	case "tool":
		for _, tool := range view.Tools {
			if p.mayList(call.Caller, call.via(), tool) && call.checkGranted(tool) == nil {
				known = append(known, tool.Name)
			}
		}
	case "prompt":
		for _, prompt := range view.Prompts {
			known = append(known, prompt.Name)
		}
	}
	near := strictyaml.Suggest(name, known)
	if len(near) == 0 && kind == "tool" && !strings.ContainsFunc(name, isLatin) { // words of a title, in Japanese
		for _, tool := range p.search.find(view.View, name) {
			if slices.Contains(known, tool.Name) && len(near) < maxFound {
				near = append(near, tool.Name)
			}
		}
	}
	return near
}

// maxFound bounds the tools that are suggested for words in place of a name.
const maxFound = 3

func isLatin(r rune) bool { return unicode.Is(unicode.Latin, r) }
