package inspect

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// PrintProposal prints for an operator what approving a plugin means: what it offers and asks for, what is new since
// the last approval, and what it gets. signer names who signed it.
func PrintProposal(out io.Writer, p *host.Status, signer string, proposal *grant.Proposal, grants grant.Grants,
	locale string) {
	m := p.Manifest
	_ = terminal.Printf(out, "Plugin %s %s: %s\n%s\n%s\n",
		m.Name, m.Version, terminal.Summary(m.Description.In(locale)), p.Path, p.Digest)
	if signer != "" {
		_ = terminal.Printf(out, "%s\n", signer)
	}
	_ = terminal.Printf(out, "\nIt offers: %s\n\nIt\n",
		cmp.Or(strings.Join(offersOf(m), ", "), "the tools that it lists once it may run"))
	printList(out, "  - %s\n", grant.Explain(m.Permissions, locale))
	if proposal.Updates() {
		printAdditions(out, proposal.Before, m, locale)
	}
	if len(grants.HTTP)+len(grants.Mounts) > 0 || grants.SQL != nil || grants.Exec != nil {
		_ = terminal.Printf(out, "\nIf you approve it, it gets\n")
		printList(out, "  - %s\n", grants.Explain(locale))
	}
	fmt.Fprintln(out)
}

// printAdditions prints what a plugin asks for beyond what was approved before.
func printAdditions(out io.Writer, before *grant.Consent, m *manifest.Manifest, locale string) {
	additions := grant.Additions(before.Asked, m.Permissions, locale)
	if len(additions) == 0 {
		_ = terminal.Printf(out, "\nThat is no more than version %s, which you have approved.\n", before.Version)
		return
	}
	_ = terminal.Printf(out, "\nThat is more than version %s, which you have approved:\n", before.Version)
	printList(out, "  + %s\n", additions)
}

func printList(out io.Writer, format string, lines []string) {
	for _, line := range lines {
		_ = terminal.Printf(out, format, line)
	}
}
