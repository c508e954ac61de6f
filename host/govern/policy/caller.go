package policy

import "github.com/hako-run/hako/host/manifest"

// Caller describes who makes a call, where people describe calls: in cases and for explanations. Fields are as in Call.
type Caller struct {
	User     string   `json:"user"`
	Email    string   `json:"email"`
	Frontend string   `json:"frontend"`
	Tenant   string   `json:"tenant"`
	Token    string   `json:"token"`
	Groups   []string `json:"groups"`
	Scopes   []string `json:"scopes"`
	// Via is the plugin whose tool makes the call.
	Via string `json:"via"`
	// Toolset is the name of the toolset that the caller is offered.
	Toolset string `json:"toolset"`
}

// Call returns the caller's call of a tool, with unknown arguments.
func (c *Caller) Call(tool, plugin string, hints manifest.Annotations) *Call {
	return &Call{
		Tool: tool, Plugin: plugin, Via: c.Via, Annotations: hints,
		Frontend: c.Frontend, Tenant: c.Tenant, User: c.User, Token: c.Token, Groups: c.Groups, Scopes: c.Scopes,
		Email: c.Email, Toolset: c.Toolset,
	}
}
