package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/slack/play"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/visible"
)

func (a *app) slackCommand() *cobra.Command {
	var listen, script, scene string
	cmd := &cobra.Command{
		Use:   "slack [-- FLAGS]",
		Short: "Chat with the bot in a fake Slack, in a browser",
		Long: `Serve a page that looks and works like Slack, with the bot of "hako serve" connected to a fake Slack. A
fake model answers from a script, and calls the shipped tools with the fakes of "hako-dev fakes". Choose at the top of
the page which person you are: one person's request may need the approval of another. Nothing leaves the machine, and
nothing is stored.

--play plays a scene from a file or standard input (-) instead, and prints what people see. --script selects another
script for the model: docs/fakes.md describes both. FLAGS are flags of hako serve.`,
		Example: `  hako-dev slack
  echo 'ken in #general: @hako What is the weather in Tokyo?' | hako-dev slack --play -`,
		Args: arguments(0, true),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !address.IsLoopbackHostport(listen) {
				return fmt.Errorf("--address %s can be reached from other machines: use a loopback address", listen)
			}
			steps, err := readScript(cmd, script)
			if err != nil {
				return err
			}
			d, err := demo.Start(steps, demo.SlackWorkspace+demo.Quiet)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			ctx, stop := a.untilSignal(cmd.Context())
			defer stop()
			bot := func(ctx context.Context) error { return a.serveBot(ctx, d, args) }
			return demo.RunBot(ctx, bot, d.Fakes, func(ctx context.Context) error {
				if scene != "" {
					return a.playScene(ctx, d.Fakes, scene)
				}
				return demo.ServePage(ctx, d.Fakes, d.URL+"/slack", listen, func(url string) error {
					a.report("The fake Slack is at\n\n  %s\n\nChoose there which person you are. Ctrl-C stops it.\n", url)
					return nil
				})
			})
		},
	}
	cmd.Flags().StringVar(&listen, "address", "127.0.0.1:8432", "loopback address of the page")
	cmd.Flags().StringVar(&script, "script", "", "the responses of the model, in YAML")
	cmd.Flags().StringVar(&scene, "play", "",
		"play the scene in this file (- for standard input), and print what people see")
	return cmd
}

// serveBot runs "hako serve" until ctx ends. Its standard input is a pipe, at whose end it stops: so it stops however
// this process ends.
func (a *app) serveBot(ctx context.Context, d *demo.Demo, args []string) error {
	command, err := a.hakoCommand(ctx,
		append([]string{"serve", "--config", d.Config, "--stdio", "--http", "127.0.0.1:0"}, args...)...)
	if err != nil {
		return err
	}
	command.Stdin, command.Stdout = nil, nil
	client, err := command.StdinPipe()
	if err != nil {
		return err
	}
	command.Cancel = client.Close
	err = runCommand(command, nil)
	switch {
	case ctx.Err() != nil: // it was told to end
		return nil
	case err == nil:
		err = errors.New("hako serve has ended")
	}
	return err
}

// playScene acts a scene and prints what people see.
func (a *app) playScene(ctx context.Context, f *fakes.Fakes, path string) error {
	in := a.stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = io.Reader(file)
	}
	if err := play.Scene(ctx, f.Slack, fakes.SlackBot, "hako", in, visible.NewWriter(a.stdout)); err != nil {
		return &exitError{exitFailed, fmt.Errorf("--play %s: %w", path, err)}
	}
	return nil
}
