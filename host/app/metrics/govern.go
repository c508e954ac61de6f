package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/pipeline"
)

// waitBuckets are for durations that include people, in seconds.
var waitBuckets = []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}

// governCounters counts decisions about calls.
type governCounters struct {
	decisions, approvals, elicitations, refusals, secrets *prometheus.CounterVec
	approvalWait                                          *prometheus.HistogramVec
}

func newGovernCounters(r *registry) governCounters {
	c := governCounters{
		decisions: r.counter("hako_policy_decisions_total",
			"Decisions of the policy by action and rule.", "action", "rule"),
		approvals: r.counter("hako_approvals_total",
			"Approval requests by outcome.", "outcome"),
		elicitations: r.counter("hako_elicitations_total",
			"Elicitation requests of upstream servers by mode (form, url) and outcome.",
			"mode", "outcome"),
		approvalWait: r.histogram("hako_approval_wait_seconds",
			"Duration until approval requests were answered or ended, by outcome.", waitBuckets, "outcome"),
		refusals: r.counter("hako_quota_refusals_total",
			"Calls refused because a quota was exceeded.", "quota"),
		secrets: r.counter("hako_secrets_found_total",
			"Secrets found by rule, place (arguments, results, logs) and action (report, mask, "+
				"refuse).",
			"rule", "place", "action"),
	}
	for _, outcome := range approval.Outcomes {
		c.approvals.WithLabelValues(outcome) // starts at zero, so that the first one is an increase
	}
	return c
}

// governed counts decisions, approvals and refusals of a call.
func (m *Metrics) governed(r pipeline.Record) {
	if r.Action != "" {
		m.govern.decisions.WithLabelValues(string(r.Action), r.Rule).Inc()
	}
	for _, answer := range r.Answers {
		m.govern.approvals.WithLabelValues(answer.Outcome).Inc()
		if answer.Waited > 0 {
			m.govern.approvalWait.WithLabelValues(answer.Outcome).Observe(answer.Waited.Seconds())
		}
	}
	for _, asked := range r.Elicitations {
		m.govern.elicitations.WithLabelValues(asked.Mode, asked.Outcome).Inc()
	}
	if r.Quota != "" {
		m.govern.refusals.WithLabelValues(r.Quota).Inc()
	}
}

// ShowGovernance adds the state of the policy file and the number of pending approvals.
func (m *Metrics) ShowGovernance(live *policy.Live, approvals *approval.Queue) {
	m.registry.MustRegister(&governanceCollector{live, approvals})
}

var (
	brokenDesc = prometheus.NewDesc("hako_policy_file_broken",
		"1 while the policy file is invalid and the previous policy is in force.", nil, nil)
	waitingDesc = prometheus.NewDesc("hako_approvals_waiting",
		"Pending approval requests of all processes that share the store.", nil, nil)
)

// governanceCollector reads the policy and the approvals at every scrape.
type governanceCollector struct {
	policy    *policy.Live
	approvals *approval.Queue
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
	waiting, err := c.approvals.Waiting(ctx, nil)
	if err != nil {
		return // reporting the error would fail the whole scrape
	}
	out <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(len(waiting)))
}
