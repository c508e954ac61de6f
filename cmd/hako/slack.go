package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/frontend/slackbot"
)

func (a *app) slackCommand() *cobra.Command {
	return groupCommand("slack", "Set up the bot in Slack",
		a.slackManifestCommand())
}

func (a *app) slackManifestCommand() *cobra.Command {
	var o slackbot.ManifestOptions
	var base, workspace string
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print the app manifest that makes the bot's app in Slack",
		Long: `Print the app manifest of the bot. Paste it at https://api.slack.com/apps (Create New App, From a
manifest): it creates the app with scopes, events, buttons, the slash command and the agent view. Without --url the app
uses Socket Mode, which needs no address that is reachable from outside.`,
		Example: `  hako slack manifest
  hako slack manifest --url https://hako.example.com --workspace acme`,
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if base != "" {
				var err error
				if o.URL, err = slackbot.RequestURL(base, workspace); err != nil {
					return fmt.Errorf("--url %w", err)
				}
			}
			text, err := slackbot.Manifest(o)
			if err != nil {
				return err
			}
			return printf(a.data(), "%s\n", block(text))
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "hako", "the name of the bot")
	cmd.Flags().Bool("socket", false, "use Socket Mode (the default)")
	cmd.Flags().StringVar(&base, "url", "", "the https URL at which Slack reaches hako serve")
	cmd.Flags().StringVar(&workspace, "workspace", "main", "the name of the workspace in hako.yaml, for --url")
	cmd.MarkFlagsMutuallyExclusive("socket", "url")
	return cmd
}
