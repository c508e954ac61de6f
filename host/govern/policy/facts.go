package policy

import (
	"bytes"
	"encoding/json"
	"strings"

	"cel.dev/cel-go/cel"
)

// facts are the variables of conditions. The variable caller is made, and arguments are decoded, at their first use.
type facts struct {
	policy  *Policy
	call    *Call
	groups  []string
	caller  map[string]any
	decoded map[string]any
	// hidden are variables that are not known.
	hidden map[string]bool
}

func (p *Policy) newFacts(c *Call) *facts {
	return &facts{policy: p, call: c, groups: append([]string{}, p.GroupsOf(c)...)}
}

// callerValue has "groups", "scopes", "toolset" and, if the policy has one, "employee", the ID in the HR tools.
func (f *facts) callerValue() map[string]any {
	if f.caller == nil {
		f.caller = map[string]any{"groups": f.groups, "scopes": append([]string{}, f.call.Scopes...),
			"toolset": f.call.Toolset}
		if id := f.policy.employees.of(f.call); id != "" {
			f.caller["employee"] = id
		}
	}
	return f.caller
}

// Parent implements cel.Activation.
func (f *facts) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation.
func (f *facts) ResolveName(name string) (any, bool) {
	if f.hidden[name] {
		return nil, false
	}
	c := f.call
	switch name {
	case "tool":
		return c.Tool, true
	case "plugin":
		return c.Plugin, true
	case "via":
		return c.Via, true
	case "frontend":
		return c.Frontend, true
	case "tenant":
		return c.Tenant, true
	case "user":
		return c.User, true
	case "token":
		return c.Token, true
	case "groups":
		return f.groups, true
	case "readOnly":
		return hint(c.Annotations.ReadOnlyHint, false), true
	case "destructive":
		return destructive(c.Annotations), true
	case "idempotent":
		return hint(c.Annotations.IdempotentHint, false), true
	case "openWorld":
		return hint(c.Annotations.OpenWorldHint, true), true
	case "arguments":
		return f.arguments()
	case "caller":
		return f.callerValue(), true
	}
	return nil, false
}

// arguments returns false if the arguments are not known, so that conditions on them cannot be evaluated.
func (f *facts) arguments() (any, bool) {
	if f.decoded == nil {
		decoder := json.NewDecoder(bytes.NewReader(f.call.Arguments))
		decoder.UseNumber()
		var decoded map[string]any
		if decoder.Decode(&decoded) != nil || decoded == nil {
			return nil, false
		}
		exact, ok := exactNumbers(decoded)
		if !ok {
			return nil, false
		}
		f.decoded = exact.(map[string]any)
	}
	return f.decoded, true
}

// maxExact is the integer from which on a float64 does not represent all integers.
const maxExact = 1 << 53

// exactNumbers replaces each json.Number by a float64, or by an int64 if a float64 could not represent it exactly. It
// reports false if an integer does not fit into an int64 either, so that conditions on it cannot be evaluated.
func exactNumbers(value any) (any, bool) {
	switch value := value.(type) {
	case json.Number:
		whole, err := value.Int64()
		if err == nil && (whole >= maxExact || whole <= -maxExact) {
			return whole, true
		}
		float, floatErr := value.Float64()
		isInteger := !strings.ContainsAny(value.String(), ".eE")
		return float, floatErr == nil && (err == nil || !isInteger)
	case map[string]any:
		for name, item := range value {
			exact, ok := exactNumbers(item)
			if !ok {
				return nil, false
			}
			value[name] = exact
		}
	case []any:
		for i, item := range value {
			exact, ok := exactNumbers(item)
			if !ok {
				return nil, false
			}
			value[i] = exact
		}
	}
	return value, true
}

var _ cel.Activation = (*facts)(nil)
