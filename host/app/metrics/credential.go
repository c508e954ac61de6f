package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/credential"
)

// statusTime bounds the time that a scrape spends on the credentials.
const statusTime = 2 * time.Second

// CredentialRenewed counts an attempt to renew an access token.
func (m *Metrics) CredentialRenewed(r credential.Renewal) {
	m.renewals.WithLabelValues(r.Credential, r.Outcome).Inc()
}

// ShowCredentials adds the state of the credentials of b.
func (m *Metrics) ShowCredentials(b *credential.Broker) {
	m.registry.MustRegister(&credentialCollector{b})
}

var credentialsDesc = prometheus.NewDesc("hako_credentials", "Credentials of tenants, by state.",
	[]string{"credential", "state"}, nil)

// credentialCollector reads the state of the credentials at every scrape.
type credentialCollector struct{ broker *credential.Broker }

func (c *credentialCollector) Describe(out chan<- *prometheus.Desc) { out <- credentialsDesc }

func (c *credentialCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statusTime)
	defer cancel()
	list, err := c.broker.Status(ctx)
	if err != nil {
		return // reporting the error would fail the whole scrape; users of a credential get it
	}
	type labels struct{ name, state string }
	counts := map[labels]int{}
	for _, s := range list {
		for _, state := range credential.States {
			counts[labels{s.Credential, state}] += 0 // shows states without credentials as zero
		}
		counts[labels{s.Credential, s.State}]++
	}
	for l, n := range counts {
		out <- prometheus.MustNewConstMetric(credentialsDesc, prometheus.GaugeValue, float64(n), l.name, l.state)
	}
}
