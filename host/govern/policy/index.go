package policy

import (
	"slices"

	"github.com/hako-run/hako/host/toolpattern"
)

// matches reports whether the pattern text matches against.
func matches(text, against string) bool {
	p := toolpattern.Compile(text)
	return p.Matches(against)
}

// matchesTool reports whether the pattern text matches a tool.
func matchesTool(text, plugin, tool string) bool {
	p := toolpattern.Compile(text)
	return p.MatchesTool(tool, plugin+"/"+tool)
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
		prefix := r.patterns[i].Prefix()
		if prefix == "" {
			return nil
		}
		list = append(list, prefix)
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
