package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/internal/choices"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/server"
)

func (a *app) pluginApproveCommand() *cobra.Command {
	var flags choices.Flags
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
	flags.Add(cmd.Flags())
	return cmd
}

func (a *app) approve(ctx context.Context, v *view, p *host.Status, flags choices.Flags) error {
	// The approval of other folders can repair what is broken in a plugin folder, but not a file outside of them.
	outside := !slices.ContainsFunc(v.plugins, func(s host.Status) bool { return s.Path == p.Path })
	if p.Manifest == nil || outside && p.State == host.Broken {
		return fmt.Errorf("%s cannot be approved: %s", p.Path, p.Reason)
	}
	file, err := server.LoadConsents(ctx, v.config, v.store)
	if err != nil {
		return err
	}
	proposal, grants, err := flags.Propose(file, v.config, v.host.Roots(), p, a.dir)
	if err != nil {
		return err
	}
	signers, err := inspect.LoadSigners(v.config)
	if err != nil {
		return err
	}
	inspect.PrintProposal(a.stdout, p, signers.Text(p), proposal, grants, v.config.Locale)
	operation := &audit.Operation{Action: "plugin.approve", Target: audit.Target{Plugin: p.Name, Digest: p.Digest},
		Detail: map[string]string{"version": p.Version, "gets": strings.Join(grants.Explain("en"), "\n")}}
	if !flags.Approve(proposal) && !a.agrees("Approve?") {
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
