package toolschema

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestIdentifiers(t *testing.T) {
	t.Parallel()
	names := []string{"plain", "with.dot", "with_dot", "with dot", "天気", "天候", "", strings.Repeat("x", 200),
		strings.Repeat("x", 201), strings.Repeat("x", 64)}
	safe := Identifiers(names, "_-", 64)
	seen := map[string]bool{}
	for _, name := range names {
		s := safe[name]
		if Identifier(s, "_-", 64) != s || s == "" || seen[s] {
			t.Errorf("%q became %q", name, s)
		}
		seen[s] = true
	}
	for _, unchanged := range []string{"plain", "with_dot", strings.Repeat("x", 64)} {
		if safe[unchanged] != unchanged {
			t.Errorf("%q became %q", unchanged, safe[unchanged])
		}
	}
	reversed := slices.Clone(names)
	slices.Reverse(reversed)
	if !maps.Equal(safe, Identifiers(reversed, "_-", 64)) {
		t.Error("the order matters")
	}
}
