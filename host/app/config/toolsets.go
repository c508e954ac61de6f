package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/strictyaml"
)

// toolsets reads what is below "toolsets".
func (r reader) toolsets(v strictyaml.Value) {
	c := &toolset.Config{Sets: map[string]*toolset.Set{}}
	var rules []strictyaml.Value
	v.Object(strictyaml.Fields{
		"sets": func(v strictyaml.Value) {
			v.Map(func(name string, v strictyaml.Value) {
				c.Sets[name] = r.toolset(name, v)
			})
		},
		"rules": func(v strictyaml.Value) {
			v.List(func(_ int, v strictyaml.Value) {
				c.Rules = append(c.Rules, r.toolsetRule(v))
				rules = append(rules, v)
			})
		},
		"search": func(v strictyaml.Value) {
			v.Object(strictyaml.Fields{
				"tools":  strictyaml.Count(&c.Search.Tools),
				"tokens": strictyaml.Count(&c.Search.Tokens),
			})
		},
	})
	for i, v := range rules { // sets may be below the rules
		if rule := &c.Rules[i]; rule.Set == "" {
			v.Problem("must name a toolset, or %s", toolset.All)
		} else if err := c.CheckName(rule.Set); err != nil {
			v.Problem("%v", err)
		}
	}
	r.config.Toolsets = c
}

// chooseToolset puts the set that the setting names in the place of the rules, for callers on this machine.
func (c *Config) chooseToolset() error {
	if c.Toolset == "" {
		return nil
	}
	if err := c.Toolsets.CheckName(c.Toolset); err != nil {
		return fmt.Errorf("configuration: %s: %w", c.origins["toolset"], err)
	}
	if c.Toolsets != nil {
		c.Toolsets.Local = c.Toolset
	}
	return nil
}

func (r reader) toolset(name string, v strictyaml.Value) *toolset.Set {
	s := &toolset.Set{Name: name}
	if err := toolset.CheckSetName(name); err != nil {
		v.Problem("%v", err)
	}
	v.Object(strictyaml.Fields{
		"description": strictyaml.String(&s.Description),
		"tools": func(v strictyaml.Value) {
			v.List(func(_ int, v strictyaml.Value) { s.Tools = append(s.Tools, toolsetTool(v)) })
		},
		"except":    strictyaml.Strings(&s.Except),
		"resources": strictyaml.Strings(&s.Resources),
		"prompts":   strictyaml.Strings(&s.Prompts),
		"for": func(v strictyaml.Value) {
			s.For = new(toolset.People)
			v.Object(peopleFields(s.For))
			if p := s.For; len(p.Users)+len(p.Groups)+len(p.Tenants)+len(p.Tokens) == 0 {
				v.Problem("must name users, groups, tenants or tokens; leave it out for everyone")
			}
		},
	})
	var patterns []string
	for i := range s.Tools {
		patterns = append(patterns, s.Tools[i].Pattern)
	}
	r.note("toolsets.sets."+name, "["+strings.Join(patterns, ", ")+"]", v)
	return s
}

// toolsetTool reads an entry: a pattern, or an object.
func toolsetTool(v strictyaml.Value) (t toolset.Tool) {
	if v.IsText() {
		t.Pattern, _ = v.Text()
	} else {
		v.Object(strictyaml.Fields{
			"tool":   strictyaml.String(&t.Pattern),
			"rename": strictyaml.String(&t.Rename),
			"fix": func(v strictyaml.Value) {
				t.Fix = map[string]json.RawMessage{}
				v.Map(func(name string, v strictyaml.Value) { t.Fix[name] = v.JSON() })
			},
			"hide":        strictyaml.Strings(&t.Hide),
			"description": manifest.ReadText(&t.Description),
			"short":       strictyaml.Bool(&t.Short),
			"pin":         strictyaml.Bool(&t.Pin),
		})
	}
	if err := t.Check(); err != nil {
		v.Problem("%v", err)
	}
	return t
}

func (r reader) toolsetRule(v strictyaml.Value) (rule toolset.Rule) {
	fields := peopleFields(&rule.People)
	fields["frontends"] = strictyaml.Strings(&rule.Frontends)
	fields["channels"] = strictyaml.Strings(&rule.Channels)
	fields["toolset"] = strictyaml.String(&rule.Set)
	v.Object(fields)
	for _, name := range rule.Frontends {
		if !slices.Contains(pipeline.Frontends, name) {
			v.Problem("%s", strictyaml.Unknown("frontend", name, pipeline.Frontends))
		}
	}
	r.note(fmt.Sprintf("toolsets.rules[%d]", v.Line()), rule.Set, v)
	return rule
}

func peopleFields(p *toolset.People) strictyaml.Fields {
	return strictyaml.Fields{
		"users": strictyaml.Strings(&p.Users), "groups": strictyaml.Strings(&p.Groups),
		"tenants": strictyaml.Strings(&p.Tenants), "tokens": strictyaml.Strings(&p.Tokens),
	}
}
