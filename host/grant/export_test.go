package grant

// Lookup returns the consent in force for a plugin's name and digest. It does not compare permissions; Decide does.
func (f *File) Lookup(name, digest string) (Consent, bool) {
	c, ok := f.lookup(name)
	if !ok || c.Digest != digest || !c.RevokedAt.IsZero() {
		return Consent{}, false
	}
	return c, true
}
