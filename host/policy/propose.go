package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/internal/wholefile"
)

// maxProposals bounds the file of proposals, in bytes.
const maxProposals = 1 << 20

// proposalsHead starts the file of proposals.
const proposalsHead = "# Rules that were proposed. None of them is in force: review them, and move them to the policy.\nversion: 1\nrules:\n"

// ProposalsPath returns the path of the proposals for the policy at path: hako.policy.proposed.yaml for hako.policy.yaml.
func ProposalsPath(path string) string {
	for _, suffix := range []string{".yaml", ".yml"} {
		if base, ok := strings.CutSuffix(path, suffix); ok {
			return base + ".proposed" + suffix
		}
	}
	return path + ".proposed"
}

// Propose appends a rule, an item of the list "rules", to the proposals at path, under a comment. It fails for a rule with
// the name of another one there, and for a file that is not a policy. Calls must not run at the same time.
func Propose(path, rule, comment string) error {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = []byte(proposalsHead)
	case err != nil:
		return err
	}
	text = append(text, "  # "+visible.Line(comment)+"\n"+rule...)
	if len(text) > maxProposals {
		return fmt.Errorf("%s would be larger than 1 MiB: review the rules in it", path)
	}
	if _, err := Parse(text); err != nil {
		return fmt.Errorf("%s with the new rule: %w", path, err)
	}
	return wholefile.Write(path, text)
}
