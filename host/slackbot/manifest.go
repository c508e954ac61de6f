package slackbot

import (
	"encoding/json"

	"github.com/slack-go/slack"
)

// ManifestOptions say what an app manifest is for.
type ManifestOptions struct {
	// Name is the bot's, as people see and mention it. Empty means "hako".
	Name string
	// URL is where Slack sends what happens; empty means Socket Mode. It ends in /slack/NAME.
	URL string
}

// scopes are what the bot may do in a workspace, no more than it uses (docs.slack.dev/reference/scopes).
var scopes = []string{
	"app_mentions:read", "im:history", // what is said to it
	"channels:history", "groups:history", // what was said in a thread before
	"chat:write", "im:write", // answers, questions to approvers
	"commands", "files:read", "files:write",
	"users:read", "usergroups:read", // languages, permissions
}

// botEvents are what Slack tells it.
var botEvents = []string{"app_mention", "message.im", "agent_session_stopped"}

// Manifest is the manifest of an app for the bot, as JSON (docs.slack.dev/reference/app-manifest): pasted at
// api.slack.com/apps it makes the app, with scopes, events, buttons, the slash command and the agent view.
func Manifest(o ManifestOptions) ([]byte, error) {
	if o.Name == "" {
		o.Name = "hako"
	}
	socket := o.URL == ""
	m := &slack.Manifest{
		Metadata: slack.ManifestMetadata{MajorVersion: 2, MinorVersion: 1},
		Display:  slack.Display{Name: o.Name, Description: "Answers with sandboxed tools, and asks before it writes."},
		Features: slack.Features{
			AgentView: &slack.AgentView{AgentDescription: "Answers with sandboxed tools, and asks before it writes."},
			AppHome:   slack.AppHome{MessagesTabEnabled: true},
			BotUser:   slack.BotUser{DisplayName: o.Name, AlwaysOnline: true},
			SlashCommands: []slack.ManifestSlashCommand{{
				Command: "/hako", Description: "Tools, status, stop, usage", UsageHint: "tools | status | stop | usage",
				Url: o.URL,
			}},
		},
		OAuthConfig: slack.OAuthConfig{Scopes: slack.OAuthScopes{Bot: scopes}},
		Settings: slack.Settings{
			EventSubscriptions: &slack.EventSubscriptions{RequestUrl: o.URL, BotEvents: botEvents},
			Interactivity:      &slack.Interactivity{IsEnabled: true, RequestUrl: o.URL},
			SocketModeEnabled:  socket,
		},
	}
	return json.MarshalIndent(m, "", "  ")
}
