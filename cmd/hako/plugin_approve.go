package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
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
	cmd.Flags().StringArrayVar(&flags.mounts, "mount", nil, "NAME=DIR[:ro], the folder for a mount that the plugin asks for")
	cmd.Flags().StringArrayVar(&flags.http, "http", nil, "NAME=URL, another address for an HTTP permission")
	cmd.Flags().StringArrayVar(&flags.private, "private", nil, "NAME, an HTTP permission that may reach private addresses too")
	cmd.Flags().StringArrayVar(&flags.credentials, "credential", nil, "NAME=CREDENTIAL, another of your credentials for an HTTP permission")
	flags.exec.add(cmd.Flags())
	cmd.Flags().StringVar(&flags.note, "note", "", "a note for those who read the consents file")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) approve(ctx context.Context, v *view, p *host.Status, flags approveFlags) error {
	if p.Manifest == nil {
		return fmt.Errorf("%s cannot be approved: %s", p.Path, p.Reason)
	}
	file, err := grant.Load(v.config.Consents)
	if err != nil {
		return err
	}
	consent, before := newConsent(p, file)
	if err := a.settle(consent, v.config.Consents, flags); err != nil {
		return err
	}
	if err := flags.exec.settle(consent); err != nil {
		return err
	}
	grants, err := grant.Resolve(p.Manifest, consent, v.config.Plugin[p.Name].Config)
	if err != nil {
		return err
	}
	if err := checkExec(p.Name, grants.Exec); err != nil {
		return err
	}
	for i, mount := range grants.Mounts {
		if !filepath.IsAbs(mount.Path) {
			grants.Mounts[i].Path = filepath.Join(filepath.Dir(v.config.Consents), mount.Path)
		}
	}
	a.present(v, p, before, grants)
	done := &deed{action: "plugin.approve", target: audit.Target{Plugin: p.Name, Digest: p.Digest}, detail: map[string]string{"version": p.Version}}
	if !flags.yes && !a.confirm() {
		return &exitError{exitFailed, errors.Join(errors.New("not approved"), a.declined(ctx, v.config, done))}
	}
	if err := a.audited(ctx, v.config, done, func() error { return file.Approve(ctx, *consent) }); err != nil {
		return err
	}
	return a.approved(ctx, v, p)
}

// newConsent is a consent to p with what an earlier one settled, and that earlier one, or nil.
func newConsent(p *host.Status, file *grant.File) (consent, before *grant.Consent) {
	consent = &grant.Consent{
		Name: p.Name, Version: p.Version, Digest: p.Digest, Asked: p.Manifest.Permissions, ApprovedBy: userName(),
		Mounts: map[string]grant.Mount{}, HTTP: map[string]grant.HTTPMapping{},
	}
	consents := file.Consents()
	i := slices.IndexFunc(consents, func(c grant.Consent) bool { return c.Name == p.Name })
	if i < 0 {
		return consent, nil
	}
	before = &consents[i]
	consent.Note = before.Note
	if p.Manifest.Permissions.Exec != nil {
		consent.Exec = before.Exec
	}
	for _, asked := range p.Manifest.Permissions.Files {
		if mount, ok := before.Mounts[asked.Mount]; ok {
			consent.Mounts[asked.Mount] = mount
		}
	}
	for _, asked := range p.Manifest.Permissions.HTTP {
		if mapping, ok := before.HTTP[asked.Name]; ok {
			if asked.Credential == "" {
				mapping.Credential = ""
			}
			consent.HTTP[asked.Name] = mapping
		}
	}
	return consent, before
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "hako plugin approve"
}

// settle puts the folders and addresses of the flags into the consent.
func (a *app) settle(c *grant.Consent, consents string, flags approveFlags) error {
	if flags.note != "" {
		c.Note = flags.note
	}
	for _, text := range flags.mounts {
		name, dir, ok := strings.Cut(text, "=")
		if !ok || dir == "" {
			return fmt.Errorf("--mount %q: write it as NAME=DIR, or NAME=DIR:ro to allow reading only", text)
		}
		dir, readOnly := strings.CutSuffix(dir, ":ro")
		path, err := a.mountPath(dir, consents)
		if err != nil {
			return fmt.Errorf("--mount %s: %w", name, err)
		}
		mount := c.Mounts[name]
		mount.Name, mount.Path, mount.Write = name, path, !readOnly && asksToWrite(c.Asked, name)
		c.Mounts[name] = mount
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

func asksToWrite(asked manifest.Permissions, mount string) bool {
	return slices.ContainsFunc(asked.Files, func(p manifest.FilePermission) bool { return p.Mount == mount && p.Write })
}

// mountPath is the folder as the consents file records it: relative to that file where it lies below it and was given as a relative
// path, so that the two can be moved together.
func (a *app) mountPath(dir, consents string) (string, error) {
	path, err := filepath.Abs(a.path(dir))
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w: make the folder, or name another", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", path)
	}
	if relative, err := filepath.Rel(filepath.Dir(consents), path); err == nil && !filepath.IsAbs(dir) && filepath.IsLocal(relative) {
		return filepath.ToSlash(relative), nil
	}
	return path, nil
}

// present shows what there is to say yes to.
func (a *app) present(v *view, p *host.Status, before *grant.Consent, grants grant.Grants) {
	locale := v.config.Locale
	m := p.Manifest
	fmt.Fprintf(a.stdout, "Plugin %s %s: %s\n%s\n%s\n\nIt offers: %s\n\nIt\n",
		m.Name, m.Version, summary(m.Description.In(locale)), p.Path, p.Digest, cmp.Or(strings.Join(offers(m), ", "), "what it lists when it is asked, once it may run"))
	for _, line := range grant.Explain(m.Permissions, locale) {
		fmt.Fprintf(a.stdout, "  - %s\n", line)
	}
	if before != nil && before.RevokedAt.IsZero() {
		a.presentChanges(before, m, locale)
	}
	if len(grants.HTTP)+len(grants.Mounts) > 0 || grants.SQL != nil || grants.Exec != nil {
		fmt.Fprintf(a.stdout, "\nWith your yes it gets\n")
		for _, line := range newPluginGrants(m.Name, grants).lines() {
			fmt.Fprintf(a.stdout, "  - %s\n", line)
		}
	}
	fmt.Fprintln(a.stdout)
}

func (a *app) presentChanges(before *grant.Consent, m *manifest.Manifest, locale string) {
	additions := grant.Additions(before.Asked, m.Permissions, locale)
	if len(additions) == 0 {
		fmt.Fprintf(a.stdout, "\nThat is no more than version %s, which you have approved.\n", before.Version)
		return
	}
	fmt.Fprintf(a.stdout, "\nThat is more than version %s, which you have approved:\n", before.Version)
	for _, line := range additions {
		fmt.Fprintf(a.stdout, "  + %s\n", line)
	}
}

// confirm asks for the yes. Whatever is no clear yes is a no.
func (a *app) confirm() bool {
	fmt.Fprint(a.stdout, "Approve? [y/N] ")
	answer, err := bufio.NewReader(io.LimitReader(a.stdin, 100)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.stdout)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

// approved says what has become of the plugin and what comes next.
func (a *app) approved(ctx context.Context, v *view, p *host.Status) error {
	fmt.Fprintf(a.stdout, "Approved; recorded in %s\n", v.config.Consents)
	if err := v.host.Load(ctx); err != nil {
		return err
	}
	v.plugins = v.host.Plugins()
	now, err := v.find(p.Name, p.Path)
	if err != nil {
		fmt.Fprintf(a.stdout, "Put %s into a plugin folder to use it.\n", p.Path)
		return nil
	}
	if now.State != host.Active {
		return fmt.Errorf("plugin %s is still not in service: it is %s: %s", now.Name, now.State, now.Reason)
	}
	if len(now.Tools) > 0 {
		fmt.Fprintf(a.stdout, "Next: hako call %s '{...}'%s\n", now.Tools[0], folders(v.config))
	}
	return nil
}
