package terminal

import (
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/internal/visible"
)

func saysAlways(line string) bool {
	switch strings.ToLower(line) {
	case "a", "always", "常に":
		return true
	}
	return false
}

// printAlways shows the rule that would always allow the tool to the caller of a question.
func (t *editor) printAlways(q *approval.Question) {
	for _, rule := range q.AllowRules() {
		if rule.Scope != approval.ScopeCaller {
			continue
		}
		t.printLine(yellow, "• ", fmt.Sprintf(t.words.always, q.Rule), "")
		for line := range strings.Lines(rule.YAML) {
			t.print(kindTool, row{t.styled(cyan, visible.Line(strings.TrimRight(line, "\n")))}.String())
		}
		return
	}
	// The rules for operations within a call have another form.
	t.printLine(yellow, "• ", t.words.alwaysOperation, "")
}
