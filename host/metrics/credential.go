package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/credential"
)

// statusTime bounds how long a scrape looks at the credentials.
const statusTime = 2 * time.Second

func newRenewals() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hako_credential_renewals_total",
		Help: "Attempts to get a new access token, by credential and outcome.",
	}, []string{"credential", "outcome"})
}

// CredentialRenewed counts an attempt to get a new access token.
func (m *Metrics) CredentialRenewed(r credential.Renewal) {
	m.renewals.WithLabelValues(r.Credential, r.Outcome).Inc()
}

// ShowCredentials adds how the credentials of b stand. Their names come from the configuration.
func (m *Metrics) ShowCredentials(b *credential.Broker) {
	m.registry.MustRegister(&credentialCollector{b})
}

var credentialsDesc = prometheus.NewDesc("hako_credentials", "Credentials of tenants, by state.", []string{"credential", "state"}, nil)

// credentialCollector looks at the credentials at every scrape.
type credentialCollector struct{ broker *credential.Broker }

func (c *credentialCollector) Describe(out chan<- *prometheus.Desc) { out <- credentialsDesc }

func (c *credentialCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statusTime)
	defer cancel()
	list, err := c.broker.Status(ctx)
	if err != nil {
		return // an error here would cost the whole scrape; whoever uses a credential gets it
	}
	type labels struct{ name, state string }
	counts := map[labels]int{}
	for _, s := range list {
		for _, state := range credential.States {
			counts[labels{s.Credential, state}] += 0 // so that one that goes away falls to zero
		}
		counts[labels{s.Credential, s.State}]++
	}
	for l, n := range counts {
		out <- prometheus.MustNewConstMetric(credentialsDesc, prometheus.GaugeValue, float64(n), l.name, l.state)
	}
}
