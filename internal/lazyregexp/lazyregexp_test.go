package lazyregexp_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/internal/lazyregexp"
)

func TestRegexp(t *testing.T) {
	t.Parallel()
	r := lazyregexp.New(`a(b+)`)
	if !r().MatchString("xabb") || r().MatchString("xa") || r().String() != `a(b+)` {
		t.Errorf("%s does not match as it should", r())
	}
	if got := r().FindStringSubmatch("xabb"); len(got) != 2 || got[1] != "bb" {
		t.Errorf("submatch %q", got)
	}
	if got := r().ReplaceAllStringFunc("abxab", strings.ToUpper); got != "ABxAB" {
		t.Errorf("replaced %q", got)
	}
}
