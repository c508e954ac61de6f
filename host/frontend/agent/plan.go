package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/govern/audit"
)

// Plan has the changes that make an agent's custom tools those of hako. Tools of others stay unchanged.
type Plan struct {
	// Agent, Name and Version identify the agent as read.
	Agent   string
	Name    string
	Version int64
	// Changes are the changes of hako's tools, sorted by name.
	Changes []Change
	// Kept names the tools that are not hako's.
	Kept []string

	wanted   []Definition
	adopt    bool
	tools    []json.RawMessage  // all tools of the new version
	metadata map[string]*string // changes; nil removes a key
}

// Empty reports whether there is nothing to change.
func (p *Plan) Empty() bool { return len(p.Changes)+len(p.metadata) == 0 }

// Removes reports whether the plan takes a tool away from the agent.
func (p *Plan) Removes() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.New == nil })
}

// Operation is the record of applying the plan.
func (p *Plan) Operation() *audit.Operation {
	changes := make([]string, len(p.Changes))
	for i, change := range p.Changes {
		changes[i] = change.Text()
	}
	return &audit.Operation{Action: "agent.apply", Target: audit.Target{Name: p.Agent},
		Detail: map[string]string{"before": fmt.Sprint(p.Version), "changes": strings.Join(changes, "\n")}}
}

// Change is the change of one tool. Old is nil for an added tool, New for a removed one.
type Change struct {
	Old, New *Definition
}

// Tool returns the tool's name at the agent.
func (c Change) Tool() string {
	if c.New != nil {
		return c.New.Name
	}
	return c.Old.Name
}

// agentObject is an agent as returned by the API.
type agentObject struct {
	id, name string
	version  int64
	archived bool
	tools    []string // JSON
	metadata map[string]string
}

// plan compares the tools of an agent with the wanted ones. With adopt, hako takes over other custom tools of the same
// names.
func plan(a *agentObject, wanted []Definition, adopt bool) (*Plan, error) {
	p := &Plan{Agent: a.id, Name: a.name, Version: a.version, wanted: wanted, adopt: adopt}
	if a.archived {
		return nil, fmt.Errorf("agent %s is archived, and cannot be changed: name another", a.id)
	}
	others, err := p.mergeTools(a)
	if err != nil {
		return nil, err
	}
	if err := checkDefinitions(wanted, others); err != nil {
		return nil, err
	}
	slices.SortFunc(p.Changes, func(a, b Change) int { return strings.Compare(a.Tool(), b.Tool()) })
	return p, p.mark(a.metadata)
}

// mergeTools compares the agent's tools with the wanted ones and adds the missing ones. It returns how many custom
// tools are not hako's.
func (p *Plan) mergeTools(a *agentObject) (others int, err error) {
	missing, taken := map[string]*Definition{}, []string(nil)
	for i := range p.wanted {
		missing[p.wanted[i].Name] = &p.wanted[i]
	}
	own := marked(a.metadata)
	for _, raw := range a.tools {
		old, custom := readDefinition(raw)
		next := missing[old.Name]
		delete(missing, old.Name)
		switch {
		case !custom, next == nil && !own(old.Name):
			if custom {
				others++
			}
			p.Kept = append(p.Kept, label(raw))
			p.tools = append(p.tools, json.RawMessage(raw))
		case next == nil:
			p.Changes = append(p.Changes, Change{Old: &old})
		case old.sameAs(next):
			p.tools = append(p.tools, json.RawMessage(raw))
		case !own(old.Name) && !p.adopt:
			taken = append(taken, old.Name)
		default:
			p.Changes = append(p.Changes, Change{Old: &old, New: next})
			p.tools = append(p.tools, encode(next))
		}
	}
	if len(taken) > 0 {
		return 0, fmt.Errorf(
			"agent %s has custom tools that are not hako's, and are named like some that are: %s. Rename or remove them there, or make them hako's (--adopt)",
			a.id, strings.Join(taken, ", "))
	}
	for i := range p.wanted {
		if d := &p.wanted[i]; missing[d.Name] == d {
			p.Changes = append(p.Changes, Change{New: d})
			p.tools = append(p.tools, encode(d))
		}
	}
	return others, nil
}

func encode(d *Definition) json.RawMessage {
	text, err := json.Marshal(d)
	if err != nil {
		return nil // its schema is JSON, or check refuses it
	}
	return text
}

// label names a tool that is not hako's.
func label(raw string) string {
	var tool struct {
		Type, Name string
		Server     string `json:"mcp_server_name"`
	}
	_ = json.Unmarshal([]byte(raw), &tool) // without a name if it cannot be parsed
	switch {
	case tool.Name != "":
		return tool.Name
	case tool.Server != "":
		return "the MCP server " + tool.Server
	}
	return tool.Type
}

// errMetadata means that an agent's metadata has no room for the marks of hako's tools.
var errMetadata = errors.New(
	"the agent's metadata has no room: hako notes there which tools are its own. Remove some of the other keys")

// maxMetadata is the API's limit of metadata keys.
const maxMetadata = 16

// mark adds the marks of hako's tools to the metadata.
func (p *Plan) mark(old map[string]string) error {
	names := make([]string, len(p.wanted))
	for i := range p.wanted {
		names[i] = p.wanted[i].Name
	}
	marks := marksOf(names)
	room := maxMetadata - len(marks)
	p.metadata = map[string]*string{}
	for key, value := range old {
		switch mark, wanted := marks[key]; {
		case !isMark(key):
			room--
		case !wanted:
			p.metadata[key] = nil
		case mark == value:
			delete(marks, key)
		}
	}
	if room < 0 {
		return errMetadata
	}
	for key, mark := range marks {
		p.metadata[key] = &mark
	}
	return nil
}

// sameChanges reports whether p and other make the same changes, so that consent to one covers the other.
func (p *Plan) sameChanges(other *Plan) bool {
	return slices.EqualFunc(p.Changes, other.Changes, func(a, b Change) bool {
		return sameDefinition(a.Old, b.Old) && sameDefinition(a.New, b.New)
	})
}

func sameDefinition(a, b *Definition) bool {
	return (a == nil) == (b == nil) && (a == nil || a.sameAs(b) && b.sameAs(a))
}
