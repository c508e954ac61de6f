package policy

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/pdk/locale"
)

// Site has the names to which a policy can refer.
type Site struct {
	// Tools are the tools on offer.
	Tools []ToolName
	// Frontends, Tenants and Tokens are the names that callers can have. Nil means any.
	Frontends, Tenants, Tokens []string
}

// ToolName is the name of a tool in the catalog and its plugin.
type ToolName struct{ Name, Plugin string }

// Lint reports probable mistakes in a valid policy: rules that can never decide, because an earlier one decides about
// all of their calls, and names that the site does not have. The error lists them with their places. It is nil if there
// are none or if the policy is not valid, which Parse reports.
func Lint(data []byte, site *Site) error {
	if _, err := Parse(data); err != nil {
		return nil
	}
	var f file
	return strictyaml.Read(data, maxFile, f.read, func() error {
		l := linter{file: &f, site: site}
		l.rules()
		l.commands()
		l.quotas()
		return l.warnings.Err()
	})
}

type linter struct {
	file     *file
	site     *Site
	warnings strictyaml.Error
}

// warn adds a warning: a format in English and in Japanese, with the same arguments in the same order.
func (l *linter) warn(path, english, japanese string, args ...any) {
	l.warnings.Add(path, "%v", locale.Text{"en": english, "ja": japanese}.Errorf(args...))
}

// unknown warns of a name that is none of known.
func (l *linter) unknown(path, kind, name string, known []string) {
	l.warnings.Add(path, "%v", strictyaml.Unknown(kind, name, known))
}

func (l *linter) rules() {
	groups := []string{}
	for name := range l.file.groups {
		groups = append(groups, name)
	}
	for i, rule := range l.file.rules {
		if j := slices.IndexFunc(l.file.rules[:i], func(before *Rule) bool { return before.covers(rule) }); j >= 0 {
			before := l.file.rules[j]
			l.warn(rule.path,
				"can never decide, because %q in line %d decides all of its calls: move it up, or remove it",
				"このルールは使われません。先にある %q (%d 行目) がすべての呼び出しを決めるためです。上に移すか、削除してください", before.Name, before.Line)
		}
		l.tools(rule)
		l.names(rule.path+".frontends", "frontend", rule.Frontends, l.site.Frontends)
		l.names(rule.path+".tenants", "tenant", rule.Tenants, l.site.Tenants)
		l.names(rule.path+".tokens", "token", rule.Tokens, l.site.Tokens)
		l.groups(rule.path+".groups", rule.Groups, groups)
		l.approvers(rule, groups)
	}
}

// names warns of unknown names.
func (l *linter) names(path, kind string, names, known []string) {
	for i, name := range names {
		if known != nil && !slices.Contains(known, name) {
			l.unknown(strictyaml.Index(path, i), kind, name, known)
		}
	}
}

// approvers warns of a user that has the name of a group, and of a probably misspelt group.
func (l *linter) approvers(rule *Rule, groups []string) {
	for i, name := range rule.Approvers.Users {
		if slices.Contains(groups, name) {
			l.warn(strictyaml.Index(rule.path+".approvers.users", i),
				"%q is the name of a group: write it under groups if its members are meant",
				"%q はグループの名前です。そのメンバーを指す場合は groups に書いてください", name)
		}
	}
	l.groups(rule.path+".approvers.groups", rule.Approvers.Groups, groups)
}

// groups warns of probably misspelt groups. Other unknown groups may come from a frontend.
func (l *linter) groups(path string, names, known []string) {
	for i, name := range names {
		if near := strictyaml.Nearest(name, known); near != "" && near != name {
			l.warn(strictyaml.Index(path, i), "the policy has no group %q: did you mean %q?",
				"ポリシーにグループ %q はありません。%q の誤りではありませんか", name, near)
		}
	}
}

// tools warns of patterns that match no tool.
func (l *linter) tools(rule *Rule) {
	for i, pattern := range rule.Tools {
		path := strictyaml.Index(rule.path+".tools", i)
		if strings.HasPrefix(rule.path, "tool_permissions") {
			path = rule.path
		}
		l.pattern(path, pattern)
	}
}

// methods are the names of requests other than tools/call in rules.
var methods = []string{"resources/read", "prompts/get", "completion/complete"}

func (l *linter) pattern(path, pattern string) {
	plugin, inPlugin, ofPlugin := strings.Cut(pattern, "/")
	known := slices.Clone(methods)
	for _, tool := range l.site.Tools {
		if matchesTool(pattern, tool.Plugin, tool.Name) {
			return
		}
		known = append(known, tool.Name)
		if ofPlugin {
			known = append(known, tool.Plugin+"/"+tool.Name)
		}
	}
	if slices.ContainsFunc(methods, func(m string) bool {
		return matches(pattern, m) || ofPlugin && matches(inPlugin, m) && l.hasPlugin(plugin)
	}) {
		return
	}
	switch near := strictyaml.Suggest(pattern, known); {
	case len(near) > 0:
		l.warn(path, "there is no tool %q: did you mean %q?", "ツール %q はありません。%q の誤りではありませんか", pattern, near[0])
	case ofPlugin && !l.hasPlugin(plugin):
		l.unknown(path, "plugin", plugin, l.plugins())
	default:
		l.warn(path, "no tool is called %q now", "%q に当てはまるツールは現在ありません", pattern)
	}
}

func (l *linter) plugins() []string {
	var names []string
	for _, tool := range l.site.Tools {
		names = append(names, tool.Plugin)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (l *linter) hasPlugin(pattern string) bool {
	return slices.ContainsFunc(l.site.Tools, func(t ToolName) bool { return matches(pattern, t.Plugin) })
}

func (l *linter) commands() {
	rules := l.file.commands
	for i := range rules {
		if j := slices.IndexFunc(rules[:i], func(before judge.Rule) bool {
			return coversCommands(&before,
				&rules[i])
		}); j >= 0 {
			l.warn(strictyaml.Index("commands", i),
				"can never decide, because %q above it decides all of its commands",
				"このルールは使われません。上にある %q がすべてのコマンドを決めるためです", rules[j].Name)
		}
	}
}

func (l *linter) quotas() {
	var tools []string
	for _, tool := range l.site.Tools {
		tools = append(tools, tool.Name)
	}
	for i, rule := range l.file.quotas {
		path := strictyaml.Index("quotas", i)
		l.names(path+".plugins", "plugin", rule.Plugins, l.plugins())
		l.names(path+".tools", "tool", rule.Tools, tools)
		l.names(path+".tenants", "tenant", rule.Tenants, l.site.Tenants)
		l.names(path+".tokens", "token", rule.Tokens, l.site.Tokens)
	}
}

// covers reports whether r, which comes before other, decides about every call that other could decide about. It may
// return false though it does.
func (r *Rule) covers(other *Rule) bool {
	// A condition that cannot be evaluated makes a rule that allows not match, but one that denies match.
	same := r.When == other.When && (r.Action != Allow || other.Action == Allow)
	return (r.When == "" || same) && coversPatterns(r.Tools, other.Tools) &&
		coversNames(r.Via, other.Via) && coversNames(r.Frontends, other.Frontends) &&
		coversNames(r.Tenants, other.Tenants) && coversNames(r.Users, other.Users) &&
		coversNames(r.Groups, other.Groups) && coversNames(r.Tokens, other.Tokens) &&
		coversNames(r.MissingScopes, other.MissingScopes)
}

// coversNames reports whether a call with one of the names some also has one of all. An empty list means any name.
func coversNames(all, some []string) bool {
	return len(all) == 0 || len(some) > 0 && !slices.ContainsFunc(some,
		func(name string) bool { return !slices.Contains(all, name) })
}

// coversPatterns is coversNames for patterns.
func coversPatterns(all, some []string) bool {
	return len(all) == 0 || len(some) > 0 && !slices.ContainsFunc(some, func(narrow string) bool {
		return !slices.ContainsFunc(all, func(wide string) bool { return coversPattern(wide, narrow) })
	})
}

// coversPattern reports whether everything that matches narrow matches wide. It does if narrow, taken as a text,
// matches wide. For one tool of a plugin, the name of the tool alone may match.
func coversPattern(wide, narrow string) bool {
	plugin, name, ok := strings.Cut(narrow, "/")
	if ok && !strings.ContainsAny(plugin, "*") && !strings.Contains(name, "/") &&
		!slices.ContainsFunc(methods, func(m string) bool { return matches(narrow, m) }) && matches(wide, name) {
		return true
	}
	return matches(wide, narrow)
}

// coversCommands is covers for command rules without flags and arguments; others are not compared.
func coversCommands(before, rule *judge.Rule) bool {
	return len(before.Flags)+len(before.Args) == 0 && coversPatterns(before.Programs, rule.Programs)
}
