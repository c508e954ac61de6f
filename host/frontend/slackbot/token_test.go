package slackbot_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/slackbot"
)

func TestCheckToken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ key, text, want string }{
		"bot":            {"botToken", "xoxb-1-2-secret", ""},
		"bot, rotated":   {"botToken", "xoxe.xoxb-1-secret", ""},
		"app":            {"appToken", "xapp-1-A-secret", ""},
		"signing secret": {"signingSecret", "0123abcdsecret", ""},
		"app as bot": {"botToken", "xapp-1-A-secret",
			"botToken begins with xoxb-, but what is there begins with xapp-: use the Bot User OAuth Token"},
		"user as bot":     {"botToken", "xoxp-1-secret", "begins with xoxp-"},
		"bot as app":      {"appToken", "xoxb-1-secret", "connections:write"},
		"something else":  {"botToken", "secret", "what is there does not"},
		"refresh as bot":  {"botToken", "xoxe-1-secret", "begins with xoxe-"},
		"Bearer in front": {"botToken", "Bearer xoxb-secret", "what is there does not"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := slackbot.CheckToken(test.key, test.text); err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) || (got == "") != (test.want == "") ||
				strings.Contains(got, "secret") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
