package pipeline

import "github.com/hako-run/hako/host/govern/toolset"

// Settings are the options that can change while the Pipeline is in use.
type Settings struct {
	// Locale is used for callers without one. Empty means "en".
	Locale string
	// AuditOptional lets calls proceed that cannot be recorded.
	AuditOptional bool
	// AuditFields are the arguments to record in full, by tool name. Others are only part of the digest.
	AuditFields map[string][]string
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
