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
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/internal/address"
)

func (a *app) devSlackCommand() *cobra.Command {
	var listen, script, scene string
	cmd := &cobra.Command{
		Use:   "slack",
		Short: "Chat with the bot in a fake Slack, in a browser",
		Long: `Serve a page that looks and works like Slack, with the bot of "hako serve" connected to a fake Slack. A
fake model answers from a script, and calls the shipped tools with the fakes of "hako dev fakes". Choose at the top of
the page which person you are: one person's request may need the approval of another. Nothing leaves the machine, and
nothing is stored.

--play plays a scene from a file or standard input (-) instead, and prints what people see. --script selects another
script for the model: docs/fakes.md describes both.`,
		Example: `  hako dev slack
  echo 'ken in #general: @hako What is the weather in Tokyo?' | hako dev slack --play -`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !address.IsLoopbackHostport(listen) {
				return fmt.Errorf("--address %s can be reached from other machines: use a loopback address", listen)
			}
			steps, err := a.devSteps(cmd, script)
			if err != nil {
				return err
			}
			return a.onFakes(cmd, steps, demo.SlackWorkspace, func(d *demo.Demo) error {
				return a.devSlack(cmd.Context(), d.Config, d.Fakes, func(ctx context.Context) error {
					if scene != "" {
						return a.playScene(ctx, d.Fakes, scene)
					}
					return demo.ServePage(ctx, d.Fakes, d.URL+"/slack", listen, func(url string) error {
						return printf(a.stderr, "The fake Slack is at\n\n  %s\n\n"+
							"Choose there which person you are. Ctrl-C stops it.\n", url)
					})
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

// devSlack runs the bot until people, who are there with it, leave.
func (a *app) devSlack(ctx context.Context, c *config.Config, f *fakes.Fakes,
	people func(context.Context) error) error {
	logger := a.logger(c, chosenLevel(c, server.Silent))
	return a.withGoverned(ctx, c, logger, func(g *server.Governance, h *host.Host) error {
		bot, err := server.NewSlackBot(ctx, c, h, g, logger)
		if err != nil {
			return err
		}
		return errors.Join(demo.RunBot(ctx, bot.Run, f, people), bot.Close())
	})
}

// playScene acts a scene and prints what people see.
func (a *app) playScene(ctx context.Context, f *fakes.Fakes, path string) error {
	in := a.stdin
	if path != "-" {
		file, err := os.Open(a.path(path))
		if err != nil {
			return err
		}
		defer file.Close()
		in = io.Reader(file)
	}
	if err := play.Scene(ctx, f.Slack, fakes.SlackBot, "hako", in, a.stdout); err != nil {
		return &exitError{exitFailed, fmt.Errorf("--play %s: %w", path, err)}
	}
	return nil
}
