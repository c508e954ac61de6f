package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/manifest"
)

func (a *app) pluginCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|DIR",
		Short: "Review a plugin's manifest and code",
		Long: `Review a plugin file, or all in a folder: handlers without an entry in the manifest and the reverse,
imports without a permission, schemas, permissions that are too broad, missing texts. The plugin lists its handlers
in a sandbox without any grants.

Exit codes: 0 no errors (there may be warnings), 1 errors, 2 usage.`,
		Args: arguments(1, 1),
		RunE: a.withConfig(func(cmd *cobra.Command, c *config.Config, args []string) error {
			files, err := pluginfile.WasmFiles(a.path(args[0]))
			if err != nil {
				return err
			}
			ok := true
			for _, file := range files {
				findings, err := pluginfile.Review(cmd.Context(), file, c.Cache, c.MaxPluginSize)
				ok = printReview(a.stdout, file, findings, err) && ok
			}
			return failIf(!ok, nil)
		}),
	}
}

// printReview prints what the review of a plugin file found, or why there was none, and reports whether it is free of
// errors.
func printReview(out io.Writer, file string, findings []manifest.Finding, err error) bool {
	if err != nil {
		findings = []manifest.Finding{{Severity: manifest.SeverityError, Message: err.Error()}}
	}
	ok := true
	for _, finding := range findings {
		ok = ok && finding.Severity != manifest.SeverityError
		for line := range strings.SplitSeq(finding.String(), "\n") {
			_ = printf(out, "%s: %s\n", file, line)
		}
	}
	if len(findings) == 0 {
		_ = printf(out, "%s: no problems found\n", file)
	}
	return ok
}
