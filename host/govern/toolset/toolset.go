// Package toolset offers callers named selections of the catalog: tools under other names, with arguments that are
// fixed or hidden and with other descriptions, and some of the resources and prompts.
//
// A Set is data; Set.Apply makes a View of a snapshot of the catalog. Config.For finds the set of a caller. A set says
// what is offered, not what is allowed: the policy decides about calls, with the names and arguments that tools have in
// the catalog.
package toolset

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/toolschema"
)

// All names what callers are offered without a set: everything. No set has the name.
const All = "all"

// Config is the sets of a configuration, and who is offered which. It must not change once it is in use.
type Config struct {
	Sets map[string]*Set
	// Rules are tried in order; the first that matches a caller decides. A caller whom no rule matches is offered All.
	Rules []Rule
	// Local is the name of the set, or All, that callers at the terminal and over stdio are offered, whatever the rules
	// say. Empty leaves them to the rules.
	Local  string
	Search Search
}

// Search is the number of tools from which on they are searched for and not listed. The zero value lists all.
type Search struct {
	// Tools and Tokens are the most that is listed: the number of tools, and what they take of a model's context; see
	// toolschema.Tokens. Zero means no limit.
	Tools  int `json:"tools,omitempty"`
	Tokens int `json:"tokens,omitempty"`
}

// Passed reports whether the tools are more than are listed.
func (s Search) Passed(tools []*catalog.Tool) bool {
	if s.Tools > 0 && len(tools) > s.Tools {
		return true
	}
	if s.Tokens <= 0 {
		return false
	}
	sum := 0
	for _, tool := range tools {
		if sum += Tokens(tool); sum > s.Tokens {
			return true
		}
	}
	return false
}

// Tokens estimates how much of a model's context the tool takes with its English description; see toolschema.Tokens.
func Tokens(tool *catalog.Tool) int {
	return toolschema.Tokens(tool.Name, tool.Spec.Description.In("en"), toolschema.Listed(tool.Spec.InputSchema))
}

// Set is a selection of the catalog.
type Set struct {
	Name string `json:"name"`
	// Description is the purpose of the set, for people.
	Description string `json:"description,omitempty"`
	// Tools are tried in order; the first entry that matches a tool decides how it is offered.
	Tools []Tool `json:"tools"`
	// Except are patterns of tools that are not offered, whatever Tools has.
	Except []string `json:"except,omitempty"`
	// Resources are patterns of URIs and URI templates, Prompts of names.
	Resources []string `json:"resources,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
	// For lists the callers that may use the set's own endpoint. Nil means everyone whom the endpoint lets in.
	For *People `json:"for,omitempty"`
}

// Tool is an entry of a set.
type Tool struct {
	// Pattern is a tool's name in the catalog, or PLUGIN/TOOL; "*" matches any text.
	Pattern string `json:"tool"`
	// Rename is the offered name; empty keeps the tool's. A pattern with a star has none.
	Rename string `json:"rename,omitempty"`
	// Fix has the values of arguments that the caller cannot give, as JSON. Hide are arguments that are left out.
	Fix  map[string]json.RawMessage `json:"fix,omitempty"`
	Hide []string                   `json:"hide,omitempty"`
	// Description takes the place of the tool's; empty keeps it, or its first sentence if Short is set.
	Description manifest.Text `json:"description,omitempty"`
	Short       bool          `json:"short,omitempty"`
	// Pin keeps the tool in the list where others are searched for.
	Pin bool `json:"pin,omitempty"`
}

// Rule gives callers a set.
type Rule struct {
	People
	// Frontends are pipeline.Caller's; Channels are IDs of Slack channels. Empty means any.
	Frontends []string `json:"frontends,omitempty"`
	Channels  []string `json:"channels,omitempty"`
	// Set is the name of a set, or All.
	Set string `json:"toolset"`
}

// People are those who have one of each kind of names that is not empty.
type People struct {
	Users   []string `json:"users,omitempty"`
	Groups  []string `json:"groups,omitempty"`
	Tenants []string `json:"tenants,omitempty"`
	Tokens  []string `json:"tokens,omitempty"`
}

// Caller has the properties of a caller that rules match.
type Caller struct {
	Frontend, Tenant, User, Token, Channel string
	Groups                                 []string
}

// Has reports whether the caller is one of the people. Nil are all.
func (p *People) Has(c *Caller) bool {
	return p == nil || has(p.Users, c.User) && has(p.Tenants, c.Tenant) && has(p.Tokens, c.Token) &&
		(len(p.Groups) == 0 ||
			slices.ContainsFunc(c.Groups, func(g string) bool { return slices.Contains(p.Groups, g) }))
}

// has reports whether the name is in the list. An empty list has all, an empty name is in no other.
func has(list []string, name string) bool {
	return len(list) == 0 || name != "" && slices.Contains(list, name)
}

// For returns the name of the set that the rules give to the caller, All if they give none. A nil Config has no rules.
func (c *Config) For(caller *Caller) string {
	if c == nil {
		return All
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Has(caller) && has(r.Frontends, caller.Frontend) && has(r.Channels, caller.Channel) {
			return r.Set
		}
	}
	return All
}

// Covers reports whether the rule matches every caller whom the other one matches, so that the other one decides about
// nobody if it is below.
func (r *Rule) Covers(other *Rule) bool {
	return covers(r.Users, other.Users) && covers(r.Groups, other.Groups) && covers(r.Tenants, other.Tenants) &&
		covers(r.Tokens, other.Tokens) && covers(r.Frontends, other.Frontends) && covers(r.Channels, other.Channels)
}

// covers reports whether the list has all that the other one has. An empty list has everything.
func covers(list, other []string) bool {
	return len(list) == 0 || len(other) > 0 &&
		!slices.ContainsFunc(other, func(name string) bool { return !slices.Contains(list, name) })
}

// Set returns the set with this name, or nil. A nil Config has none.
func (c *Config) Set(name string) *Set {
	if c == nil {
		return nil
	}
	return c.Sets[name]
}

// Names returns the names of the sets, sorted.
func (c *Config) Names() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.Sets))
}

// CheckName returns an error unless the name is that of a set, or All.
func (c *Config) CheckName(name string) error {
	if name == All || c.Set(name) != nil {
		return nil
	}
	if known := c.Names(); len(known) > 0 {
		return strictyaml.Unknown("toolset", name, append(known, All))
	}
	return fmt.Errorf("unknown toolset %q: define it below toolsets.sets in hako.yaml", name)
}

var (
	setName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// CheckSetName returns an error if no set can have the name.
func CheckSetName(name string) error {
	switch {
	case name == All:
		return fmt.Errorf("%q means all tools: choose another name", name)
	case !setName.MatchString(name):
		return fmt.Errorf(
			"%q cannot be a name: it is part of a URL, so 1 to 64 of a-z, 0-9 and -, not beginning with -", name)
	}
	return nil
}

// Check returns an error if the entry contradicts itself.
func (t *Tool) Check() error {
	switch {
	case t.Pattern == "":
		return fmt.Errorf("must name a tool, or several with a star")
	case t.Rename != "" && strings.Contains(t.Pattern, "*"):
		return fmt.Errorf("%s can match several tools, and rename is for one: name the tool", t.Pattern)
	case t.Rename != "" && !toolName.MatchString(t.Rename):
		return fmt.Errorf("rename %q is not a tool name: 1 to 64 of A-Z, a-z, 0-9, _ and -", t.Rename)
	}
	for _, name := range t.Hide {
		if _, fixed := t.Fix[name]; fixed {
			return fmt.Errorf("the argument %s is in fix, which hides it: leave it out of hide", name)
		}
	}
	return nil
}
