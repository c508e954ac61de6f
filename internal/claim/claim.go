// Package claim reads the claims of JSON Web Tokens.
package claim

import "slices"

// Has reports whether a claim, a string or a list of strings, has one of the values.
func Has(claim any, values ...string) bool {
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	return slices.ContainsFunc(list, func(item any) bool {
		text, ok := item.(string)
		return ok && slices.Contains(values, text)
	})
}
