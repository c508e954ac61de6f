package policy

import (
	"slices"
	"strings"
)

// pattern is a text in which "*" matches any text.
type pattern struct {
	first, last string
	// middle are the parts between the stars. A pattern without a star has its whole text in first.
	middle []string
	star   bool
	slash  bool
}

func compilePattern(text string) pattern {
	parts := strings.Split(text, "*")
	p := pattern{first: parts[0], slash: strings.Contains(text, "/")}
	if len(parts) > 1 {
		p.star, p.middle, p.last = true, parts[1:len(parts)-1], parts[len(parts)-1]
	}
	return p
}

func (p *pattern) matches(text string) bool {
	rest, ok := strings.CutPrefix(text, p.first)
	if !ok || !p.star {
		return ok && rest == ""
	}
	for _, part := range p.middle {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, p.last)
}

// matchesTool reports whether the pattern matches a tool; full is PLUGIN/TOOL. Only a pattern with a slash is compared
// with full.
func (p *pattern) matchesTool(tool, full string) bool {
	return p.matches(tool) || p.slash && p.matches(full)
}

// matches reports whether the pattern text matches against.
func matches(text, against string) bool {
	p := compilePattern(text)
	return p.matches(against)
}

// matchesTool reports whether the pattern text matches a tool.
func matchesTool(text, plugin, tool string) bool {
	p := compilePattern(text)
	return p.matchesTool(tool, plugin+"/"+tool)
}

// index finds the rules that may match a call without evaluating all. A rule is indexed by a name that the call must
// have, or by a prefix of the tool's name. Values are positions of rules.
type index struct {
	users, tools, tenants, tokens, groups map[string][]int
	// rest are rules without such a name.
	rest []int
}

func newIndex(rules []*Rule) *index {
	x := &index{map[string][]int{}, map[string][]int{}, map[string][]int{}, map[string][]int{}, map[string][]int{}, nil}
	for i, rule := range rules {
		x.add(rule, i)
	}
	return x
}

// add indexes a rule by the most selective kind of its names.
func (x *index) add(rule *Rule, i int) {
	for _, by := range []struct {
		names []string
		rules map[string][]int
	}{
		{rule.Users, x.users}, {rule.prefixes(), x.tools}, {rule.Tokens, x.tokens}, {rule.Groups, x.groups},
		{rule.Tenants, x.tenants},
	} {
		for _, name := range by.names {
			by.rules[name] = append(by.rules[name], i)
		}
		if len(by.names) > 0 {
			return
		}
	}
	x.rest = append(x.rest, i)
}

// prefixes returns the prefixes of TOOL or PLUGIN/TOOL for the patterns of the rule; none if one pattern begins with a
// star.
func (r *Rule) prefixes() (list []string) {
	for i := range r.patterns {
		if r.patterns[i].first == "" {
			return nil
		}
		list = append(list, r.patterns[i].first)
	}
	return list
}

// find returns the rules that may match the call, in their order. A nil index has none.
func (x *index) find(c *Call, full string, groups []string) []int {
	if x == nil {
		return nil
	}
	list := slices.Concat(x.rest, x.users[c.User], x.tenants[c.Tenant], x.tokens[c.Token])
	for _, group := range groups {
		list = append(list, x.groups[group]...)
	}
	for _, name := range []string{c.Tool, full} {
		for end := range len(name) {
			list = append(list, x.tools[name[:end+1]]...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
