package judge

import "testing"

// TestExplain: whoever is asked reads the reason of a default rule in Japanese too.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, rule := range defaults {
		if text := Explain(rule.Reason); rule.Action == Ask && text["ja"] == "" {
			t.Errorf("the rule %q asks without a Japanese reason: %s", rule.Name, rule.Reason)
		}
	}
	if text := Explain("公開前に確認"); text.In("ja") != "公開前に確認" || Explain("") != nil {
		t.Errorf("an operator's own reason: %v", text)
	}
}
