package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes/script"
)

// command returns the root command with all others below it.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "hako-dev",
		Short: "Try hako without accounts",
		Long: `hako-dev tries hako without accounts: it serves fakes of the services that tools use, and runs hako with them.
Nothing leaves the machine, and nothing is stored.

Start with:  hako-dev chat     to talk with a model that follows a script
        or:  hako-dev slack    to talk with the bot in a page that looks like Slack`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(usageError)
	root.PersistentFlags().StringVar(&a.hako, "hako", "", "the hako to run (default: beside hako-dev, else in PATH)")
	root.AddCommand(a.fakesCommand(), a.chatCommand(), a.slackCommand(), a.agentCommand())
	return root
}

// usageError adds to an error the command that prints help.
func usageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nSee: %s --help", err, cmd.CommandPath())
}

// arguments checks that there are count arguments, and lets more follow "--" if the command passes them to hako.
func arguments(count int, passesMore bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		given := len(args)
		if dash := cmd.ArgsLenAtDash(); dash >= 0 && passesMore {
			given = dash
		}
		if given != count {
			return usageError(cmd, fmt.Errorf("%s takes %d arguments, got %q", cmd.CommandPath(), count, args[:given]))
		}
		return nil
	}
}

// readScript reads what a model does, from a file if path names one.
func readScript(cmd *cobra.Command, path string) (*script.Script, error) {
	text := demo.Script
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	steps, err := demo.ParseScript(text)
	if err != nil {
		return nil, usageError(cmd, err)
	}
	return steps, nil
}
