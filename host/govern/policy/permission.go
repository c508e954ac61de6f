package policy

// Permissions of a tool, for its callers.
const (
	permissionAllow   = "allow"
	permissionDeny    = "deny"
	permissionConfirm = "requires_confirmation"
	permissionDepends = "depends" // on the arguments
)

// Permission names an action as tool_permissions does.
func (a Action) Permission() string {
	return map[Action]string{Allow: permissionAllow, Ask: permissionConfirm, Deny: permissionDeny}[a]
}

// ToolPermission reports whether a caller may call a tool.
type ToolPermission struct {
	Tool   string `json:"tool"`
	Plugin string `json:"plugin"`
	// Permission is one of the constants above.
	Permission string              `json:"permission"`
	Prospects  []ExplainedDecision `json:"prospects"`
}

// PermissionOf returns what happens to calls like c, whose arguments do not matter. language is the language of
// reasons.
func (p *Policy) PermissionOf(c *Call, language string) ToolPermission {
	t := ToolPermission{Tool: c.Tool, Plugin: c.Plugin}
	for _, prospect := range p.Prospects(c) {
		t.Prospects = append(t.Prospects, prospect.Explain(language))
		if word := prospect.Action.Permission(); t.Permission == "" || t.Permission == word {
			t.Permission = word
		} else {
			t.Permission = permissionDepends
		}
	}
	return t
}
