package host

import (
	"slices"

	"github.com/hako-run/hako/host/govern/secretscan"
)

// SecretObserver is a pipeline.Observer that also observes secrets in logs of plugins. It is called concurrently.
// Secrets in calls are in the pipeline.Record.
type SecretObserver interface {
	SecretFound(f secretscan.Finding)
}

// redact masks secrets in a plugin's log line, or drops the line.
func (h *Host) redact(text string) string {
	scanner := h.options().Governance.Scanner
	if scanner == nil {
		return text
	}
	masked, found := scanner().Text(secretscan.Logs, text)
	if observer, ok := h.options().Observer.(SecretObserver); ok {
		for _, f := range found {
			observer.SecretFound(f)
		}
	}
	if slices.ContainsFunc(found, func(f secretscan.Finding) bool { return f.Action == secretscan.Refuse }) {
		return ""
	}
	return masked
}
