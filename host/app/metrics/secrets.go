package metrics

import (
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/govern/secretscan"
)

var _ host.SecretObserver = (*Metrics)(nil)

// SecretFound counts a secret found in arguments, a result or a log line.
func (m *Metrics) SecretFound(f secretscan.Finding) {
	m.govern.secrets.WithLabelValues(f.Rule, string(f.Place), string(f.Action)).Inc()
}
