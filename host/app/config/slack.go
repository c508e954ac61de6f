package config

import (
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/internal/strictyaml"
)

// partners reads tenants by the IDs of other workspaces.
func partners(dst *map[string]string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*dst = map[string]string{}
		v.Map(func(team string, v strictyaml.Value) {
			var tenant string
			strictyaml.String(&tenant)(v)
			(*dst)[team] = tenant
		})
	}
}

// slackWorkspaces reads what is below "slack.workspaces". No values of secrets are in the file.
func (r reader) slackWorkspaces(v strictyaml.Value) {
	v.List(func(_ int, v strictyaml.Value) {
		var w slackbot.Workspace
		v.Object(strictyaml.Fields{
			"name":          strictyaml.String(&w.Name),
			"tenant":        strictyaml.String(&w.Tenant),
			"botToken":      r.source(&w.BotToken),
			"appToken":      r.source(&w.AppToken),
			"signingSecret": r.source(&w.SigningSecret),
			"apiUrl":        strictyaml.String(&w.APIURL),
			"users":         strictyaml.Strings(&w.Users),
			"groups":        strictyaml.Strings(&w.Groups),
			"channels":      strictyaml.Strings(&w.Channels),
			"partners":      partners(&w.Partners),
			"approvals":     strictyaml.String(&w.Approvals),
		})
		if err := w.Check(); err != nil {
			v.Problem("%v", err)
		}
		r.config.Slack = append(r.config.Slack, w)
		r.note("slack.workspaces."+w.Name, w.BotToken.String(), v)
	})
}
