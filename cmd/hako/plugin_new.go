package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/pluginfile"
)

func (a *app) pluginNewCommand() *cobra.Command {
	language := ""
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Start a plugin of your own",
		Long: `Make the folder NAME with a plugin that builds and passes its test, without a network: a typed tool, its manifest in English and
Japanese, a test, and the PDK in vendor/.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if language != "go" {
				return usageError(cmd, fmt.Errorf("there is no PDK for %q yet: --lang go", language))
			}
			if err := pluginfile.CheckName(name); err != nil {
				return usageError(cmd, err)
			}
			if err := pluginfile.NewFolder(a.path(name), name, thisBuild().Version); err != nil {
				return err
			}
			return a.printNext(name)
		},
	}
	cmd.Flags().StringVar(&language, "lang", "go", "language: go")
	return cmd
}

func (a *app) printNext(name string) error {
	return printf(a.stdout, `Made %[1]s/. Next:

  cd %[1]s
  go test ./...
  hako plugin build .
  hako plugin approve %[1]s --plugins dist
  hako call %[2]s '{"name":"Aki"}' --plugins dist
`, name, pluginfile.ToolName(name))
}
