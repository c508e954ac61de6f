package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/slackbot"
)

// secrets reads every secret whose place the configuration names.
func secrets(ctx context.Context, c *config.Config) (findings []Finding) {
	for _, s := range c.Secrets {
		text, err := s.Source.Read(ctx)
		if err == nil && strings.HasPrefix(s.Key, "slack.workspaces[") {
			err = slackbot.CheckToken(s.Key[strings.LastIndex(s.Key, ".")+1:], text)
		}
		if err != nil {
			findings = append(findings, Finding{LevelError, "secret " + s.Key, err.Error(),
				"store the secret there, or name another place"})
		}
	}
	if len(findings) == 0 && len(c.Secrets) > 0 {
		findings = append(findings, Finding{LevelOK, "secrets", fmt.Sprintf("%d, each where the configuration says",
			len(c.Secrets)), ""})
	}
	return findings
}

// proxy warns about a proxy in the environment, which hako ignores.
func proxy(c *config.Config, lookup func(string) (string, bool)) []Finding {
	if c.Proxy != "" {
		return nil
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if value, _ := lookup(name); value != "" {
			return []Finding{{LevelWarning, "proxy", "hako does not use the proxy in " + name,
				"if others can only be reached through it, set outbound.proxy or HAKO_OUTBOUND_PROXY"}}
		}
	}
	return nil
}
