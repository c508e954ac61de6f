package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/policy"
)

// conditionalPolicy returns a policy with n rules for all calls. The verb %d in when becomes the number of the rule.
func conditionalPolicy(n int, when string) string {
	var b strings.Builder
	b.WriteString("version: 1\ndefault: allow\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: r%d, action: deny, when: '%s'}\n", i, strings.ReplaceAll(when, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// TestVisibleEvaluatesNoArguments: conditions on nothing but the arguments cost nothing when tools are listed, because
// the arguments are unknown then.
func TestVisibleEvaluatesNoArguments(t *testing.T) {
	allocations := func(rules int) float64 {
		p, err := policy.Parse([]byte(conditionalPolicy(rules, `has(arguments.text) && arguments.text == "secret %d"`)))
		if err != nil {
			t.Fatal(err)
		}
		c := &policy.Call{Tool: "echo", Plugin: "echo", User: "aki"}
		return testing.AllocsPerRun(10, func() {
			if !p.Visible(c) {
				t.Error("the tool is hidden, though its arguments decide")
			}
		})
	}
	if few, many := allocations(1), allocations(500); many > few {
		t.Errorf("%.0f allocations with one rule, %.0f with 500", few, many)
	}
}

// TestRepeatedConditions: a condition that many rules have is compiled once.
func TestRepeatedConditions(t *testing.T) {
	allocations := func(when string) float64 {
		text := []byte(conditionalPolicy(300, when))
		return testing.AllocsPerRun(1, func() {
			if _, err := policy.Parse(text); err != nil {
				t.Fatal(err)
			}
		})
	}
	if same, different := allocations(`user == "aki"`), allocations(`user == "aki%d"`); same > different/2 {
		t.Errorf("%.0f allocations for 300 equal conditions, %.0f for different ones", same, different)
	}
}
