package mcpclient

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/toolschema"
	"github.com/hako-run/hako/internal/visible"
)

// listing has the lists of a server, as received.
type listing struct {
	tools     []*mcp.Tool
	prompts   []*mcp.Prompt
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate
	// cut names the lists that were too long. enough reports whether no more pages should be requested.
	cut    []string
	enough func() bool
	// failed are the lists that could not be requested.
	failed []failedList
}

// failedList is a list that could not be requested, and why.
type failedList struct{ kind, why string }

func (l *listing) empty() bool {
	return len(l.tools)+len(l.prompts)+len(l.resources)+len(l.templates) == 0
}

// digest identifies the contents of the listing.
func (l *listing) digest() (sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, list := range []any{l.tools, l.prompts, l.resources, l.templates} {
		for _, item := range reflect.ValueOf(list).Seq2() { // one at a time, because all together may be large
			if err := encoder.Encode(item.Interface()); err != nil {
				return sum, err
			}
		}
		if err := encoder.Encode(nil); err != nil {
			return sum, err
		}
	}
	for _, list := range l.failed {
		hash.Write([]byte(list.kind))
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// offer is the part of a listing that can be offered.
type offer struct {
	manifest *manifest.Manifest
	// tools and prompts have the server's names for those in manifest.
	tools, prompts map[string]string
	// omitted lists what is omitted, and why.
	omitted []string
	// kept reports whether entries are those of an earlier list, because the list failed.
	kept bool
	// parts counts those of the schemas that were compiled.
	parts int
}

// maxOffered bounds the entries of each kind, as for plugins.
const maxOffered = 256

// maxParts bounds the parts of all schemas of a server: a compiled one keeps about 1 KiB for each.
const maxParts = 20_000

// newOffer converts a listing for the catalog. Each entry that breaks a rule is omitted. In the place of a list that
// failed, the entries of before stay.
func newOffer(spec *Spec, l *listing, before *offer) *offer {
	o := &offer{manifest: new(manifest.Manifest), tools: map[string]string{}, prompts: map[string]string{}}
	for _, kind := range l.cut {
		o.omit("%s: there are more than the limits: %d pages, %d in total, %d MiB or %d values", kind, maxPages,
			maxListed, maxListBytes>>20, maxValues)
	}
	room := maxName - len(spec.prefix())
	o.addTools(spec, l.tools, room)
	o.addPrompts(l.prompts, room)
	for _, r := range l.resources {
		o.addResource(spec, r)
	}
	for _, r := range l.templates {
		o.addTemplate(spec, r)
	}
	for _, list := range l.failed {
		kept := ""
		if o.keep(list.kind, before) {
			o.kept, kept = true, ". The earlier ones stay"
		}
		o.omit("%s: the server announces them, but the list failed: %s%s", list.kind, list.why, kept)
	}
	return o
}

// keep takes over the entries of a list from before, and reports whether there are any.
func (o *offer) keep(kind string, before *offer) bool {
	if before == nil {
		return false
	}
	switch m, from := o.manifest, before.manifest; kind {
	case "tools":
		m.Tools, o.tools, o.parts = from.Tools, before.tools, before.parts
		return len(m.Tools) > 0
	case "prompts":
		m.Prompts, o.prompts = from.Prompts, before.prompts
		return len(m.Prompts) > 0
	case "resources":
		m.Resources = from.Resources
		return len(m.Resources) > 0
	default:
		m.ResourceTemplates = from.ResourceTemplates
		return len(m.ResourceTemplates) > 0
	}
}

func (o *offer) omit(format string, args ...any) {
	o.omitted = append(o.omitted, fmt.Sprintf(format, args...))
}

// full reports whether another entry of kind would exceed maxOffered, and notes that it is omitted.
func (o *offer) full(kind string, have int) bool {
	if have < maxOffered {
		return false
	}
	if have == maxOffered {
		o.omit("%s beyond %d: offer fewer with tools.allow", kind, maxOffered)
	}
	return true
}

func (o *offer) addTools(spec *Spec, tools []*mcp.Tool, room int) {
	var wanted []*mcp.Tool
	var names []string
	for _, t := range tools {
		if spec.Tools.includes(t.Name) {
			wanted, names = append(wanted, t), append(names, t.Name)
		}
	}
	safe, seen := safeNames(names, room), map[string]bool{}
	for _, t := range wanted {
		name, ok := safe[t.Name]
		if !ok || seen[name] {
			o.omit("tool %s: it has no name, or that of another one", quoted(t.Name))
			continue
		}
		seen[name] = true
		if len(o.manifest.Tools) == maxOffered {
			o.omit("tools beyond %d: choose with tools.allow", maxOffered)
			return
		}
		tool, err := o.tool(spec, name, t)
		if err == nil {
			parts := patternParts(tool)
			if err = o.addParts(parts); err != nil {
				o.parts += parts // no more are compiled
			}
		}
		if err != nil {
			o.omit("tool %s: %v", quoted(t.Name), err)
			continue
		}
		o.manifest.Tools = append(o.manifest.Tools, *tool)
		o.tools[name] = t.Name
	}
}

// addParts counts parts of schemas. It returns an error for those that are too many.
func (o *offer) addParts(n int) error {
	if o.parts+n > maxParts {
		return fmt.Errorf("the schemas of the server's tools up to here have more than %d parts: choose tools with "+
			"tools.allow", maxParts)
	}
	o.parts += n
	return nil
}

// patternParts returns as how many parts the compiled patterns of a tool count.
func patternParts(t *manifest.Tool) (n int) {
	const instructions = 20 // take about as much as a part
	for _, compiled := range []*schema.Schema{t.Input(), t.Output()} {
		if compiled != nil {
			n += compiled.PatternSize() / instructions
		}
	}
	return n
}

// tool returns the tool with compiled schemas. An output schema that cannot be used is omitted.
func (o *offer) tool(spec *Spec, name string, t *mcp.Tool) (*manifest.Tool, error) {
	if err := o.addParts(toolschema.Parts(t.InputSchema) + toolschema.Parts(t.OutputSchema)); err != nil {
		return nil, err
	}
	input, dropped, err := schemaJSON(t.InputSchema)
	if err != nil {
		return nil, err
	}
	if len(dropped) > 0 {
		o.omit("a part of the input schema of tool %s, which hako does not know: %s. The tool is offered without it, "+
			"and the server checks the arguments", quoted(t.Name), strings.Join(dropped, ", "))
	}
	tool := manifest.Tool{Name: name, InputSchema: input, Description: text(cmp.Or(t.Description, t.Title, t.Name),
		maxDescription)}
	tool.Meta = o.listedMeta(spec, "tool "+quoted(t.Name), t.Meta)
	if tool.Title = text(oneLine(t.Title), maxTitle); t.Annotations != nil {
		tool.Annotations = hints(t.Annotations)
		tool.Title = text(oneLine(cmp.Or(t.Title, t.Annotations.Title)), maxTitle)
	}
	if t.OutputSchema != nil {
		whole := []manifest.Tool{tool}
		if whole[0].OutputSchema, _, err = schemaJSON(t.OutputSchema); err == nil {
			err = validate(&manifest.Manifest{Tools: whole})
		}
		if err == nil {
			return &whole[0], nil
		}
		if strings.Contains(err.Error(), "outputSchema") {
			o.omit("output schema of tool %s: %v", quoted(t.Name), err)
		}
	}
	bare := []manifest.Tool{tool}
	return &bare[0], validate(&manifest.Manifest{Tools: bare})
}

// validate checks a manifest with one entry, whose schemas it compiles.
func validate(m *manifest.Manifest) error {
	m.Name, m.Version = "upstream", "0.0.0"
	err := m.Validate()
	var problems *manifest.Error
	if errors.As(err, &problems) && len(problems.Problems) > 0 {
		p := problems.Problems[0]
		_, path, _ := strings.Cut(p.Path, "].")
		return fmt.Errorf("%s %s", path, p.Message)
	}
	return err
}

// schemaJSON converts a schema for a manifest. An older draft is read as 2020-12, which differs in little. A missing
// type becomes "object". Hidden characters are removed from all texts. dropped are the keywords of which a part is left
// out, see repaired.
func schemaJSON(value any) (data json.RawMessage, dropped []string, err error) {
	object, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			return nil, nil, errors.New("the schema is not an object")
		}
		object = map[string]any{}
	}
	whole := map[string]any{"type": "object"}
	for key, v := range object {
		if key != "$schema" && !(key == "type" && v == nil) {
			whole[key] = v
		}
	}
	cleaned, err := cleanValue(whole)
	if err != nil {
		return nil, nil, err
	}
	dropped = repaired(cleaned.(map[string]any))
	data, err = json.Marshal(cleaned)
	return data, dropped, err
}

// cleanValue cleans all strings in a JSON value. Keys that become equal are an error.
func cleanValue(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		if number, ok := keptNumber(v); ok {
			return number, nil
		}
		return visible.Clean(v), nil
	case []any:
		for i := range v {
			if v[i], err = cleanValue(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		cleaned := make(map[string]any, len(v))
		for key, item := range v {
			name := oneLine(visible.Clean(key))
			if _, taken := cleaned[name]; taken {
				return nil, fmt.Errorf("two names in the schema look the same: %s", quoted(name))
			}
			if cleaned[name], err = cleanValue(item); err != nil {
				return nil, err
			}
		}
		return cleaned, nil
	}
	return value, nil
}

// hints drops a hint that contradicts another: a read-only tool is not destructive.
func hints(a *mcp.ToolAnnotations) manifest.Annotations {
	h := manifest.Annotations{ReadOnlyHint: &a.ReadOnlyHint, DestructiveHint: a.DestructiveHint,
		IdempotentHint: &a.IdempotentHint, OpenWorldHint: a.OpenWorldHint}
	if a.ReadOnlyHint {
		h.DestructiveHint = nil
	}
	return h
}

func (o *offer) addPrompts(prompts []*mcp.Prompt, room int) {
	var names []string
	for _, p := range prompts {
		names = append(names, p.Name)
	}
	safe, seen := safeNames(names, room), map[string]bool{}
	for _, p := range prompts {
		name, ok := safe[p.Name]
		if !ok || seen[name] {
			o.omit("prompt %s: it has no name, or that of another one", quoted(p.Name))
			continue
		}
		seen[name] = true
		if len(o.manifest.Prompts) == maxOffered {
			o.omit("prompts beyond %d", maxOffered)
			return
		}
		prompt := manifest.Prompt{Name: name, Title: text(oneLine(p.Title), maxTitle),
			Description: text(p.Description, maxDescription)}
		for _, a := range p.Arguments {
			if a == nil {
				continue
			}
			prompt.Arguments = append(prompt.Arguments,
				manifest.PromptArgument{Name: a.Name, Description: text(a.Description, maxDescription),
					Required: a.Required})
		}
		if err := validate(&manifest.Manifest{Prompts: []manifest.Prompt{prompt}}); err != nil {
			o.omit("prompt %s: %v", quoted(p.Name), err)
			continue
		}
		o.manifest.Prompts = append(o.manifest.Prompts, prompt)
		o.prompts[name] = p.Name
	}
}

func (o *offer) addResource(spec *Spec, r *mcp.Resource) {
	if o.full("resources", len(o.manifest.Resources)) {
		return
	}
	resource := manifest.Resource{
		URI: spec.outside(r.URI), Name: clip.Runes(oneLine(visible.Clean(cmp.Or(r.Name, r.URI))), maxTitle),
		Title:       text(oneLine(r.Title), maxTitle),
		Description: text(r.Description, maxDescription), MIMEType: r.MIMEType,
	}
	if err := validate(&manifest.Manifest{Resources: []manifest.Resource{resource}}); err != nil {
		o.omit("resource %s: %v", quoted(r.URI), err)
		return
	}
	resource.Meta = o.listedMeta(spec, "resource "+quoted(r.URI), r.Meta)
	o.manifest.Resources = append(o.manifest.Resources, resource)
}

func (o *offer) addTemplate(spec *Spec, r *mcp.ResourceTemplate) {
	if o.full("resource templates", len(o.manifest.ResourceTemplates)) {
		return
	}
	template := manifest.ResourceTemplate{
		URITemplate: spec.outside(r.URITemplate), Name: clip.Runes(oneLine(visible.Clean(cmp.Or(r.Name,
			r.URITemplate))),
			maxTitle),
		Title: text(oneLine(r.Title), maxTitle), Description: text(r.Description, maxDescription), MIMEType: r.MIMEType,
	}
	err := validate(&manifest.Manifest{ResourceTemplates: []manifest.ResourceTemplate{template}})
	if err != nil {
		o.omit("resource template %s: %v", quoted(r.URITemplate), err)
		return
	}
	template.Meta = o.listedMeta(spec, "resource template "+quoted(r.URITemplate), r.Meta)
	o.manifest.ResourceTemplates = append(o.manifest.ResourceTemplates, template)
}

// Maximum lengths of texts in characters, as in manifests.
const (
	maxTitle       = 200
	maxDescription = 16 << 10
)

// text returns s as a text of unknown language, without hidden characters and at most most characters long, or nil if
// nothing is left.
func text(s string, most int) manifest.Text {
	if s = clip.Runes(strings.TrimSpace(visible.Clean(s)), most); s == "" {
		return nil
	}
	return manifest.Text{"en": s}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// quoted returns an untrusted name for a message.
func quoted(s string) string { return fmt.Sprintf("%q", clip.Runes(s, 80)) }
