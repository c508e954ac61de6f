package secretscan

import (
	"regexp"
	"testing"
)

// TestRules: every rule that came with the module can be used here, and one whose form changes is noticed.
func TestRules(t *testing.T) {
	t.Parallel()
	set := loaded()
	if n := len(set.rules); n < 200 {
		t.Errorf("%d rules", n)
	}
	for _, r := range set.rules {
		if e := r.expression(); r.SecretGroup > e.NumSubexp() {
			t.Errorf("%s: no group %d", r.ID, r.SecretGroup)
		}
		for _, a := range r.Allowlists {
			a.expressions()
			a.stop()
		}
		for _, k := range r.Keywords {
			if short := regexp.MustCompile(`^(jwt|azure-ad-client-secret|vault-service-token|twilio-api-key)$`); len(
				k) <= shortKeyword && !short.MatchString(r.ID) {
				t.Errorf("%s has the keyword %q: see that the rule still finds what it should, behind continues", r.ID,
					k)
			}
		}
	}
}

// BenchmarkLoad is what the first text costs.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load()
	}
}
