package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/frontend/terminal"
)

func (a *app) pluginNewCommand() *cobra.Command {
	language := ""
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a new plugin",
		Long: `Create the folder NAME with a plugin that builds and passes its test: a typed tool, its manifest in
English and Japanese, and a test. The PDK of go, rust, c, assemblyscript, zig, js and ts is included. In js, ts, python
and rust-component the plugin is a component. Each is built with the language's own tools.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := errors.Join(pluginfile.CheckLanguage(language), pluginfile.CheckName(name)); err != nil {
				return usageError(cmd, err)
			}
			if err := pluginfile.NewFolder(a.path(name), name, language, thisBuild().Version); err != nil {
				return err
			}
			return a.printNext(name, language)
		},
	}
	cmd.Flags().StringVar(&language, "lang", "go", "language: "+strings.Join(pluginfile.Languages(), ", "))
	return cmd
}

func (a *app) printNext(name, language string) error {
	err := printf(a.stdout, `Made %[1]s/. Next:

  cd %[1]s
  %[3]s
  hako plugin build .
  hako plugin approve %[1]s --plugins dist
  hako call %[2]s '{"name":"Aki"}' --plugins dist
`, name, pluginfile.ToolName(name), terminal.Block(strings.Join(pluginfile.FirstSteps(language), "\n  ")))
	if patience := pluginfile.Patience(language); patience != "" {
		err = errors.Join(err, printf(a.stdout, "\n%s\n", patience))
	}
	return err
}
