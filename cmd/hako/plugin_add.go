package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/install"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/store"
)

// addFlags are those of "hako plugin add".
type addFlags struct {
	digest  string
	replace bool
}

func (a *app) pluginAddCommand() *cobra.Command {
	var flags addFlags
	cmd := &cobra.Command{
		Use:   "add FILE|URL|oci://REFERENCE|NAME",
		Short: "Add a plugin to the plugin folder",
		Long: `Add a plugin from a file, an https address or a registry to the first plugin folder, under the name in
its manifest. The file is checked first, without running it: the plugin is pending until you approve it.

--digest ensures that the file is the one its author published; a registry reference can end in the digest of its
manifest. Your approval is bound to the file's digest in any case. NAME is a plugin in an index (hako plugin search).`,
		Example: `  hako plugin add https://example.com/weather.wasm --digest sha256:463504be…
  hako plugin add oci://registry.example.com/tools/weather:1.4`,
		Args: arguments(1, 1),
		RunE: a.withFolder(func(cmd *cobra.Command, c *config.Config, folder *install.Folder, args []string) error {
			return a.add(cmd.Context(), c, folder, args[0], flags)
		}),
	}
	cmd.Flags().StringVar(&flags.digest, "digest", "", "the digest that the file must have, sha256:HEX")
	cmd.Flags().BoolVar(&flags.replace, "replace", false,
		"replace a file of that name; a version in service stays until you approve the new one")
	return cmd
}

// withFolder is withConfig for a command that works on the first plugin folder.
func (a *app) withFolder(do func(*cobra.Command, *config.Config, *install.Folder, []string) error) func(*cobra.Command,
	[]string) error {
	return a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
		folder, err := install.Open(c)
		if err != nil {
			return err
		}
		return do(cmd, c, folder, args)
	})
}

// add adds a plugin from a file, an address or an index.
func (a *app) add(ctx context.Context, c *config.Config, folder *install.Folder, from string, flags addFlags) error {
	p, err := folder.Get(ctx, from, a.path(from), flags.digest)
	if err != nil {
		return err
	}
	if p.Exists() && !flags.replace {
		return fmt.Errorf("%s already exists: --replace replaces it", p.Path)
	}
	return a.place(ctx, c, "plugin.add", p)
}

// place puts a plugin into its folder, recorded as action, and prints the next step.
func (a *app) place(ctx context.Context, c *config.Config, action string, p *install.Addition) error {
	m := p.Manifest
	if err := printChanges(a.stdout, p, c.Locale); err != nil {
		return err
	}
	operation := &audit.Operation{Action: action, Target: audit.Target{Plugin: m.Name, Digest: p.Digest},
		Detail: map[string]string{"version": m.Version, "from": p.Entry.From}}
	if err := a.audited(ctx, c, operation, func() error { return p.Place(ctx) }); err != nil {
		return err
	}
	printf(a.stdout, "%s %s is in %s\n%s\n%s\n", m.Name, m.Version, p.Path, p.Digest, p.Signer())
	printLeftOut(a.stdout, m)
	return a.withShared(ctx, c, c.OpenStore, func(s *store.Store) error {
		consents, err := server.LoadConsents(ctx, c, s)
		if err != nil {
			return err
		}
		if consents.Decide(m, p.Digest, grant.UpdateRule(c.Updates)).State == grant.Approved {
			return printf(a.stdout, "It is approved.\n")
		}
		return printf(a.stdout, "Next: hako plugin approve %s%s\n", m.Name, inspect.FolderFlags(c))
	})
}

// printChanges prints how a differs from the version that is in the folder now.
func printChanges(out io.Writer, a *install.Addition, locale string) error {
	before, lines, err := a.Changes(locale)
	if before == "" {
		return err
	}
	printf(out, "%s %s instead of %s:\n", a.Manifest.Name, a.Manifest.Version, before)
	for _, line := range lines {
		printf(out, "  %s\n", line)
	}
	return nil
}
