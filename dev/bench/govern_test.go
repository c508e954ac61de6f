package bench

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store/drivers"
)

// govern measures the time that policy, quota and audit add to a call, and the throughput of the audit log.
func (r *results) govern(t *testing.T) {
	bare, governed := nothingPipeline(t, pipeline.Governance{}), nothingPipeline(t, governance(t, 100))
	crowded := nothingPipeline(t, governance(t, 10_000))
	user := "aki"
	call := func(p *pipeline.Pipeline) time.Duration {
		return median(t, func() error {
			_, err := p.Call(t.Context(), nothingCall(user))
			return err
		})
	}
	without := call(bare)
	r.add(t, "governance_overhead_us", us(call(governed)-without), "us")
	r.add(t, "policy_10k_rules_known_us", us(call(crowded)-without), "us")
	strangers := 0
	took := median(t, func() error {
		strangers++
		_, err := crowded.Call(t.Context(), nothingCall(fmt.Sprint("stranger ", strangers)))
		return err
	})
	r.add(t, "policy_10k_rules_us", us(took-without), "us")
	r.add(t, "audit_records_per_second", appends(t, openAudit(t, t.TempDir(), false), *duration),
		"records/s, kept over kill -9")
	r.add(t, "audit_synced_records_per_second", appends(t, openAudit(t, t.TempDir(), true), *duration),
		"records/s, on the disk")
	r.verify(t)
}

// governance returns a pipeline with a number of rules, of which the last allows the call.
func governance(t *testing.T, rules int) pipeline.Governance {
	t.Helper()
	s, err := drivers.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	approvals, err := approval.New(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	book, err := quota.NewStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse([]byte(policyOf(rules)))
	if err != nil {
		t.Fatal(err)
	}
	return pipeline.Governance{
		Policy: func() *policy.Policy { return p }, Approvals: approvals, Quotas: quota.New(p.Quotas,
			&quota.Options{Ledger: book}),
		Audit: openAudit(t, t.TempDir(), false),
	}
}

// policyOf returns a realistic policy: most rules match some tools or callers, and every hundredth matches any call and
// has a condition.
func policyOf(rules int) string {
	var b strings.Builder
	b.WriteString("version: 1\ndefault: deny\nquotas: [{name: calls, rate: 100000000, cpu: 1000h}]\nrules:\n")
	for i := range rules - 1 {
		switch {
		case i%100 == 0:
			fmt.Fprintf(&b, "  - {name: r%d, action: deny, when: 'has(arguments.text) && "+
				"arguments.text.startsWith(\"secret %d\")'}\n", i, i)
		case i%4 == 0:
			fmt.Fprintf(&b, "  - {name: r%d, action: deny, tools: [\"plugin%d/*\", \"tool_%d_*\"]}\n", i, i, i)
		case i%4 == 1:
			fmt.Fprintf(&b, "  - {name: r%d, action: deny, tools: [tool_%d], users: [u%d], when: readOnly}\n", i, i, i)
		default:
			fmt.Fprintf(&b, "  - {name: r%d, action: deny, users: [u%d], tenants: [t%d]}\n", i, i, i)
		}
	}
	b.WriteString("  - {name: last, action: allow}\n")
	return b.String()
}

func openAudit(t *testing.T, dir string, synced bool) *audit.Log {
	t.Helper()
	log, err := audit.Open(&audit.Options{Dir: dir, Sync: synced})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// auditEvent is a typical record of a call.
func auditEvent() *audit.Event {
	return &audit.Event{
		Time: time.Now(), Type: "tools/call", Outcome: "ok", DurationMS: 1.5, InputBytes: 100, OutputBytes: 1000,
		Subject: audit.Subject{Frontend: pipeline.FrontendHTTP, Tenant: "acme", User: "aki@example.com",
			Session: "0123456789ab", ClientName: "client", ClientVersion: "1.2.3"},
		Target:   audit.Target{Plugin: "files", Name: "file_read", Digest: "sha256:" + strings.Repeat("0", 64)},
		Decision: &audit.Decision{Action: "allow", Rule: "default"},
	}
}

// writers is the number of concurrent writers.
const writers = 8

// appends returns the number of records that the log can append per second.
func appends(t *testing.T, log *audit.Log, duration time.Duration) float64 {
	t.Helper()
	start := time.Now()
	n := fill(t, log, func(int64) bool { return time.Since(start) < duration })
	return float64(n) / time.Since(start).Seconds()
}

// fill appends records while more, called with the number of started ones, returns true.
func fill(t *testing.T, log *audit.Log, more func(int64) bool) int64 {
	t.Helper()
	var begun atomic.Int64
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for more(begun.Add(1)) {
				if err := log.Append(t.Context(), auditEvent()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return begun.Load() - writers
}

// verify measures the verification of a log with a million records.
func (r *results) verify(t *testing.T) {
	const million = 1_000_000
	dir := t.TempDir()
	fill(t, openAudit(t, dir, false), func(n int64) bool { return n <= million })
	start := time.Now()
	report, err := audit.Dir(dir).Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if len(report.Problems) > 0 || report.Records < million {
		t.Errorf("%+v", report)
	}
	r.add(t, "audit_verify_1m_seconds", took.Seconds(), "s")
}
