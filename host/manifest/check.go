package manifest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

// Severity is the severity of a Finding.
type Severity string

// Severities. A plugin with an error cannot be loaded or does not do what its manifest says; a warning is for a person
// to weigh.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is something that a careful reviewer of a plugin would point out.
type Finding struct {
	Severity Severity
	// Path is the place in the manifest. Empty means the module or the plugin as a whole.
	Path    string
	Message string
}

// String returns the finding on one line.
func (f Finding) String() string {
	if f.Path == "" {
		return fmt.Sprintf("%s: %s", f.Severity, f.Message)
	}
	return fmt.Sprintf("%s: %s: %s", f.Severity, f.Path, f.Message)
}

// review collects findings.
type review struct {
	module   *wasmfile.Module
	manifest *Manifest
	findings []Finding
	// untranslated are the places of texts that are missing in a language, by language.
	untranslated map[string][]string
	// functions are the exported functions of a component's tools, by the tools' names.
	functions map[string]string
}

// Check reviews a plugin: its module against its valid manifest, and the manifest for what is missing, too broad or
// suspicious. It runs no guest code; handlers, if not nil, is what the guest answered to abi.ListHandlers. Errors come
// first.
func Check(m *wasmfile.Module, manifest *Manifest, handlers *abi.Handlers) []Finding {
	r := review{module: m, manifest: manifest, untranslated: map[string][]string{}, functions: map[string]string{}}
	r.imports()
	if handlers != nil {
		r.handlers(handlers)
	}
	r.httpPermissions()
	r.filePermissions()
	r.descriptions()
	for _, text := range manifest.LeftOut() {
		r.warn("", "%s", leftOutMark+text)
	}
	for i := range manifest.Tools {
		r.tool(strictyaml.Index("tools", i), &manifest.Tools[i])
	}
	slices.SortStableFunc(r.findings,
		func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return r.findings
}

func (r *review) fail(path, format string, args ...any) {
	r.findings = append(r.findings, Finding{SeverityError, path, fmt.Sprintf(format, args...)})
}

func (r *review) warn(path, format string, args ...any) {
	r.findings = append(r.findings, Finding{SeverityWarning, path, fmt.Sprintf(format, args...)})
}

func (r *review) imports() {
	m := r.module
	if err := m.CheckABI(); err != nil {
		r.fail("", "%v", err)
	}
	if err := CheckImports(m, r.manifest.Permissions); err != nil {
		r.fail("", "%v", err)
	}
	for _, l := range permissionImports {
		if l.permission == "http" && m.IsExtism() {
			continue // one function of the Extism ABI sends requests, and all its guests have it
		}
		r.unused(&l)
	}
}

// unused warns of a permission that is asked for if the module imports nothing that it links.
func (r *review) unused(l *linked) {
	links := []string{l.module}
	if r.module.Component != nil {
		links = l.interfaces
	}
	if l.asked(&r.manifest.Permissions) && !slices.ContainsFunc(links, r.module.ImportsFrom) {
		r.warn("permissions."+l.permission, "requested but not used: the module does not import %s; remove it",
			strings.Join(links, " or "))
	}
}

// handlers compares what the guest answers to with what the manifest offers.
func (r *review) handlers(h *abi.Handlers) {
	var tools, resources, templates, prompts []string
	for _, t := range r.manifest.Tools {
		tools = append(tools, t.Name)
		if t.Export != "" { // the author knows the function
			r.functions[t.Name] = t.Export
		}
	}
	for _, x := range r.manifest.Resources {
		resources = append(resources, x.URI)
	}
	for _, x := range r.manifest.ResourceTemplates {
		templates = append(templates, x.URITemplate)
	}
	for _, p := range r.manifest.Prompts {
		prompts = append(prompts, p.Name)
	}
	r.compare("tools", "tool", tools, h.Tools)
	r.compare("resources", "resource", resources, h.Resources)
	r.compare("resourceTemplates", "resource template", templates, h.ResourceTemplates)
	r.compare("prompts", "prompt", prompts, h.Prompts)
}

func (r *review) compare(path, kind string, offered, handled []string) {
	for i, name := range offered {
		if !slices.Contains(handled, name) {
			r.fail(strictyaml.Index(path, i), "the plugin has no handler for the %s %q%s: it has %s; %s, or remove the entry",
				kind, name, r.functionOf(name), r.handlersOf(handled), r.remedyFor(name))
		}
	}
	for _, name := range handled {
		if !slices.Contains(offered, name) {
			r.fail(path, "the plugin has a handler for the %s %s that the manifest does not list: "+
				"add an entry, or remove the handler", kind, clip.Runes(fmt.Sprintf("%q", name), 100))
		}
	}
}

// functionOf names the function of a component that a tool calls.
func (r *review) functionOf(name string) string {
	if export := r.functions[name]; export != "" {
		return ", which calls the function " + export
	}
	return ""
}

// remedyFor says how a handler comes to be.
func (r *review) remedyFor(name string) string {
	if r.functions[name] != "" {
		return "export that function"
	}
	return "register one"
}

// maxHandlers and maxHandlersText bound the list of the handlers that a plugin has.
const (
	maxHandlers     = 20
	maxHandlersText = 600
)

// handlersOf lists the handlers of a kind that a plugin has.
func (r *review) handlersOf(handled []string) string {
	if len(handled) == 0 {
		return "none"
	}
	names := make([]string, min(len(handled), maxHandlers))
	for i := range names {
		names[i] = handled[i]
		if export := r.functions[handled[i]]; export != "" {
			names[i] = export
		}
	}
	if len(handled) > maxHandlers {
		names = append(names, fmt.Sprintf("%d more", len(handled)-maxHandlers))
	}
	return clip.Runes(visible.Line(strings.Join(names, ", ")), maxHandlersText)
}

func (r *review) httpPermissions() {
	for i, p := range r.manifest.Permissions.HTTP {
		path := strictyaml.Index("permissions.http", i)
		u, err := ParseBaseURL(p.URL)
		if err != nil {
			continue // not a valid manifest
		}
		r.host(path+".url", u)
		if p.Credential != "" && strings.HasPrefix(u.Hostname(), "*.") {
			r.warn(path+".url", "sends the operator's credential to any subdomain, whoever runs it: "+
				"name one host, or let the operator name it with configKey")
		}
		writes := slices.ContainsFunc(p.Methods, isWrite)
		if writes && len(p.Paths) == 0 && u.Path == "/" {
			r.warn(path, "asks to change anything on the host: narrow url or paths to what the tools need")
		}
		if writes && r.onlyReads() {
			r.warn(path+".methods", "asks for methods that change things, but all tools have readOnlyHint: "+
				"remove the methods or correct the hint")
		}
	}
}

// host points out addresses that are broad, unprotected or inside the operator's network.
func (r *review) host(path string, u *url.URL) {
	host := u.Hostname()
	domain, wildcard := strings.CutPrefix(host, "*.")
	switch {
	case host == "*":
		r.warn(path, `asks for every host there is: name the hosts, or let the operator name one with configKey`)
	case wildcard && !strings.Contains(domain, "."):
		r.warn(path, "asks for every host under the top-level domain %q: name a domain", domain)
	case address.IsPrivate(host):
		r.warn(path, "%s is an address inside the operator's own network: let the operator name it with configKey",
			host)
	}
	if u.Scheme == "http" && !address.IsPrivate(host) {
		r.warn(path, "is not encrypted: use https")
	}
}

func isWrite(method string) bool {
	return method != "GET" && method != "HEAD" && method != "OPTIONS" && method != "QUERY"
}

// onlyReads reports whether the plugin offers tools and all of them claim to be read-only.
func (r *review) onlyReads() bool {
	for _, t := range r.manifest.Tools {
		if !isTrue(t.Annotations.ReadOnlyHint) {
			return false
		}
	}
	return len(r.manifest.Tools) > 0
}

func (r *review) filePermissions() {
	for i, p := range r.manifest.Permissions.Files {
		if p.Write && r.onlyReads() {
			r.warn(strictyaml.Index("permissions.files", i)+".access",
				"asks to write, but all tools have readOnlyHint: ask for %s or correct the hint", ReadOnly)
		}
	}
}

// wellKnown are tools that clients and models bring along; a plugin's tool of the same name is taken for theirs.
var wellKnown = []string{
	"apply_patch", "bash", "code_execution", "computer", "edit", "fetch", "glob", "grep", "memory", "python", "read",
	"shell", "str_replace_based_edit_tool", "str_replace_editor", "task", "text_editor", "web_fetch", "web_search",
	"webfetch", "websearch", "write",
}

func (r *review) tool(path string, t *Tool) {
	if slices.Contains(wellKnown, strings.ToLower(t.Name)) {
		r.warn(path+".name", "%q is also the name of a tool that clients bring along: choose a more specific one",
			t.Name)
	}
	a := t.Annotations
	switch {
	case a.ReadOnlyHint == nil:
		r.warn(path+".annotations",
			"readOnlyHint is missing: clients then assume that the tool changes things, and ask each time")
	case !*a.ReadOnlyHint && a.DestructiveHint == nil:
		r.warn(path+".annotations", "destructiveHint is missing: clients then assume that the tool destroys things")
	}
	r.schema(path+".inputSchema", t.InputSchema, true)
	if t.OutputSchema == nil && r.module.Component != nil {
		return // the function returns a text, or nothing
	}
	if t.OutputSchema == nil {
		r.warn(path, "outputSchema is missing: with one, programs can use the result and the host checks it")
		return
	}
	r.schema(path+".outputSchema", t.OutputSchema, false)
}
