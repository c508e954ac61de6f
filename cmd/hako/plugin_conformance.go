package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/conformance"
	"github.com/hako-run/hako/host/app/pluginfile"
)

func (a *app) pluginConformanceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "conformance FILE",
		Short: "Test a PDK with the conformance plugin of docs/abi.md",
		Long: `Test a PDK: FILE is the plugin that docs/abi.md describes under "Conformance", written with the PDK. Its
tools, resources and prompts are called in the sandbox, with an HTTP server and a database of the test.

Exit codes: 0 all tests passed, 1 some failed, 2 usage.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			_, _, wasm, err := pluginfile.Read(a.path(args[0]), c.MaxPluginSize)
			if err != nil {
				return err
			}
			results, err := conformance.Run(cmd.Context(), wasm, c.Cache)
			if err != nil {
				return err
			}
			failed := 0
			for _, r := range results {
				if r.Err != nil {
					failed++
					printf(a.stdout, "failed: %s: %v\n", r.Name, r.Err)
				}
			}
			return failIf(failed > 0, printf(a.stdout, "%d of %d tests passed\n", len(results)-failed, len(results)))
		},
	}
}
