package main

import (
	_ "embed"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/dev/demo"
	modelscript "github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/host/app/config"
)

func (a *app) devChatCommand() *cobra.Command {
	var flags chatFlags
	path := ""
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Chat with a fake model, without any account",
		Long: `Chat with a fake model, which answers from a script and calls the shipped tools with the fakes of "hako
dev fakes". This shows a complete conversation, with a policy that requires approval of writes. Nothing leaves the
machine, and nothing is stored.

--script takes another script: docs/fakes.md describes them.`,
		Example: `  hako dev chat
  echo 東京の天気は？ | hako dev chat`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			steps, err := a.devSteps(cmd, path)
			if err != nil {
				return err
			}
			return a.devChat(cmd, steps, flags)
		},
	}
	cmd.Flags().StringVar(&path, "script", "", "the responses of the model, in YAML")
	flags.add(a, cmd)
	return cmd
}

// devSteps reads what the model answers, from a file if path names one.
func (a *app) devSteps(cmd *cobra.Command, path string) (*modelscript.Script, error) {
	text := demo.Script
	if path != "" {
		data, err := os.ReadFile(a.path(path))
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

// devChat talks with a model that follows the script.
func (a *app) devChat(cmd *cobra.Command, steps *modelscript.Script, flags chatFlags) error {
	flags.fleeting = true
	return a.onFakes(cmd, steps, "", func(d *demo.Demo) error { return a.chat(cmd.Context(), d.Config, flags) })
}

// onFakes calls use with the fakes, whose models follow the script, and a configuration for them to which more is
// added.
func (a *app) onFakes(
	cmd *cobra.Command, steps *modelscript.Script, more string, use func(*demo.Demo) error,
) (err error) {
	d, err := demo.Start(steps, more, config.Source{Dir: a.dir, Flags: cmd.Flags()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return use(d)
}
