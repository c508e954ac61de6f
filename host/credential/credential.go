// Package credential holds the operator's secrets and applies them for plugins, which never see them. New returns a
// Broker for credentials described by Specs.
//
// Broker.Credential returns the credential for an HTTP request: a static token, the access token of a connection that
// the operator authorized (OAuth 2.0), or the access token of a service account. The Broker renews expiring tokens, one
// renewal at a time over all processes that share a store. Connections are stored encrypted, each bound to its tenant
// and name. Consent, Connect and ConnectDevice create them.
package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
)

// Options configures a Broker.
type Options struct {
	// Credentials are the shared credentials by name, for every tenant without its own one of that name. For providers
	// that need consent, only the client registration is shared: each tenant has its own connection.
	Credentials map[string]Spec
	// Tenants are the credentials of single tenants, by tenant and name.
	Tenants map[string]map[string]Spec
	// Store opens the store for connections when it is first needed. Close closes it.
	Store func(context.Context) (*store.Store, error)
	// Key is the source of the keys that encrypt connections: one key a line, the newest first. Zero means the file
	// "secrets.key" in the store's directory, which is created at the first use.
	Key secret.Source
	// Proxy is an upstream proxy (http, https or socks5) for requests to authorization servers. Nil means none.
	Proxy *url.URL
	// Observe, if set, is called after every attempt to get a new access token. It must be safe for concurrent use.
	Observe func(Renewal)
	// Logger receives events of connections, without secrets. Nil discards them.
	Logger *slog.Logger
}

// Renewal is one attempt to get a new access token.
type Renewal struct {
	// Credential is the name in the configuration.
	Credential string
	// Outcome is one of the constants below.
	Outcome string
}

// Outcomes of a Renewal.
const (
	Renewed     = "ok"
	Unreachable = "unreachable" // the request did not reach the server
	Refused     = "refused"     // the server answered with a temporary error
	Revoked     = "revoked"     // the refresh token is not valid any more (invalid_grant)
	Lost        = "lost"        // the response did not arrive
	Unsaved     = "unsaved"     // the new token could not be stored immediately
)

// Broker provides credentials. It is safe for concurrent use.
type Broker struct {
	options Options
	// specs and proxy are the current values of Options.Credentials, Tenants and Proxy.
	specs  atomic.Pointer[specs]
	proxy  atomic.Pointer[url.URL]
	vault  vault
	client *http.Client
	logger *slog.Logger

	// ending ends with Close; working counts the work that Close waits for.
	ending  context.Context
	end     context.CancelFunc
	working sync.WaitGroup

	mu    sync.Mutex // guards slots together with specs, and begin against Close
	slots map[id]slot
}

// id names one credential of one tenant.
type id struct{ tenant, name string }

func (i id) String() string {
	if i.tenant == "" {
		return i.name
	}
	return i.name + " of tenant " + i.tenant
}

// slot is one credential of some kind. The context of status has a short timeout.
type slot interface {
	credential(ctx context.Context) (*broker.Credential, error)
	// renew returns another credential after a server has refused one, or nil if that would not help.
	renew(ctx context.Context, refused *broker.Credential, status int, body []byte) (*broker.Credential, error)
	status(ctx context.Context) Status
}

// New returns a Broker. The error names the credential with an invalid Spec. New reads neither sources nor the store.
func New(options Options) (*Broker, error) {
	b := &Broker{options: options, logger: options.Logger, slots: map[id]slot{}}
	b.client = newClient(b.proxy.Load)
	if b.logger == nil {
		b.logger = slog.New(slog.DiscardHandler)
	}
	if b.options.Observe == nil {
		b.options.Observe = func(Renewal) {}
	}
	b.vault = vault{open: options.Store, keys: keys{source: options.Key}, logger: b.logger}
	b.ending, b.end = context.WithCancel(context.Background())
	put, err := b.Reconfigure(options.Credentials, options.Tenants, options.Proxy)
	if err != nil {
		return nil, err
	}
	put()
	return b, nil
}

// specs are the configured credentials.
type specs struct {
	shared  map[string]Spec
	tenants map[string]map[string]Spec
}

// Reconfigure checks new values of Credentials, Tenants and Proxy and returns a function that applies them. The error
// names the credential with an invalid Spec. Unchanged credentials keep their state. A running renewal finishes with
// the old values.
func (b *Broker) Reconfigure(shared map[string]Spec, tenants map[string]map[string]Spec,
	proxy *url.URL) (put func(), err error) {
	next := &specs{shared, tenants}
	for _, i := range next.all() {
		spec, _ := next.of(i)
		if err := spec.Check(); err != nil {
			return nil, fmt.Errorf("credential %s: %w", i, err)
		}
	}
	return func() {
		b.proxy.Store(proxy)
		b.mu.Lock()
		defer b.mu.Unlock()
		before := b.specs.Swap(next)
		for i := range b.slots {
			was, _ := before.of(i)
			if now, ok := next.of(i); !ok || !reflect.DeepEqual(was, now) {
				delete(b.slots, i)
			}
		}
	}, nil
}

// configured lists the configured credentials. Shared ones have no tenant.
func (b *Broker) configured() []id { return b.specs.Load().all() }

func (s *specs) all() []id {
	var all []id
	for name := range s.shared {
		all = append(all, id{name: name})
	}
	for tenant, specs := range s.tenants {
		for name := range specs {
			all = append(all, id{tenant, name})
		}
	}
	return all
}

// spec returns the Spec for i: the tenant's own, or else the shared one.
func (b *Broker) spec(i id) (Spec, bool) { return b.specs.Load().of(i) }

func (s *specs) of(i id) (Spec, bool) {
	if own, ok := s.tenants[i.tenant][i.name]; ok {
		return own, true
	}
	shared, ok := s.shared[i.name]
	return shared, ok
}

// Configured reports whether anybody has a credential of that name.
func (b *Broker) Configured(name string) bool {
	return slices.ContainsFunc(b.configured(), func(i id) bool { return i.name == name })
}

// ConfiguredFor reports whether requests of the tenant can have a credential of that name: its own, or one for all.
func (b *Broker) ConfiguredFor(tenant, name string) bool {
	_, ok := b.spec(id{tenant, name})
	return ok
}

// Credential returns what requests of tenant ("" is the tenant of callers without one) are to carry for the credential
// of that name. An access token that expires soon is renewed first.
//
// Every error that is not ctx's holds an *abi.Error with abi.CodeCredential that says what the operator has to do, in
// words that may be shown to a guest; the error's own text says more, to be logged.
func (b *Broker) Credential(ctx context.Context, tenant, name string) (*broker.Credential, error) {
	s, err := b.slot(id{tenant, name})
	if err != nil {
		return nil, err
	}
	c, err := s.credential(ctx)
	return c, b.report(ctx, id{tenant, name}, err)
}

// Renew returns another credential after a server has refused one with the status 401 or 403 and the given body. It is
// to be tried once. Nil means that there is none, or that the refusal has another reason. Errors are those of
// Credential.
func (b *Broker) Renew(ctx context.Context, tenant, name string, refused *broker.Credential, status int,
	body []byte) (*broker.Credential, error) {
	s, err := b.slot(id{tenant, name})
	if err != nil {
		return nil, err
	}
	c, err := s.renew(ctx, refused, status, body)
	return c, b.report(ctx, id{tenant, name}, err)
}

// report logs the cause of an error, which guests do not see.
func (b *Broker) report(ctx context.Context, i id, err error) error {
	if err != nil && ctx.Err() == nil {
		b.logger.Warn("a credential cannot be used", "credential", i.name, "tenant", i.tenant, "err", err)
	}
	return err
}

// slot returns the slot for i. A shared static token has one slot for all tenants.
func (b *Broker) slot(i id) (slot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	specs := b.specs.Load()
	spec, ok := specs.of(i)
	if !ok {
		return nil, unusablef(nil, "the credential %s is not configured: set credentials.%s in hako.yaml "+
			"(docs/credentials.md)", i, i.name)
	}
	if _, own := specs.tenants[i.tenant][i.name]; !own && !spec.connects() {
		i.tenant = ""
	}
	s, ok := b.slots[i]
	if !ok {
		s = b.newSlot(i, spec.withDefaults())
		b.slots[i] = s
	}
	return s, nil
}

func (b *Broker) newSlot(i id, spec Spec) slot {
	switch {
	case spec.connects():
		return &connection{broker: b, id: i, spec: spec, secret: secret.New(spec.ClientSecret)}
	case spec.Provider == GoogleServiceAccount:
		return &serviceAccount{broker: b, id: i, spec: spec, secret: secret.New(spec.Key)}
	}
	return &static{id: i, spec: spec, secret: secret.New(spec.Token)}
}

// begin starts work that Close waits for. It fails after Close.
func (b *Broker) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ending.Err() != nil {
		return errEnding
	}
	b.working.Add(1)
	return nil
}

// Close waits for running renewals, whose responses would be lost otherwise, and closes the store. It may be called
// twice.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.working.Wait()
	return b.vault.close()
}

// errEnding is the error of operations after Close.
var errEnding = errors.New("hako is stopping")
