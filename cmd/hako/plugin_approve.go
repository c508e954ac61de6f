package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/inspect"
	"github.com/hako-run/hako/internal/server"
)

// approveFlags are the flags of "plugin approve".
type approveFlags struct {
	mounts, http, private, credentials []string
	exec                               execFlags
	note                               string
	yes                                bool
}

func (a *app) pluginApproveCommand() *cobra.Command {
	var flags approveFlags
	cmd := &cobra.Command{
		Use:   "approve NAME|FILE",
		Short: "Show what a plugin asks for, and say yes to it",
		Long: `Show what a plugin asks for, and say yes to it. Nothing of the plugin runs for that.

The yes goes into the consents file, bound to the digest of the plugin and to what it asks for now. Folders and addresses of an
earlier yes are kept where the flags name no others.`,
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
	cmd.Flags().StringArrayVar(&flags.mounts, "mount", nil,
		"NAME=DIR[:ro], the folder for a mount that the plugin asks for")
	cmd.Flags().StringArrayVar(&flags.http, "http", nil, "NAME=URL, another address for an HTTP permission")
	cmd.Flags().StringArrayVar(&flags.private, "private", nil,
		"NAME, an HTTP permission that may reach private addresses too")
	cmd.Flags().StringArrayVar(&flags.credentials, "credential", nil,
		"NAME=CREDENTIAL, another of your credentials for an HTTP permission")
	flags.exec.add(cmd.Flags())
	cmd.Flags().StringVar(&flags.note, "note", "", "a note for those who read the consents file")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) approve(ctx context.Context, v *view, p *host.Status, flags approveFlags) error {
	if p.Manifest == nil {
		return fmt.Errorf("%s cannot be approved: %s", p.Path, p.Reason)
	}
	file, err := server.LoadConsents(ctx, v.config, v.store)
	if err != nil {
		return err
	}
	proposal := grant.Propose(file.Consents(), p.Manifest, p.Digest, audit.ProcessUser())
	proposal.Quota, proposal.Roots = v.config.MountQuota, v.host.Roots()
	choices := proposal.Choices()
	if err := a.choose(&choices, flags); err != nil {
		return err
	}
	if err := flags.exec.choose(&choices); err != nil {
		return err
	}
	if err := proposal.Settle(choices); err != nil {
		return err
	}
	grants, err := proposal.Grants(v.config.Plugin[p.Name].Config)
	if err != nil {
		return err
	}
	if err := server.CheckExec(p.Name, grants.Exec); err != nil {
		return err
	}
	for _, text := range flags.mounts {
		name, dir, _, _ := parseMount(text) // choose has parsed it
		relativeTo := ""
		if !filepath.IsAbs(dir) {
			relativeTo = v.config.Consents
		}
		proposal.Consent.SetFolder(name, choices.Mounts[name].Dir, relativeTo)
	}
	inspect.PrintProposal(a.stdout, p, proposal, grants, v.config.Locale)
	operation := &audit.Operation{Action: "plugin.approve", Target: audit.Target{Plugin: p.Name, Digest: p.Digest},
		Detail: approvalDetail(p.Version, grants)}
	if !flags.yes && !a.agrees("Approve?") {
		refused := errors.New("not approved: answer y, or give --yes where nobody can answer")
		return &exitError{exitFailed, errors.Join(refused, a.declined(ctx, v.config, operation))}
	}
	if err := a.audited(ctx, v.config, operation, func() error { return file.Approve(ctx, proposal.Consent) }); err != nil {
		return err
	}
	printf(a.stdout, "Approved; recorded in %s\n", file)
	return a.approved(ctx, v, p)
}

// approvalDetail returns the details of an approval for the audit log.
func approvalDetail(version string, grants grant.Grants) map[string]string {
	return map[string]string{"version": version, "gets": strings.Join(grants.Explain("en"), "\n")}
}

// choose puts the folders and addresses of the flags into the choices.
func (a *app) choose(c *grant.Choices, flags approveFlags) error {
	c.Note = cmp.Or(flags.note, c.Note)
	for _, text := range flags.mounts {
		name, dir, readOnly, err := parseMount(text)
		if err != nil {
			return err
		}
		path, err := a.folder(dir)
		if err != nil {
			return fmt.Errorf("--mount %s: %w", name, err)
		}
		c.Mounts[name] = grant.MountChoice{Dir: path, ReadOnly: readOnly}
	}
	for _, text := range flags.http {
		name, url, ok := strings.Cut(text, "=")
		if !ok || url == "" {
			return fmt.Errorf("--http %q: write it as NAME=URL", text)
		}
		mapping := c.HTTP[name]
		mapping.URL = url
		c.HTTP[name] = mapping
	}
	for _, name := range flags.private {
		mapping := c.HTTP[name]
		mapping.Private = true
		c.HTTP[name] = mapping
	}
	for _, text := range flags.credentials {
		name, credential, ok := strings.Cut(text, "=")
		if !ok || credential == "" {
			return fmt.Errorf("--credential %q: write it as NAME=CREDENTIAL", text)
		}
		mapping := c.HTTP[name]
		mapping.Credential = credential
		c.HTTP[name] = mapping
	}
	return nil
}

func parseMount(text string) (name, dir string, readOnly bool, err error) {
	name, dir, ok := strings.Cut(text, "=")
	if !ok || dir == "" {
		return "", "", false, fmt.Errorf("--mount %q: write it as NAME=DIR, or NAME=DIR:ro to allow reading only", text)
	}
	dir, readOnly = strings.CutSuffix(dir, ":ro")
	return name, dir, readOnly, nil
}

// folder is the whole path of a folder that was given at the command line, and of the one that a link leads to, so that
// what is approved is what is shown.
func (a *app) folder(dir string) (string, error) {
	path, err := filepath.Abs(a.path(dir))
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	return path, nil // Settle says what is wrong with it
}

// approved says what has become of the plugin and what comes next.
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
	if wanted := inspect.MissingCredentials(v.host, now.Name); len(wanted) > 0 {
		printf(a.stdout, "Next: set credentials.%s in %s, without which its tools are of no use (docs/credentials.md)\n",
			strings.Join(wanted, " or credentials."), config.FileName)
	} else if len(now.Tools) > 0 {
		printf(a.stdout, "Next: hako call %s '{...}'%s\n", now.Tools[0], inspect.FolderFlags(v.config))
	}
	return nil
}
