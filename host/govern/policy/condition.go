package policy

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"

	"github.com/hako-run/hako/internal/strictyaml"
)

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
