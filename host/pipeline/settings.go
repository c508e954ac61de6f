package pipeline

// Settings are the options that can change while the Pipeline is in use.
type Settings struct {
	// Locale is as in Options, AuditOptional and AuditFields are as in Governance.
	Locale        string
	AuditOptional bool
	AuditFields   map[string][]string
}

// Set changes the settings for later calls.
func (p *Pipeline) Set(s Settings) {
	if s.Locale == "" {
		s.Locale = "en"
	}
	p.settings.Store(&s)
}
