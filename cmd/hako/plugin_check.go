package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/pluginfile"
)

func (a *app) pluginCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|DIR",
		Short: "Review a plugin as a careful person would",
		Long: `Review a plugin file, or all in a folder: handlers without an entry in the manifest and the reverse, imports without a permission,
schemas, permissions that are too broad, texts that are missing. To learn its handlers the plugin is asked for them in a sandbox with
nothing granted.

Exit codes: 0 no errors (there may be warnings), 1 errors, 2 usage.`,
		Args: arguments(1, 1),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			files, err := pluginfile.WasmFiles(a.path(args[0]))
			if err != nil {
				return err
			}
			ok := true
			for _, file := range files {
				ok = a.check(cmd.Context(), file, c.Cache, c.MaxPluginSize) && ok
			}
			return failIf(!ok, nil)
		}),
	}
}

// check prints what there is to say about a plugin file, and reports whether it is free of errors.
func (a *app) check(ctx context.Context, file, cache string, maxSize int64) bool {
	findings, err := pluginfile.Review(ctx, file, cache, maxSize)
	if err != nil {
		findings = []manifest.Finding{{Severity: manifest.SeverityError, Message: err.Error()}}
	}
	ok := true
	for _, finding := range findings {
		ok = ok && finding.Severity != manifest.SeverityError
		for line := range strings.SplitSeq(finding.String(), "\n") {
			printf(a.stdout, "%s: %s\n", file, line)
		}
	}
	if len(findings) == 0 {
		printf(a.stdout, "%s: nothing to object to\n", file)
	}
	return ok
}
