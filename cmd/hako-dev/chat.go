package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/dev/demo"
)

func (a *app) chatCommand() *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use:   "chat [-- FLAGS]",
		Short: "Chat with a fake model, without any account",
		Long: `Run "hako chat" with a fake model, which answers from a script and calls the shipped tools with the fakes of
"hako-dev fakes". This shows a complete conversation, with a policy that requires approval of writes. Nothing leaves the
machine, and nothing is stored.

--script takes another script: docs/fakes.md describes them. FLAGS are flags of hako chat. The exit code is hako's.`,
		Example: `  hako-dev chat
  echo 東京の天気は？ | hako-dev chat
  hako-dev chat -- --locale ja`,
		Args: arguments(0, true),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			steps, err := readScript(cmd, path)
			if err != nil {
				return err
			}
			d, err := demo.Start(steps, "")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			return a.runHako(cmd.Context(), a.stdin,
				append([]string{"chat", "--config", d.Config, "--temporary"}, args...)...)
		},
	}
	cmd.Flags().StringVar(&path, "script", "", "the responses of the model, in YAML")
	return cmd
}
