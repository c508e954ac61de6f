package slackbot

import (
	"fmt"
	"strings"
)

// tokenForms has the prefixes of Slack's tokens by the fields of a Workspace. Rotated tokens have "xoxe." in front.
var tokenForms = map[string]struct{ prefix, where string }{
	"botToken": {"xoxb-", "the Bot User OAuth Token, under Install App"},
	"appToken": {"xapp-", "an App-Level Token with connections:write, under Basic Information"},
}

// CheckToken returns an error if text cannot be the value of a workspace's key ("botToken", "appToken"; other keys
// accept anything). The error shows only the prefix, if that identifies the kind of token.
func CheckToken(key, text string) error {
	form, known := tokenForms[key]
	if !known || strings.HasPrefix(strings.TrimPrefix(text, "xoxe."), form.prefix) {
		return nil
	}
	is := "what is there does not"
	for _, kind := range []string{"xoxb-", "xoxp-", "xapp-", "xoxe-"} {
		if strings.HasPrefix(text, kind) {
			is = "what is there begins with " + kind
		}
	}
	return fmt.Errorf("%s begins with %s, but %s: use %s of your app at api.slack.com/apps", key, form.prefix, is,
		form.where)
}
