package main

import (
	"errors"
	"io"
	"os"

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
			if path == "" && isTerminal(a.stdin) {
				a.report("No model answers here: a script does, with tools and recordings of this machine. It knows weather and overtime, for example:\n" +
					"  東京の天気は？\n  What is the weather in Osaka tomorrow?\n  5月の残業を教えて\n\n")
			}
			return a.runHako(cmd.Context(), a.stdin,
				append([]string{"chat", "--config", d.Config, "--temporary"}, args...)...)
		},
	}
	cmd.Flags().StringVar(&path, "script", "", "the responses of the model, in YAML")
	return cmd
}

// isTerminal reports whether somebody probably types at stdin.
func isTerminal(stdin io.Reader) bool {
	file, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
