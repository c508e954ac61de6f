package pipeline

// Settings are those of the Options that can change while calls are made.
type Settings struct {
	// Locale is as in Options, AuditOptional and AuditFields are as in Governance.
	Locale        string
	AuditOptional bool
	AuditFields   map[string][]string
}

// Set puts other settings in force, for what happens from now on.
func (p *Pipeline) Set(s Settings) {
	if s.Locale == "" {
		s.Locale = "en"
	}
	p.settings.Store(&s)
}
