package config

import (
	"slices"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Console is the page for people who operate the host.
type Console struct {
	// Enabled counts where it is set; else the console is on where only this machine reaches it, or logins are
	// configured.
	Enabled bool
	// Address is one of its own. Empty means that of MCP.
	Address string
	// URL is its address for people, where that is not Address.
	URL      string
	Sessions console.Sessions
	Tokens   []bearer.Token
	// OIDC counts where it has an issuer.
	OIDC console.OIDC
}

func (c *Console) table() []setting {
	return []setting{
		{key: "console.enabled", value: &c.Enabled},
		{key: "console.address", value: &c.Address},
		{key: "console.url", value: &c.URL},
		{key: "console.sessions.idle", value: &c.Sessions.Idle, fallback: "1h"},
		{key: "console.sessions.lifetime", value: &c.Sessions.Lifetime, fallback: "12h"},
		{key: "console.oidc.name", value: &c.OIDC.Name},
		{key: "console.oidc.issuer", value: &c.OIDC.Issuer},
		{key: "console.oidc.clientId", value: &c.OIDC.ClientID},
		{key: "console.oidc.clientSecret", value: &c.OIDC.ClientSecret},
		{key: "console.oidc.scopes", value: &c.OIDC.Scopes},
		{key: "console.oidc.userClaim", value: &c.OIDC.UserClaim, fallback: "email"},
		{key: "console.oidc.groupsClaim", value: &c.OIDC.GroupsClaim, fallback: "groups"},
	}
}

// Logins returns who may log in. issued has the tokens in the store, and may be nil.
func (c *Console) Logins(issued *bearer.Issued) console.Logins {
	l := console.Logins{Tokens: c.Tokens, Issued: issued}
	if c.OIDC.Issuer != "" {
		l.OIDC = &c.OIDC
	}
	return l
}

// HasLogins reports whether logins are configured.
func (c *Console) HasLogins() bool { return len(c.Tokens) > 0 || c.OIDC.Issuer != "" }

// consoleTokens reads what is below "console.tokens". The file has only hashes. Entries shows the names.
func (r reader) consoleTokens(v strictyaml.Value) {
	v.List(func(_ int, v strictyaml.Value) {
		var t bearer.Token
		v.Object(strictyaml.Fields{
			"name":    strictyaml.String(&t.Name),
			"hash":    strictyaml.String(&t.Hash),
			"role":    strictyaml.String(&t.Role),
			"user":    strictyaml.String(&t.User),
			"expires": expiry(&t.Expires),
		})
		if err := console.CheckToken(&t); err != nil {
			v.Problem("%v", err)
		}
		r.config.Console.Tokens = append(r.config.Console.Tokens, t)
		r.note("console.tokens."+t.Name, t.Role, v)
	})
}

// consoleRoles reads who has which role.
func (r reader) consoleRoles(v strictyaml.Value) {
	roles := map[console.Role]policy.People{}
	v.Map(func(name string, v strictyaml.Value) {
		if !slices.Contains(console.Roles, console.Role(name)) {
			v.Problem("unknown role %q: use viewer, approver or admin", name)
		}
		var people policy.People
		policy.ReadPeople(v, &people)
		roles[console.Role(name)] = people
		r.note("console.oidc.roles."+name, people.In("en"), v)
	})
	r.config.Console.OIDC.Roles = roles
}
