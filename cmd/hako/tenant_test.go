package main

import "testing"

func TestTenant(t *testing.T) {
	t.Parallel()
	dir := workplace(t, `
http: {auth: {tokens: [{name: ci, hash: "sha256:b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9", tenant: zeta}]}}
tenants:
  acme:
    plugin: {probe: {config: {color: blue}}}
`, "config:\n", "config:\n  color: {type: string, default: red}\n")
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
	for tenant, want := range map[string]string{"": `"color":"red"`, "zeta": `"color":"red"`, "acme": `"color":"blue"`} {
		invoke(t, dir, "call", "probe_config", "--tenant", tenant).want(t, exitOK, want)
	}
	invoke(t, dir, "call", "probe_config", "--tenant", "acmee").want(t, exitUsage,
		`unknown tenant "acmee": did you mean "acme"?`)
	invoke(t, dir, "call", "probe_config", "--tenant", "nobody").want(t, exitUsage,
		`unknown tenant "nobody": name it in hako.yaml, such as in tenants: {nobody: {}}`)
	invoke(t, dir, "config", "show").want(t, exitOK, "tenants.acme", "tenants.acme.plugin.probe.config.color", "blue",
		"hako.yaml:6")
	invoke(t, dir, "__complete", "call", "--tenant", "").want(t, exitOK, "acme\nzeta\n")
}

// TestTenantsOfClaims: where tokens name the tenants, the configuration need not.
func TestTenantsOfClaims(t *testing.T) {
	t.Parallel()
	dir := approved(t, `http: {auth: {oauth: {resource: "https://hako.example/mcp", tenantClaim: org, issuers: [{url: "https://login.example"}]}}}`)
	invoke(t, dir, "call", "probe_echo", `{"text":"x"}`, "--tenant", "anybody").want(t, exitOK, "x")
}
