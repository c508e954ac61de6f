package credential

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
)

// States of a credential.
const (
	Ready        = "ready"
	NotConnected = "not connected" // the operator has not given consent yet
	Reconnect    = "reconnect"     // the consent has ended: the operator has to give it again
	Unusable     = "unusable"      // something is wrong with it; Remedy says what
)

// States lists them all.
var States = []string{Ready, NotConnected, Reconnect, Unusable}

// Status is what may be told of one credential. It holds no secrets.
type Status struct {
	Credential string `json:"credential"`
	// Tenant is empty for what is shared, or belongs to callers without a tenant.
	Tenant string `json:"tenant,omitempty"`
	// Provider is empty for a static token.
	Provider string `json:"provider,omitempty"`
	State    string `json:"state"`
	// Public are the facts that guests may know too.
	Public map[string]string `json:"public,omitempty"`
	// Expires is when the access token does; it is renewed before. Zero means never, or not known.
	Expires time.Time `json:"expires,omitzero"`
	// Renewed is when the access token was issued.
	Renewed time.Time `json:"renewed,omitzero"`
	// Remedy says what to do where State is not Ready.
	Remedy string `json:"remedy,omitempty"`
}

func (s *Status) fail(remedy string) { s.State, s.Remedy = Unusable, remedy }

// Status lists what is configured, and connections of tenants to what is shared, by name and tenant. It fetches no tokens and runs
// no commands. The error is the store's.
func (b *Broker) Status(ctx context.Context) ([]Status, error) {
	all := b.configured()
	if b.hasConnections() {
		stored, err := b.vault.list(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, stored...)
	}
	slices.SortFunc(all, func(x, y id) int { return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.tenant, y.tenant)) })
	var list []Status
	for _, i := range slices.Compact(all) {
		list = append(list, b.statusOf(ctx, i))
	}
	whole := slices.Clone(list)
	return slices.DeleteFunc(list, func(s Status) bool { return s.onlyTenants(whole) }), nil
}

// onlyTenants reports an entry that is shared and connected for tenants alone, so that nobody misses a connection without a tenant.
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
		status.Provider = spec.Provider
		if s, err := b.slot(i); err == nil {
			status = s.status(ctx)
		}
		status.Provider = spec.Provider
	}
	status.Credential, status.Tenant = i.name, i.tenant
	return status
}

// arguments are i on the command line.
func (i id) arguments() string {
	if i.tenant == "" {
		return i.name
	}
	if !plainWord.MatchString(i.tenant) {
		return i.name + " --tenant '" + strings.ReplaceAll(i.tenant, "'", `'\''`) + "'"
	}
	return i.name + " --tenant " + i.tenant
}

// setting is where the configuration says what the credential is.
func (i id) setting() string {
	if i.tenant == "" {
		return "credentials." + i.name
	}
	return "tenants." + i.tenant + ".credentials." + i.name
}

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._@:-]+$`)
