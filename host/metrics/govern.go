package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/policy"
)

// governed counts what was decided about calls, asked and refused. Names of rules and quotas come from the policy file.
func (m *Metrics) governed(r pipeline.Record) {
	if r.Action != "" {
		m.decisions.WithLabelValues(string(r.Action), r.Rule).Inc()
	}
	for _, outcome := range r.Answers {
		m.approvals.WithLabelValues(outcome).Inc()
	}
	if r.Quota != "" {
		m.refusals.WithLabelValues(r.Quota).Inc()
	}
}

// ShowGovernance adds how the policy file stands, and how many questions wait.
func (m *Metrics) ShowGovernance(live *policy.Live, desk *approval.Desk) {
	m.registry.MustRegister(&governanceCollector{live, desk})
}

var (
	brokenDesc  = prometheus.NewDesc("hako_policy_file_broken", "1 while the policy file is not usable and an earlier one is in force.", nil, nil)
	waitingDesc = prometheus.NewDesc("hako_approvals_waiting", "Questions that wait for an answer, of all processes over the store.", nil, nil)
)

// governanceCollector looks at the policy and the desk at every scrape.
type governanceCollector struct {
	policy *policy.Live
	desk   *approval.Desk
}

func (c *governanceCollector) Describe(out chan<- *prometheus.Desc) {
	out <- brokenDesc
	out <- waitingDesc
}

func (c *governanceCollector) Collect(out chan<- prometheus.Metric) {
	broken := 0.0
	if c.policy.Err() != nil {
		broken = 1
	}
	out <- prometheus.MustNewConstMetric(brokenDesc, prometheus.GaugeValue, broken)
	ctx, cancel := context.WithTimeout(context.Background(), statusTime)
	defer cancel()
	waiting, err := c.desk.Waiting(ctx, nil)
	if err != nil {
		return // an error here would cost the whole scrape
	}
	out <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(len(waiting)))
}
