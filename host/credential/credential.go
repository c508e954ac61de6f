// Package credential holds the operator's secrets and applies them for plugins, which never see them.
//
// A Broker gives the HTTP broker what a request is to carry: a static token, the access token of a connection that the operator
// consented to (OAuth 2.0), or one that a service account signed for. It refreshes what expires, one refresh at a time over all
// processes of a store, and keeps connections encrypted in it, each bound to its tenant and name.
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
	"github.com/hako-run/hako/host/store"
)

// Options configures a Broker.
type Options struct {
	// Credentials are the operator's by name, for every tenant that has no own one of that name. Where the provider is one that is
	// connected, what is shared is the application's registration: each tenant has a connection of its own.
	Credentials map[string]Spec
	// Tenants are the credentials of single tenants, by tenant and name.
	Tenants map[string]map[string]Spec
	// Store opens the store that connections are kept in, when it is needed first. Close closes it.
	Store func(context.Context) (*store.Store, error)
	// Key is where the key that encrypts connections comes from: one key a line, the newest first. Zero means the file
	// "secrets.key" in the store's directory, which is made at the first use.
	Key Source
	// Proxy is an upstream proxy (http, https or socks5) for requests to authorization servers. Nil means none.
	Proxy *url.URL
	// Observe, if set, is called after every attempt to get a new access token, from many goroutines at once.
	Observe func(Renewal)
	// Logger receives what happens to connections, never secrets. Nil discards it.
	Logger *slog.Logger
}

// Renewal is one attempt to get a new access token.
type Renewal struct {
	// Credential is its name in the configuration.
	Credential string
	// Outcome is one of the constants.
	Outcome string
}

// Outcomes of a Renewal.
const (
	Renewed     = "ok"
	Unreachable = "unreachable" // the request did not reach the server
	Refused     = "refused"     // the server answered with an error that may pass
	Revoked     = "revoked"     // the server does not know the refresh token any more (invalid_grant)
	Lost        = "lost"        // the answer did not arrive
	Unsaved     = "unsaved"     // the new token could not be stored at once
)

// Broker gives out credentials. It is safe for concurrent use.
type Broker struct {
	options Options
	// specs take the place of those among options, and proxy that of Options.Proxy.
	specs  atomic.Pointer[specs]
	proxy  atomic.Pointer[url.URL]
	vault  vault
	client *http.Client
	logger *slog.Logger

	// ending ends when Close is called; working counts what Close waits for.
	ending  context.Context
	end     context.CancelFunc
	working sync.WaitGroup

	mu    sync.Mutex // guards slots with specs, and what begins against Close
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

// slot is one credential of a kind. status is called with a context that is short.
type slot interface {
	credential(ctx context.Context) (*broker.Credential, error)
	// renew is told that a server refused a credential; it returns another one, or nil if that would not help.
	renew(ctx context.Context, refused *broker.Credential, status int, body []byte) (*broker.Credential, error)
	status(ctx context.Context) Status
}

// New returns a Broker. The error names the credential whose Spec is wrong. Nothing is read yet: neither sources nor the store.
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

// specs are the credentials: shared ones, and those of tenants.
type specs struct {
	shared  map[string]Spec
	tenants map[string]map[string]Spec
}

// Reconfigure checks other Credentials, Tenants and Proxy, as in Options, and returns what puts them in force. The error names the
// credential whose Spec is wrong. What is unchanged keeps what it knows; a renewal under way ends as it began.
func (b *Broker) Reconfigure(shared map[string]Spec, tenants map[string]map[string]Spec, proxy *url.URL) (put func(), err error) {
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

// configured lists what there is: shared ones under no tenant.
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

// spec returns what applies to i: the tenant's own, else the shared one.
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

// Credential returns what requests of tenant ("" is the tenant of callers without one) are to carry for the credential of that name.
// An access token that expires soon is renewed first.
//
// Every error that is not ctx's holds an *abi.Error with abi.CodeCredential that says what the operator has to do, in words that may
// be shown to a guest; the error's own text says more, to be logged.
func (b *Broker) Credential(ctx context.Context, tenant, name string) (*broker.Credential, error) {
	s, err := b.slot(id{tenant, name})
	if err != nil {
		return nil, err
	}
	c, err := s.credential(ctx)
	return c, b.report(ctx, id{tenant, name}, err)
}

// Renew is told that a server refused a credential with this status, 401 or 403, and answer. It returns another one to try, once, or
// nil if there is none or the refusal has another reason. Errors are as for Credential.
func (b *Broker) Renew(ctx context.Context, tenant, name string, refused *broker.Credential, status int, body []byte) (*broker.Credential, error) {
	s, err := b.slot(id{tenant, name})
	if err != nil {
		return nil, err
	}
	c, err := s.renew(ctx, refused, status, body)
	return c, b.report(ctx, id{tenant, name}, err)
}

// report logs what a guest is not told.
func (b *Broker) report(ctx context.Context, i id, err error) error {
	if err != nil && ctx.Err() == nil {
		b.logger.Warn("a credential cannot be used", "credential", i.name, "tenant", i.tenant, "err", err)
	}
	return err
}

// slot returns the one for i. A static token that is shared has one slot for all tenants.
func (b *Broker) slot(i id) (slot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	specs := b.specs.Load()
	spec, ok := specs.of(i)
	if !ok {
		return nil, unusablef(nil, "the credential %s is not configured: set credentials.%s in hako.yaml (docs/credentials.md)", i, i.name)
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
		return newConnection(b, i, spec)
	case spec.Provider == GoogleServiceAccount:
		return newServiceAccount(b, i, spec)
	}
	return newStatic(i, spec)
}

// begin counts work in that Close is to wait for. It fails once Close has been called.
func (b *Broker) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ending.Err() != nil {
		return errEnding
	}
	b.working.Add(1)
	return nil
}

// Close waits for renewals under way, because their answers would be lost, and closes the store. It may be called twice.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.working.Wait()
	return b.vault.close()
}

// errEnding is why nothing is renewed any more.
var errEnding = errors.New("hako is stopping")
