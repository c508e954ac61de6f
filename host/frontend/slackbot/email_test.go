package slackbot_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/host/frontend/slackbot"
)

// TestCallersAddress checks that the pipeline learns the confirmed address of a member, where the app may read it, and
// nobody else does.
func TestCallersAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		user   slack.User
		scopes []string
		want   string
	}{
		"a member": {slack.User{ID: ken, Email: "Ken@example.com"}, []string{"users:read.email"},
			"Ken@example.com"},
		"without the scope": {slack.User{ID: ken, Email: "ken@example.com"}, nil, ""},
		"not confirmed": {slack.User{ID: ken, Email: "ken@example.com", Unconfirmed: true},
			[]string{"users:read.email"}, ""},
		"of a partner workspace": {slack.User{ID: guest, Email: "ken@example.com", Team: "T0PARTNER"},
			[]string{"users:read.email"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.slack.AddToken(botToken, robot,
				append(test.scopes, "chat:write", "im:write", "users:read", "usergroups:read", "channels:history")...)
			w.slack.AddUser(test.user)
			w.slack.AddChannel(shared, "shared", robot, test.user.ID)
			turns := w.startEchoing(func(o *slackbot.Options) { o.Workspaces[0].Partners = map[string]string{"T0PARTNER": "guests"} })
			w.tell(slack.Said{User: test.user.ID, Channel: shared, Text: "<@" + robot + "> how many hours?"})
			m := w.answered("You said: how many hours?")
			turn := <-turns
			if turn.Caller.Email != test.want {
				t.Errorf("address %q, want %q", turn.Caller.Email, test.want)
			}
			caller, err := json.Marshal(turn.Caller)
			if err != nil {
				t.Fatal(err)
			}
			for where, text := range map[string]string{"the log": w.log.String(), "the answer": m.Blocks + m.Text,
				"the caller as JSON": string(caller), "the turn": turn.Text} {
				if strings.Contains(strings.ToLower(text), "@example.com") {
					t.Errorf("the address is in %s: %s", where, text)
				}
			}
		})
	}
}
