package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/slackbot"
)

func (a *app) slackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slack",
		Short: "Set up the bot in Slack",
		Args:  cobra.ArbitraryArgs,
		RunE:  group,
	}
	cmd.AddCommand(a.slackManifestCommand())
	return cmd
}

func (a *app) slackManifestCommand() *cobra.Command {
	var o slackbot.ManifestOptions
	var base, workspace string
	socket := false
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print the app manifest that makes the bot's app in Slack",
		Long: `Print the app manifest of the bot. Paste it at https://api.slack.com/apps (Create New App, From a manifest): it makes the app with
scopes, events, buttons, the slash command and the agent view. Without --url the app uses Socket Mode, for which nothing has to be
reachable from outside.`,
		Example: `  hako slack manifest
  hako slack manifest --url https://hako.example.com --workspace acme`,
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if base != "" {
				at, err := slackURL(base, workspace)
				if err != nil {
					return err
				}
				o.URL = at
			}
			text, err := slackbot.Manifest(o)
			if err != nil {
				return err
			}
			return printf(a.data(), "%s\n", block(text))
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", "hako", "what the bot is called")
	cmd.Flags().BoolVar(&socket, "socket", false, "use Socket Mode, which is the default")
	cmd.Flags().StringVar(&base, "url", "", "the https URL where Slack reaches hako serve")
	cmd.Flags().StringVar(&workspace, "workspace", "main", "the name of the workspace in hako.yaml, for --url")
	cmd.MarkFlagsMutuallyExclusive("socket", "url")
	return cmd
}

// slackURL is where a workspace's requests go, below the URL of hako serve.
func slackURL(base, workspace string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("--url %s is not an https URL such as https://hako.example.com: Slack sends to no other",
			base)
	}
	return u.JoinPath("slack", workspace).String(), nil
}
