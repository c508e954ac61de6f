package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/internal/wholefile"
)

// maxProposals bounds the file of proposals, in bytes.
const maxProposals = 1 << 20

// proposalsHead starts the file of proposals.
const proposalsHead = "# Rules that were proposed. None of them is in force: review them, and move them to the policy.\nversion: 1\nrules:\n"

// ProposalsPath returns the path of the proposals for the policy at path: hako.policy.proposed.yaml for
// hako.policy.yaml. It is empty if path is.
func ProposalsPath(path string) string {
	if path == "" {
		return ""
	}
	for _, suffix := range []string{".yaml", ".yml"} {
		if base, ok := strings.CutSuffix(path, suffix); ok {
			return base + ".proposed" + suffix
		}
	}
	return path + ".proposed"
}

// Propose appends a rule, an item of the list "rules", to the proposals at path, under a comment. It fails for a rule
// with the name of another one there, and for a file that is not a policy. Processes that share the file can call it at
// the same time.
func Propose(ctx context.Context, path, rule, comment string) error {
	return wholefile.Update(ctx, path, 0o600, func(text []byte) ([]byte, error) {
		if text == nil {
			text = []byte(proposalsHead)
		}
		text = append(text, "  # "+visible.Line(comment)+"\n"+rule...)
		if len(text) > maxProposals {
			return nil, fmt.Errorf("%s would be larger than 1 MiB: review its rules first", path)
		}
		if _, err := Parse(text); err != nil {
			return nil, fmt.Errorf("%s with the new rule: %w", path, err)
		}
		return text, nil
	})
}
