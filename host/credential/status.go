package credential

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// States of a credential.
const (
	Ready        = "ready"
	NotConnected = "not connected" // the operator has not given consent yet
	Reconnect    = "reconnect"     // the consent has ended: the operator must give it again
	Unusable     = "unusable"      // it cannot be used; Remedy explains why
)

// States lists all states.
var States = []string{Ready, NotConnected, Reconnect, Unusable}

// Status describes one credential. It contains no secrets.
type Status struct {
	Credential string `json:"credential"`
	// Tenant is empty for shared credentials and for callers without a tenant.
	Tenant string `json:"tenant,omitempty"`
	// Provider is empty for a static token.
	Provider string `json:"provider,omitempty"`
	State    string `json:"state"`
	// Public are the properties that guests may know too.
	Public map[string]string `json:"public,omitempty"`
	// Expires is the expiry of the access token, which is renewed before. Zero means never, or unknown.
	Expires time.Time `json:"expires,omitzero"`
	// Renewed is the time at which the access token was issued.
	Renewed time.Time `json:"renewed,omitzero"`
	// Remedy explains what to do if State is not Ready.
	Remedy string `json:"remedy,omitempty"`
}

// Facts returns what is publicly known of the connection, as "name value" in the order of names.
func (s *Status) Facts() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Public)) {
		list = append(list, name+" "+s.Public[name])
	}
	return list
}

func (s *Status) fail(remedy string) { s.State, s.Remedy = Unusable, remedy }

// Status lists the configured credentials, and tenants' connections of shared ones, by name and tenant. It fetches no
// tokens and runs no commands. Errors are those of the store.
func (b *Broker) Status(ctx context.Context) ([]Status, error) {
	all := b.configured()
	if b.hasConnections() {
		stored, err := b.vault.list(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, stored...)
	}
	slices.SortFunc(all, func(x, y id) int {
		return cmp.Or(cmp.Compare(x.name, y.name),
			cmp.Compare(x.tenant, y.tenant))
	})
	var list []Status
	for _, i := range slices.Compact(all) {
		list = append(list, b.statusOf(ctx, i))
	}
	whole := slices.Clone(list)
	return slices.DeleteFunc(list, func(s Status) bool { return s.onlyTenants(whole) }), nil
}

// onlyTenants reports whether a shared credential is connected for tenants only. Then the missing connection without a
// tenant is not reported.
func (s *Status) onlyTenants(list []Status) bool {
	return s.State == NotConnected && s.Tenant == "" && slices.ContainsFunc(list, func(other Status) bool {
		return other.Credential == s.Credential && other.Tenant != ""
	})
}

func (b *Broker) hasConnections() bool {
	return slices.ContainsFunc(b.configured(), func(i id) bool {
		spec, _ := b.spec(i)
		return spec.connects()
	})
}

func (b *Broker) statusOf(ctx context.Context, i id) Status {
	status := Status{State: Unusable, Remedy: "it is no longer configured: hako connect remove " + i.arguments()}
	if spec, ok := b.spec(i); ok {
		if s, err := b.slot(i); err == nil {
			status = s.status(ctx)
		}
		status.Provider = spec.Provider
	}
	status.Credential, status.Tenant = i.name, i.tenant
	return status
}

// arguments returns the command-line arguments that name i.
func (i id) arguments() string {
	if i.tenant == "" {
		return i.name
	}
	if !plainWord.MatchString(i.tenant) {
		return i.name + " --tenant '" + strings.ReplaceAll(i.tenant, "'", `'\''`) + "'"
	}
	return i.name + " --tenant " + i.tenant
}

// setting returns the configuration key of the credential.
func (i id) setting() string {
	if i.tenant == "" {
		return "credentials." + i.name
	}
	return "tenants." + i.tenant + ".credentials." + i.name
}

// plainWord matches words that need no quotes in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._@:-]+$`)
