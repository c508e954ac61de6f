package pipeline

import "github.com/hako-run/hako/host/toolset"

// Settings are the options that can change while the Pipeline is in use.
type Settings struct {
	// Locale is as in Options, AuditOptional and AuditFields are as in Governance.
	Locale        string
	AuditOptional bool
	AuditFields   map[string][]string
	// Toolsets are the selections of the catalog that callers are offered. Nil offers everything to everyone.
	Toolsets *toolset.Config
}

// Set changes the settings for later calls.
func (p *Pipeline) Set(s Settings) {
	if s.Locale == "" {
		s.Locale = "en"
	}
	p.settings.Store(&s)
}
