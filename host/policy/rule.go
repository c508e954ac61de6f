package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"

	"github.com/hako-run/hako/host/internal/toolpattern"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Rule decides about some calls. It matches a call if all of its non-empty fields do.
type Rule struct {
	Name   string
	Action Action
	// Line is the line of the rule in its file, counted from 1.
	Line int
	// Tools are patterns for TOOL, or with a "/" for PLUGIN/TOOL; "*" matches any text. Frontends, Tenants, Users,
	// Groups and Tokens are names. Via are plugins whose tools make the call.
	Tools                                          []string
	Via, Frontends, Tenants, Users, Groups, Tokens []string
	// MissingScopes match calls whose token lacks at least one of them, and calls without a token.
	MissingScopes []string
	// When is a CEL expression. Empty means always.
	When      string
	Reason    manifest.Text
	Approvers People
	Remember  time.Duration

	path     string // in the file
	patterns []toolpattern.Pattern
	compiledCondition
}

// compiledCondition is a compiled When. Rules with the same text share it. The zero value is always true.
type compiledCondition struct {
	program cel.Program
	// variables are those that it uses, fields the fields of the arguments. wholeArguments reports whether it uses the
	// arguments in other ways too.
	variables, fields []string
	wholeArguments    bool
	// onArguments reports whether it uses no other variable and has no value as long as the arguments are unknown.
	onArguments bool
}

// costLimit bounds the evaluation of a condition, in CEL's cost units: some milliseconds.
const costLimit = 100_000

// variables are the names of all variables of conditions.
var variables = []string{
	"tool", "plugin", "via", "frontend", "tenant", "user", "token", "groups",
	"readOnly", "destructive", "idempotent", "openWorld", "arguments", "caller",
}

// environment declares the variables of conditions.
var environment = must(cel.NewEnv(
	cel.Variable("tool", cel.StringType), cel.Variable("plugin", cel.StringType),
	cel.Variable("via", cel.StringType),
	cel.Variable("frontend", cel.StringType),
	cel.Variable("tenant", cel.StringType), cel.Variable("user", cel.StringType), cel.Variable("token", cel.StringType),
	cel.Variable("groups", cel.ListType(cel.StringType)),
	cel.Variable("readOnly", cel.BoolType), cel.Variable("destructive", cel.BoolType),
	cel.Variable("idempotent", cel.BoolType), cel.Variable("openWorld", cel.BoolType),
	cel.Variable("arguments", cel.MapType(cel.StringType, cel.DynType)),
	cel.Variable("caller", cel.MapType(cel.StringType, cel.DynType)),
))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// compile compiles the patterns and the condition of the rule. known has the conditions compiled before, by their
// texts: policies repeat few conditions in many rules.
func (r *Rule) compile(known map[string]compiledCondition) (err error) {
	for _, text := range r.Tools {
		r.patterns = append(r.patterns, toolpattern.Compile(text))
	}
	compiled, ok := known[r.When]
	if !ok && r.When != "" {
		if compiled, err = compileCondition(r.When); err != nil {
			return err
		}
		known[r.When] = compiled
	}
	r.compiledCondition = compiled
	return nil
}

func compileCondition(text string) (c compiledCondition, err error) {
	checked, issues := environment.Compile(text)
	if issues.Err() != nil {
		return c, conditionError(text, issues)
	}
	if checked.OutputType() != cel.BoolType {
		return c, conditionType.Errorf(checked.OutputType())
	}
	if c.program, err = environment.Program(checked, cel.CostLimit(costLimit),
		cel.EvalOptions(cel.OptOptimize)); err != nil {
		return c, err
	}
	if err := c.inspect(checked.NativeRep().Expr()); err != nil {
		return c, err
	}
	if slices.Equal(c.variables, []string{"arguments"}) {
		_, err := c.evaluate(&facts{call: new(Call)})
		c.onArguments = err != nil
	}
	return c, nil
}

// inspect notes what the condition uses. It fails for a field of caller that does not exist.
func (c *compiledCondition) inspect(condition ast.Expr) (unknown error) {
	whole := 0 // uses of arguments other than one of its fields
	ast.PostOrderVisit(condition, ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.IdentKind:
			if !slices.Contains(c.variables, e.AsIdent()) {
				c.variables = append(c.variables, e.AsIdent())
			}
			if isVariable(e, "arguments") {
				whole++
			}
		case e.Kind() == ast.SelectKind && isVariable(e.AsSelect().Operand(), "arguments"):
			c.fields = append(c.fields, e.AsSelect().FieldName())
			whole--
		case e.Kind() == ast.SelectKind && isVariable(e.AsSelect().Operand(), "caller") &&
			!slices.Contains(callerFields, e.AsSelect().FieldName()):
			unknown = strictyaml.Unknown("field of caller", e.AsSelect().FieldName(), callerFields)
		}
	}))
	c.wholeArguments = whole > 0
	return unknown
}

// callerFields are the fields of the variable caller.
var callerFields = []string{"employee", "groups", "scopes", "toolset"}

func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}

// differing returns the first field that does not match, by its key in the file. It is empty if all fields but the
// condition match. full is PLUGIN/TOOL.
func (r *Rule) differing(c *Call, full string, groups []string) (field string) {
	switch {
	case !r.matchesTool(c.Tool, full):
		return "tools"
	case !containsOrAny(r.Via, c.Via):
		return "via"
	case !containsOrAny(r.Frontends, c.Frontend):
		return "frontends"
	case !containsOrAny(r.Tenants, c.Tenant):
		return "tenants"
	case !containsOrAny(r.Users, c.User):
		return "users"
	case !containsOrAny(r.Tokens, c.Token):
		return "tokens"
	case len(r.Groups) > 0 && !intersects(r.Groups, groups):
		return "groups"
	case len(r.MissingScopes) > 0 && len(without(r.MissingScopes, c.Scopes)) == 0:
		return "missingScopes"
	}
	return ""
}

// matchesTool reports whether one of the patterns matches the tool.
func (r *Rule) matchesTool(tool, full string) bool {
	for i := range r.patterns {
		if r.patterns[i].MatchesTool(tool, full) {
			return true
		}
	}
	return len(r.patterns) == 0
}

func containsOrAny(names []string, name string) bool { return len(names) == 0 || contains(names, name) }

func contains(list []string, s string) bool { return s != "" && slices.Contains(list, s) }

// without returns the entries of list that are not in other.
func without(list, other []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(other, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// decides reports whether the rule decides about a call whose names match. A condition that cannot be evaluated fails
// closed.
func (r *Rule) decides(f *facts) bool {
	met, err := r.evaluate(f)
	return met || err != nil && r.Action != Allow
}

func (c *compiledCondition) evaluate(f *facts) (bool, error) {
	if c.program == nil {
		return true, nil
	}
	value, _, err := c.program.Eval(f)
	if err != nil {
		return false, celError(err.Error())
	}
	met, ok := value.Value().(bool)
	if !ok {
		return false, conditionValue.Errorf(value)
	}
	return met, nil
}

func (r *Rule) decision(c *Call) Decision {
	return Decision{Action: r.Action, Rule: r.Name, Reason: r.Reason, Approvers: r.Approvers, Remember: r.Remember,
		MissingScopes: without(r.MissingScopes, c.Scopes)}
}

// employees are the employee IDs of users in the HR tools, by user and by e-mail address (foldAddress).
type employees struct{ byUser, byEmail map[string]string }

// add adds an entry. It reports false if the address has another entry.
func (e employees) add(user, id string) bool {
	e.byUser[user] = id
	if !strings.Contains(user, "@") {
		return true
	}
	address := foldAddress(user)
	_, twice := e.byEmail[address]
	e.byEmail[address] = id
	return !twice
}

// of returns the caller's employee ID, or "" if the policy has none. The user's entry precedes that of the address.
func (e employees) of(c *Call) string {
	if id := e.byUser[c.User]; id != "" && c.User != "" {
		return id
	}
	return e.byEmail[foldAddress(c.Email)]
}

// foldAddress makes addresses comparable that differ in the case of ASCII letters. Unicode's rules would make others
// equal, such as the Kelvin sign and k.
func foldAddress(address string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, address)
}

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
