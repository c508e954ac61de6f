package manifest

// askedLimits are the limits, of the plugin or any of its tools, that are larger than the defaults.
func (m *Manifest) askedLimits() Limits {
	most := m.Limits
	for _, t := range m.Tools {
		most = most.Max(t.Limits)
	}
	return most.Beyond(DefaultLimits)
}

// Claims that a tool's hints make, each of which a policy may rely on to allow more.
const (
	ClaimReadOnly    = "readOnly"
	ClaimHarmless    = "notDestructive"
	ClaimIdempotent  = "idempotent"
	ClaimClosedWorld = "closedWorld"
)

// Claims are those that the hints make beyond MCP's defaults.
func (a Annotations) Claims() []string {
	var claims []string
	for _, hint := range []struct {
		value *bool
		when  bool
		claim string
	}{
		{a.ReadOnlyHint, true, ClaimReadOnly},
		{a.DestructiveHint, false, ClaimHarmless},
		{a.IdempotentHint, true, ClaimIdempotent},
		{a.OpenWorldHint, false, ClaimClosedWorld},
	} {
		if hint.value != nil && *hint.value == hint.when {
			claims = append(claims, hint.claim)
		}
	}
	return claims
}

// askedClaims returns the claims of the tools' hints, by tool.
func (m *Manifest) askedClaims() map[string][]string {
	var claims map[string][]string
	for _, t := range m.Tools {
		if list := t.Annotations.Claims(); list != nil {
			if claims == nil {
				claims = map[string][]string{}
			}
			claims[t.Name] = list
		}
	}
	return claims
}
