package slackbot

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/slack-go/slack"
)

// ManifestOptions configures Manifest.
type ManifestOptions struct {
	// Name is the bot's name in Slack. Empty means "hako".
	Name string
	// URL is the request URL, which ends in /slack/NAME. Empty means Socket Mode.
	URL string
}

// scopes are the OAuth scopes of the bot (docs.slack.dev/reference/scopes), none of which is unused.
var scopes = []string{
	"app_mentions:read", "im:history", // messages to the bot
	"channels:history", "groups:history", // earlier messages of a thread
	"chat:write", "im:write", // answers, questions to approvers
	"commands", "files:read", "files:write",
	"users:read", "usergroups:read", // languages, permissions
}

// botEvents are the events that the bot subscribes to.
var botEvents = []string{"app_mention", "message.im", "agent_session_stopped"}

// Manifest returns an app manifest for the bot as JSON (docs.slack.dev/reference/app-manifest). Pasted at
// api.slack.com/apps, it creates the app with scopes, events, buttons, the slash command and the agent view.
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

// RequestURL is the path to which Slack sends a workspace's requests, below the URL of hako serve.
func RequestURL(base, workspace string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%s is not an https URL such as https://hako.example.com: Slack sends to no other", base)
	}
	return u.JoinPath("slack", workspace).String(), nil
}
