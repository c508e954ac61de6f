package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/policy"
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

// TestListIsRemembered: the rules for a caller's list of 10,000 tools are found once.
func TestListIsRemembered(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\ndefault: allow\nrules:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "  - {name: r%d, action: deny, tools: [\"tool%d*\"], users: [u%[1]d]}\n", i, i)
		fmt.Fprintf(&text, "  - {name: s%d, action: allow, tools: [\"tool%d*\"]}\n", i, i)
	}
	p, err := policy.Parse([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	list := func(user string) func() {
		return func() {
			for i := range 10_000 {
				if !p.Visible(&policy.Call{Tool: "tool1", Plugin: strconv.Itoa(i), User: user}) {
					t.Error("a tool is hidden")
				}
			}
		}
	}
	first := testing.AllocsPerRun(1, func() { list(strconv.FormatInt(rand.Int64(), 10))() })
	again := testing.AllocsPerRun(2, list("aki"))
	t.Logf("%.1f allocations for each tool at first, %.1f again", first/10_000, again/10_000)
	if again > 0.8*first {
		t.Errorf("%.1f allocations for each tool at first, %.1f again", first/10_000, again/10_000)
	}
}
