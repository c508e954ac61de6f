package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictyaml"
)

const (
	// maxToolset bounds a drafted set, in bytes of the request; maxEntries bounds its tools, and maxPattern its names
	// and patterns in bytes. They bound the work of a preview.
	maxToolset = 64 << 10
	maxEntries = 200
	maxPattern = 200
	// maxFixed bounds the shown value of a fixed argument, in bytes.
	maxFixed = 200
)

// toolsetsJSON is a page of the sets, and what there is without them.
type toolsetsJSON struct {
	listJSON[*toolsetJSON]
	// Catalog is the offer to callers without a set.
	Catalog offeredJSON `json:"catalog"`
	// Search has the limits above which tools are searched for. Local is the set at the terminal and over stdio.
	Search toolset.Search `json:"search"`
	Local  string         `json:"local,omitempty"`
	Rules  []toolset.Rule `json:"rules"`
}

// offeredJSON measures an offer to a model. Tokens are the tokens of all offered tools, Listed and ListedTokens what is
// listed if Search replaces the list.
type offeredJSON struct {
	Tools        int  `json:"tools"`
	Tokens       int  `json:"tokens"`
	Search       bool `json:"search"`
	Listed       int  `json:"listed,omitempty"`
	ListedTokens int  `json:"listedTokens,omitempty"`
	Resources    int  `json:"resources"`
	Prompts      int  `json:"prompts"`
}

// toolsetJSON is a set. Problems say what of it is not offered, and why.
type toolsetJSON struct {
	offeredJSON
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	For         *toolset.People `json:"for,omitempty"`
	Problems    []string        `json:"problems"`
}

// offeredTool is a tool of a set. Tool is its name in the catalog.
type offeredTool struct {
	Name   string          `json:"name"`
	Tool   string          `json:"tool"`
	Plugin string          `json:"plugin"`
	Tokens int             `json:"tokens"`
	Fixed  []fixedArgument `json:"fixed,omitempty"`
	Hidden []string        `json:"hidden,omitempty"`
	Pinned bool            `json:"pinned,omitempty"`
}

// fixedArgument has its value as JSON, for admins only.
type fixedArgument struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// toolsetPage is a set with a page of its tools. For admins it has the set itself, to begin a draft with.
type toolsetPage struct {
	listJSON[*offeredTool]
	*toolsetJSON
	Set *toolset.Set `json:"set,omitempty"`
}

// toolsets lists the sets of the configuration.
func (c *Console) toolsets(q *request) (any, error) {
	config := c.toolsetConfig()
	view := c.options.Host.Catalog().View()
	names, err := page(q, config.Names(), func(name string) string { return name })
	if err != nil {
		return nil, err
	}
	offered, _ := newOffered(&toolset.View{View: view}, config.Search)
	answer := &toolsetsJSON{Catalog: offered, Search: config.Search, Local: config.Local,
		Rules: append([]toolset.Rule{}, config.Rules...)}
	answer.Items, answer.Next = []*toolsetJSON{}, names.Next
	for _, name := range names.Items {
		set := config.Set(name)
		item, _ := newToolset(set, set.Apply(view), config.Search)
		answer.Items = append(answer.Items, item)
	}
	return answer, nil
}

// toolsetConfig returns the sets in force. It is never nil.
func (c *Console) toolsetConfig() *toolset.Config {
	if config := c.options.Settings.Toolsets(); config != nil {
		return config
	}
	return new(toolset.Config)
}

// tokens has the estimate of each tool, which takes reading its whole schema.
type tokens map[*catalog.Tool]int

// add returns the sum of the tools, and estimates those that are new.
func (t tokens) add(tools []*catalog.Tool) (sum int) {
	for _, tool := range tools {
		n, known := t[tool]
		if !known {
			n = toolset.Tokens(tool)
			t[tool] = n
		}
		sum += n
	}
	return sum
}

func newOffered(view *toolset.View, search toolset.Search) (offeredJSON, tokens) {
	each := tokens{}
	o := offeredJSON{Tools: len(view.Tools), Tokens: each.add(view.Tools),
		Resources: len(view.Resources) + len(view.Templates), Prompts: len(view.Prompts)}
	if listed := pipeline.Listing(view, search); listed != view.View {
		o.Search, o.Listed, o.ListedTokens = true, len(listed.Tools), each.add(listed.Tools)
	}
	return o, each
}

func newToolset(set *toolset.Set, view *toolset.View, search toolset.Search) (*toolsetJSON, tokens) {
	o, each := newOffered(view, search)
	return &toolsetJSON{o, set.Name, set.Description, set.For, append([]string{}, view.Problems...)}, each
}

// toolset shows one set, or the whole catalog under the name toolset.All.
func (c *Console) toolset(q *request) (any, error) {
	config, name := c.toolsetConfig(), q.PathValue("name")
	whole := c.options.Host.Catalog().View()
	view, set := &toolset.View{View: whole}, config.Set(name)
	switch {
	case set != nil:
		view = set.Apply(whole)
	case name != toolset.All:
		return nil, notFound("toolset", name)
	}
	tools, err := page(q, view.Tools, func(t *catalog.Tool) string { return t.Name })
	if err != nil {
		return nil, err
	}
	answer := new(toolsetPage)
	var each tokens
	answer.toolsetJSON, each = newToolset(cmp.Or(set, &toolset.Set{Name: name}), view, config.Search)
	admin := q.session.Role.includes(Admin)
	if admin {
		answer.Set = set
	}
	answer.Items, answer.Next = offeredTools(tools.Items, view, each, admin), tools.Next
	return answer, nil
}

// offeredTools describes tools of a view. With values, fixed arguments have theirs.
func offeredTools(tools []*catalog.Tool, view *toolset.View, each tokens, values bool) []*offeredTool {
	list := []*offeredTool{}
	for _, tool := range tools {
		item := &offeredTool{Name: tool.Name, Tool: tool.Name, Plugin: tool.Source.Name, Tokens: each[tool],
			Pinned: view.Pinned(tool.Name)}
		if tool.Origin != nil {
			item.Tool = tool.Origin.Name
		}
		if entry := view.Entries[tool.Name]; entry != nil {
			item.Hidden = entry.Hide
			for _, name := range slices.Sorted(maps.Keys(entry.Fix)) {
				argument := fixedArgument{Name: name}
				if values {
					argument.Value = clip.Marked(string(entry.Fix[name]), maxFixed)
				}
				item.Fixed = append(item.Fixed, argument)
			}
		}
		list = append(list, item)
	}
	return list
}

// previewJSON is the offer of a drafted set. YAML is the draft as it would stand in hako.yaml, Current the set of
// this name that is there. More counts the tools beyond maxLimit.
type previewJSON struct {
	*toolsetJSON
	YAML    string         `json:"yaml"`
	Current string         `json:"current,omitempty"`
	Items   []*offeredTool `json:"items"`
	More    int            `json:"more"`
}

// previewToolset checks a drafted set and returns what it would offer and cost. It changes nothing.
func (c *Console) previewToolset(q *request) (any, error) {
	draft := new(toolset.Set)
	if err := q.decode(draft); err != nil {
		return nil, err
	}
	if f := checkDraft(draft); f != nil {
		return nil, f
	}
	config, answer := c.toolsetConfig(), new(previewJSON)
	text, err := draft.YAML()
	if err != nil {
		return nil, invalid("%v", err)
	}
	answer.YAML = string(text)
	if set := config.Set(draft.Name); set != nil {
		if text, err = set.YAML(); err != nil {
			return nil, err
		}
		answer.Current = string(text)
	}
	view := draft.Apply(c.options.Host.Catalog().View())
	var each tokens
	answer.toolsetJSON, each = newToolset(draft, view, config.Search)
	shown := view.Tools[:min(len(view.Tools), maxLimit)]
	answer.Items, answer.More = offeredTools(shown, view, each, true), len(view.Tools)-len(shown)
	return answer, nil
}

// checkDraft checks what hako.yaml would refuse, and the bounds of a draft. The fields of the fault are those of the
// form: "name", "tools" for all of its entries, "tools.0" for the first, or a list.
func checkDraft(draft *toolset.Set) *fault {
	f := &fault{code: codeInvalid, text: said("the toolset is not valid in hako.yaml"),
		fields: map[string]manifest.Text{}}
	if err := toolset.CheckSetName(draft.Name); err != nil {
		f.fields["name"] = said("%v", err)
	}
	switch n := len(draft.Tools); {
	case n == 0:
		f.fields["tools"] = said("name at least one tool; * is all")
	case n > maxEntries:
		f.fields["tools"] = said("a draft has at most %d entries", maxEntries)
		return f
	}
	for i := range draft.Tools {
		entry := &draft.Tools[i]
		names := slices.Concat([]string{entry.Pattern, entry.Rename}, entry.Hide, slices.Collect(maps.Keys(entry.Fix)))
		if err := entry.Check(); err != nil {
			f.fields[fmt.Sprintf("tools.%d", i)] = said("%v", err)
		} else if text := checkNames(names); text != nil {
			f.fields[fmt.Sprintf("tools.%d", i)] = text
		} else if text := checkFixed(entry.Fix); text != nil {
			f.fields[fmt.Sprintf("tools.%d", i)] = text
		}
	}
	people := draft.For
	if people == nil {
		people = new(toolset.People)
	} else if len(people.Users)+len(people.Groups)+len(people.Tenants)+len(people.Tokens) == 0 {
		draft.For = nil // hako.yaml has no empty list of people
	}
	for field, names := range map[string][]string{
		"except": draft.Except, "resources": draft.Resources, "prompts": draft.Prompts,
		"users": people.Users, "groups": people.Groups, "tenants": people.Tenants, "tokens": people.Tokens,
	} {
		if text := checkNames(names); text != nil {
			f.fields[field] = text
		} else if len(names) > maxEntries {
			f.fields[field] = said("a draft has at most %d entries", maxEntries)
		}
	}
	if len(f.fields) == 0 {
		return nil
	}
	return f
}

// rulesJSON are drafted rules.
type rulesJSON struct {
	Rules []toolset.Rule `json:"rules"`
}

// rulesPreviewJSON is drafted rules as they would stand in hako.yaml, Current those that are there. Unreachable are the
// drafted rules that decide about nobody.
type rulesPreviewJSON struct {
	YAML        string            `json:"yaml"`
	Current     string            `json:"current,omitempty"`
	Unreachable []unreachableRule `json:"unreachable"`
}

// unreachableRule names a rule and the earlier one that matches all of its callers. The first rule is 1.
type unreachableRule struct {
	Rule int `json:"rule"`
	By   int `json:"by"`
}

// previewRules checks drafted rules. It puts nothing in force.
func (c *Console) previewRules(q *request) (any, error) {
	draft := new(rulesJSON)
	if err := q.decode(draft); err != nil {
		return nil, err
	}
	config, answer := c.toolsetConfig(), &rulesPreviewJSON{Unreachable: []unreachableRule{}}
	if f := checkRules(draft.Rules, config); f != nil {
		return nil, f
	}
	text, err := toolset.RulesYAML(draft.Rules)
	if err != nil {
		return nil, invalid("%v", err)
	}
	answer.YAML = string(text)
	if len(config.Rules) > 0 {
		if text, err = toolset.RulesYAML(config.Rules); err != nil {
			return nil, err
		}
		answer.Current = string(text)
	}
	for i := range draft.Rules {
		covers := func(earlier toolset.Rule) bool { return earlier.Covers(&draft.Rules[i]) }
		if by := slices.IndexFunc(draft.Rules[:i], covers); by >= 0 {
			answer.Unreachable = append(answer.Unreachable, unreachableRule{i + 1, by + 1})
		}
	}
	return answer, nil
}

// checkRules checks what hako.yaml would refuse, and the bounds of a draft. The fields of the fault are "rules" for all
// of them, and "rules.0" for the first.
func checkRules(rules []toolset.Rule, config *toolset.Config) *fault {
	f := &fault{code: codeInvalid, text: said("the rules are not valid in hako.yaml"),
		fields: map[string]manifest.Text{}}
	switch n := len(rules); {
	case n == 0:
		f.fields["rules"] = said("there is no rule")
	case n > maxEntries:
		f.fields["rules"] = said("a draft has at most %d entries", maxEntries)
		return f
	}
	for i := range rules {
		r, field := &rules[i], fmt.Sprintf("rules.%d", i)
		unknown := func(name string) bool { return !slices.Contains(pipeline.Frontends, name) }
		names := slices.Concat([]string{r.Set}, r.Users, r.Groups, r.Tenants, r.Tokens, r.Frontends, r.Channels)
		if text := checkNames(names); text != nil {
			f.fields[field] = text
		} else if len(names) > maxEntries {
			f.fields[field] = said("a draft has at most %d entries", maxEntries)
		} else if at := slices.IndexFunc(r.Frontends, unknown); at >= 0 {
			f.fields[field] = said("%v", strictyaml.Unknown("frontend", r.Frontends[at], pipeline.Frontends))
		} else if err := config.CheckName(r.Set); err != nil {
			f.fields[field] = said("%v", err)
		}
	}
	if len(f.fields) == 0 {
		return nil
	}
	return f
}

// checkNames returns why one of the names or patterns is not accepted, nil if all are.
func checkNames(names []string) manifest.Text {
	for _, name := range names {
		if len(name) > maxPattern {
			return said("%s is longer than %d bytes", clip.Marked(name, 40), maxPattern)
		}
	}
	return nil
}

// maxFixedDepth bounds the nesting of a fixed value, well below that of hako.yaml.
const maxFixedDepth = 32

func checkFixed(fixed map[string]json.RawMessage) manifest.Text {
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if !utf8.Valid(fixed[name]) || depthOf(fixed[name]) > maxFixedDepth {
			return said("the value of %s nests deeper than %d, or is not valid text", name, maxFixedDepth)
		}
	}
	return nil
}

// depthOf returns how deep the lists and objects of valid JSON nest.
func depthOf(value json.RawMessage) (deepest int) {
	depth, quoted, escaped := 0, false, false
	for _, c := range value {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}
