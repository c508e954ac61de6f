package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

func (a *app) pluginApproveCommand() *cobra.Command {
	var flags approveFlags
	cmd := &cobra.Command{
		Use:   "approve NAME|FILE",
		Short: "Show what a plugin asks for, and approve it",
		Long: `Show what a plugin asks for, and approve it, without running the plugin.

The approval is written to the consents file, bound to the plugin's digest and to its current permissions. Folders and
addresses of an earlier approval are kept unless flags name others.`,
		Example: `  hako plugin approve files --mount workspace=./workspace
  hako plugin approve files --mount workspace=/srv/docs:ro
  hako plugin approve shell --mount workspace=./workspace --program git --program ls
  hako plugin approve weather --http jma=https://mirror.example.com/bosai/`,
		Args:              arguments(1, 1),
		ValidArgsFunction: a.completePlugins(host.Pending, host.Revoked),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPlugins(cmd, func(v *view) error {
				status, err := a.locate(v, args[0])
				if err != nil {
					return err
				}
				return a.approve(cmd.Context(), v, status, flags)
			})
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

func (a *app) approve(ctx context.Context, v *view, p *host.Status, flags approveFlags) error {
	// The approval of other folders can repair what is broken in a plugin folder, but not a file outside of them.
	outside := !slices.ContainsFunc(v.plugins, func(s host.Status) bool { return s.Path == p.Path })
	if p.Manifest == nil || outside && p.State == host.Broken {
		return fmt.Errorf("%s cannot be approved: %s", p.Path, p.Reason)
	}
	file, err := server.LoadConsents(ctx, v.config, v.store)
	if err != nil {
		return err
	}
	proposal, grants, err := flags.propose(file, v.config, v.host.Roots(), p, a.dir)
	if err != nil {
		return err
	}
	signers, err := inspect.LoadSigners(v.config)
	if err != nil {
		return err
	}
	printProposal(a.stdout, p, signers.Text(p), proposal, grants, v.config.Locale)
	operation := &audit.Operation{Action: "plugin.approve", Target: audit.Target{Plugin: p.Name, Digest: p.Digest},
		Detail: map[string]string{"version": p.Version, "gets": strings.Join(grants.Explain("en"), "\n")}}
	if !flags.approves(proposal) && !a.agrees("Approve?") {
		refused := errors.New("not approved: answer y, or use --yes if nobody can answer")
		return &exitError{exitFailed, errors.Join(refused,
			server.RecordRefusal(ctx, v.config, a.logger(v.config, slog.LevelWarn), operation))}
	}
	approve := func() error { return file.Approve(ctx, proposal.Consent) }
	if err := a.audited(ctx, v.config, operation, approve); err != nil {
		return err
	}
	printf(a.stdout, "Approved; recorded in %s\n", file)
	return a.approved(ctx, v, p)
}

// approved prints the state of the plugin after its approval and the next step.
func (a *app) approved(ctx context.Context, v *view, p *host.Status) error {
	if err := v.host.Load(ctx); err != nil {
		return err
	}
	v.plugins = v.host.Plugins()
	now, err := inspect.Find(v.plugins, p.Name, p.Path)
	if err != nil {
		printf(a.stdout, "Put %s into a plugin folder to use it.\n", p.Path)
		return nil
	}
	if now.State != host.Active {
		return fmt.Errorf("plugin %s is still not in service: it is %s: %s", now.Name, now.State, now.Reason)
	}
	if next := inspect.NextStep(v.config, v.host, now); next != "" {
		printf(a.stdout, "Next: %s\n", next)
	}
	return nil
}

// printProposal prints for an operator what approving a plugin means: what it offers and asks for, what is new since
// the last approval, and what it gets. signer names who signed it.
func printProposal(out io.Writer, p *host.Status, signer string, proposal *grant.Proposal, grants grant.Grants,
	locale string) {
	m := p.Manifest
	printf(out, "Plugin %s %s: %s\n%s\n%s\n",
		m.Name, m.Version, terminal.Summary(m.Description.In(locale)), p.Path, p.Digest)
	if signer != "" {
		printf(out, "%s\n", signer)
	}
	printLeftOut(out, m)
	printf(out, "\nIt offers: %s\n\nIt\n",
		cmp.Or(strings.Join(inspect.Offers(m), ", "), "the tools that it lists once it may run"))
	printList(out, "  - %s\n", grant.Explain(m.Permissions, locale))
	if proposal.Updates() {
		printAdditions(out, proposal.Before, m, locale)
	}
	if len(grants.HTTP)+len(grants.Mounts)+len(grants.Tools) > 0 || grants.SQL != nil || grants.Exec != nil {
		printf(out, "\nIf you approve it, it gets\n")
		printList(out, "  - %s\n", grants.Explain(locale))
	}
	fmt.Fprintln(out)
}

// printLeftOut warns of what a foreign policy asks for and the drafted manifest does not.
func printLeftOut(out io.Writer, m *manifest.Manifest) {
	for _, text := range m.LeftOut() {
		printf(out, "Warning: left out: %s\n", text)
	}
}

// printAdditions prints what a plugin asks for beyond what was approved before.
func printAdditions(out io.Writer, before *grant.Consent, m *manifest.Manifest, locale string) {
	additions := grant.Additions(before.Asked, m.Permissions, locale)
	if len(additions) == 0 {
		printf(out, "\nThat is no more than version %s, which you have approved.\n", before.Version)
		return
	}
	printf(out, "\nThat is more than version %s, which you have approved:\n", before.Version)
	printList(out, "  + %s\n", additions)
}

func printList(out io.Writer, format string, lines []string) {
	for _, line := range lines {
		printf(out, format, line)
	}
}
