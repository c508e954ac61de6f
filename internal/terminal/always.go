package terminal

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/internal/visible"
)

// allowRule returns the policy rule that would have allowed a call like the one of a question, in YAML. Strings are
// quoted as in JSON, so none of them can add a key.
func allowRule(q *approval.Question) string {
	quoted := func(text string) string {
		encoded, _ := json.Marshal(text) // text can always be encoded
		return string(encoded)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  - name: %s\n    action: allow\n    tools: [%s]\n", quoted("always allow "+q.Tool), quoted(q.Tool))
	for _, field := range []struct{ name, value string }{
		{"frontends", q.Caller.Frontend}, {"tenants", q.Caller.Tenant}, {"users", q.Caller.User},
	} {
		if field.value != "" {
			fmt.Fprintf(&b, "    %s: [%s]\n", field.name, quoted(field.value))
		}
	}
	return b.String()
}

func saysAlways(line string) bool {
	switch strings.ToLower(line) {
	case "a", "always", "常に":
		return true
	}
	return false
}

// printAlways shows how to allow calls like the one of a question for good.
func (t *editor) printAlways(q *approval.Question) {
	if q.Detail != "" { // the rules for operations within a call have another form
		t.printLine(yellow, "• ", t.words.alwaysOperation, "")
		return
	}
	t.printLine(yellow, "• ", fmt.Sprintf(t.words.always, q.Rule), "")
	for line := range strings.Lines(allowRule(q)) {
		t.print(kindTool, row{t.styled(cyan, visible.Line(strings.TrimRight(line, "\n")))}.String())
	}
}
