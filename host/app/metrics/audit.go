package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hako-run/hako/host/govern/audit"
)

var (
	auditRecordsDesc = prometheus.NewDesc("hako_audit_records_total",
		"Records that this process wrote to the audit log.", nil, nil)
	auditBytesDesc = prometheus.NewDesc("hako_audit_bytes_total",
		"Bytes that this process wrote to the audit log.", nil, nil)
	auditFailuresDesc = prometheus.NewDesc("hako_audit_failures_total",
		"Events that could not be written to the audit log.", nil, nil)
	auditUnsignedDesc = prometheus.NewDesc("hako_audit_unsigned_records",
		"Records since the last signature of the audit log.", nil, nil)
	auditSignedDesc = prometheus.NewDesc("hako_audit_signed_timestamp_seconds",
		"Unix time of the last signature of the audit log; 0 if there is none.", nil, nil)
)

// ShowAudit adds the metrics of the audit log.
func (m *Metrics) ShowAudit(log *audit.Log) { m.registry.MustRegister(&auditCollector{log}) }

// auditCollector reads the state of the audit log at every scrape.
type auditCollector struct{ log *audit.Log }

func (c *auditCollector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{auditRecordsDesc, auditBytesDesc, auditFailuresDesc, auditUnsignedDesc,
		auditSignedDesc} {
		out <- desc
	}
}

func (c *auditCollector) Collect(out chan<- prometheus.Metric) {
	s := c.log.Stats()
	counter := func(desc *prometheus.Desc, n uint64) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n))
	}
	counter(auditRecordsDesc, s.Records)
	counter(auditBytesDesc, s.Bytes)
	counter(auditFailuresDesc, s.Failures)
	signed := 0.0
	if !s.Signed.IsZero() {
		signed = float64(s.Signed.UnixMilli()) / 1000
	}
	out <- prometheus.MustNewConstMetric(auditUnsignedDesc, prometheus.GaugeValue, float64(s.Unsigned))
	out <- prometheus.MustNewConstMetric(auditSignedDesc, prometheus.GaugeValue, signed)
}
