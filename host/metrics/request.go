package metrics

import (
	"cmp"
	"fmt"

	"github.com/hako-run/hako/host"
	execbroker "github.com/hako-run/hako/host/broker/exec"
	httpbroker "github.com/hako-run/hako/host/broker/http"
	sqlbroker "github.com/hako-run/hako/host/broker/sql"
)

var _ host.RequestObserver = (*Metrics)(nil)

// RequestEnded counts an HTTP request of a plugin.
func (m *Metrics) RequestEnded(plugin string, o httpbroker.Observation) {
	m.requests.WithLabelValues(plugin, o.Rule, requestOutcome(o), o.Source).Inc()
	m.requestDuration.WithLabelValues(plugin, o.Rule).Observe(o.Duration.Seconds())
}

// requestOutcome is "2xx" and its like, or the code of what the guest got as an error.
func requestOutcome(o httpbroker.Observation) string {
	switch {
	case o.Code != "":
		return o.Code
	case o.Status >= 100 && o.Status <= 599:
		return fmt.Sprintf("%dxx", o.Status/100)
	}
	return "other"
}

var _ host.StatementObserver = (*Metrics)(nil)

// statementBuckets are for what mostly takes less than a millisecond, in seconds.
var statementBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30}

// StatementEnded counts a use of a plugin's database.
func (m *Metrics) StatementEnded(plugin string, o sqlbroker.Observation) {
	m.statements.WithLabelValues(plugin, o.Function, cmp.Or(o.Code, "ok")).Inc()
	m.statementDuration.WithLabelValues(plugin, o.Function).Observe(o.Duration.Seconds())
}

var _ host.CommandObserver = (*Metrics)(nil)

// commandBuckets are for what takes from the start of a process to minutes, in seconds.
var commandBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// CommandEnded counts a command of a plugin.
func (m *Metrics) CommandEnded(plugin string, o execbroker.Observation) {
	m.commands.WithLabelValues(plugin, o.Program, o.Outcome).Inc()
	m.commandDuration.WithLabelValues(plugin, o.Program).Observe(o.Duration.Seconds())
}
