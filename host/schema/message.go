package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/hako-run/hako/internal/clip"
)

// message words a failure that needs to know nothing but its kind.
func message(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + typeNames(k.Want) + ", not " + typeNames([]string{k.Got})
	case *kind.Const:
		return "must be " + Constants([]any{k.Want})
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Not:
		return "is one of the values that are excluded"
	case *kind.Format:
		return fmt.Sprintf("is not a valid %s: %v", k.Want, k.Err)
	case *kind.Pattern:
		return fmt.Sprintf("must match the pattern %s", clip.Runes(k.Want, 300))
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	}
	return sizeMessage(k)
}

// sizeMessage words a failure about how long something is.
func sizeMessage(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, not %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, not %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, not %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, not %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal; each may occur once", k.Duplicates[0], k.Duplicates[1])
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d properties, not %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d properties, not %d", k.Want, k.Got)
	case *kind.Contains:
		return "must contain an item of the required kind"
	case *kind.MinContains:
		return fmt.Sprintf("must contain at least %d items of the required kind, not %d", k.Want, len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("must contain at most %d items of the required kind, not %d", k.Want, len(k.Got))
	}
	return "does not fit the schema"
}

var articles = map[string]string{
	"string": "a string", "number": "a number", "integer": "an integer", "boolean": "true or false",
	"array": "an array", "object": "an object", "null": "null",
}

func typeNames(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = articles[t]
	}
	return strings.Join(names, " or ")
}

// Constants writes constants of a schema as JSON, at most 20.
func Constants(values []any) string {
	const most = 20
	texts := make([]string, 0, most+1)
	for i, v := range values {
		if i == most {
			texts = append(texts, fmt.Sprintf("%d more", len(values)-most))
			break
		}
		text, _ := json.Marshal(v) // v was decoded from JSON
		texts = append(texts, clip.Runes(string(text), 60))
	}
	return strings.Join(texts, ", ")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
