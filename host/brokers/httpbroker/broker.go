// Package httpbroker sends HTTP requests for guests under their grants. New returns the Broker of one plugin;
// Broker.Module is its import module, and Broker.Do sends a request.
//
// A Broker checks each request and each redirect against the plugin's rules, checks the dialled address, and applies
// limits, redirects, decompression, caching and retries. A guest gets the final response, or an error with the remedy.
// The proxy and certificate settings in the process's environment have no effect.
//
// URLs are normalized before they are checked, and sent as they were checked. A URL that servers may interpret in
// several ways is allowed only if the rules allow every interpretation.
package httpbroker

import (
	"container/list"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/outbound"
)

// maxRedirects limits the redirects that one request follows.
const maxRedirects = 10

// Options configures a Broker. A nil *Options means all defaults.
type Options struct {
	Limits Limits
	// Rules are options of single rules, by name.
	Rules map[string]RuleOptions
	// CacheBytes limits the memory of cached responses, in bytes. Zero means 8 MiB, a negative number no cache.
	CacheBytes int64
	// UserAgent is sent if the guest sets none. Empty means "hako (+https://github.com/hako-run/hako)".
	UserAgent string

	// Credentials provides the credentials for rules that name one. If it is nil, requests of such rules fail, unless
	// recordings are replayed.
	Credentials Credentials

	// Proxy is an upstream proxy (http, https or socks5) for all requests. The proxy then resolves names, so addresses
	// are checked only as far as names resolve on this machine, and the proxy must block private addresses itself.
	Proxy *url.URL
	// RootCAs are the certificate authorities to trust. Nil means the system's.
	RootCAs *x509.CertPool
	// Resolver looks up host names. Nil means net.DefaultResolver. "localhost" is never looked up.
	Resolver outbound.Resolver
	// Now is the clock of the cache and of Retry-After dates. Nil means time.Now.
	Now func() time.Time

	// Record, if set, is called for every exchange with the network, including redirects. The cache is off then. It
	// must be safe for concurrent use.
	Record func(Exchange)
	// Replay, if set, answers all requests from recordings. Nothing is sent, and a request without a recording fails.
	// Rules and limits still apply. The Recordings must not change any more.
	Replay *Recordings

	// Observe, if set, is called once after every request of a guest. It must be safe for concurrent use.
	Observe func(Observation)
	// Logger gets requests at debug level and refused addresses at warn, never with queries, headers or bodies. Nil
	// discards them.
	Logger *slog.Logger
}

// Limits limits requests. A zero field means its default. Exceeding a limit is an error with abi.CodeLimit, or
// abi.CodeTimeout for Time.
type Limits struct {
	// Time limits one request from its start to the last byte of the response, including redirects, retries and waiting
	// for the rate limit. Zero means 30s. The deadline of the call applies too.
	Time time.Duration
	// RequestBody limits a request body, in bytes. Zero means 4 MiB.
	RequestBody int64
	// ResponseBody limits a response body as received from the network, in bytes. Zero means 16 MiB.
	ResponseBody int64
	// Decompressed limits a response body after decompression, in bytes. Zero means 64 MiB.
	Decompressed int64
	// Header limits a response header, in bytes. Zero means 64 KiB.
	Header int64
	// Concurrent limits the concurrent requests of the plugin, which last until their bodies are read or closed.
	// Further requests fail immediately, because waiting calls with open responses could block each other. Zero means
	// 64.
	Concurrent int
	// PerCall limits the requests of one call. Zero means 100.
	PerCall int
}

// RuleOptions are options of one rule.
type RuleOptions struct {
	// Retries is the maximum number of retries after the status 429, any 5xx or a failed connection, for idempotent
	// methods. Zero means 3, a negative number none.
	Retries int
	// Rate limits the requests per second, Burst those sent at once (zero means 1). Further requests wait. Responses
	// from the cache do not count. Zero means no limit.
	Rate  float64
	Burst int
	// Trace sends the trace context to the server (W3C Trace Context: traceparent and tracestate). It reveals nothing
	// about the caller, but lets the server correlate requests, so use it for the operator's own servers.
	Trace bool
}

// Broker sends one plugin's requests. It is safe for concurrent use.
type Broker struct {
	rules       []*rule
	limits      Limits
	credentials Credentials // nil: none
	userAgent   string
	proxied     bool
	proxyMask   *mask // for the proxy's password; nil: none
	now         func() time.Time
	cache       *cache // nil: none
	record      func(Exchange)
	replay      recorded // nil: not replaying
	replayNote  string   // Recordings.Note
	observe     func(Observation)
	log         *slog.Logger
	slots       chan struct{} // one element per running request
}

// New returns a Broker for the requests that rules allow. The most specific rule for a host applies, whatever their
// order. The error names the invalid rule or option.
func New(rules []grant.HTTPRule, options *Options) (*Broker, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Broker{
		limits: o.Limits, credentials: o.Credentials, userAgent: o.UserAgent, proxied: o.Proxy != nil, now: o.Now,
		record: o.Record, observe: o.Observe, log: o.Logger, slots: make(chan struct{}, o.Limits.Concurrent),
	}
	if secrets := outbound.ProxySecrets(o.Proxy); secrets != nil {
		b.proxyMask = newMask(secrets)
	}
	if o.CacheBytes > 0 {
		b.cache = &cache{limit: o.CacheBytes, byKey: map[string]*list.Element{}}
	}
	if o.Replay != nil {
		if b.replay, err = o.Replay.index(); err != nil {
			return nil, err
		}
		b.replayNote = o.Replay.Note
	}
	if err := b.addRules(rules, o); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Broker) addRules(rules []grant.HTTPRule, o *Options) error {
	names := map[string]bool{}
	for _, g := range rules {
		r, err := newRule(g)
		if err != nil {
			return fmt.Errorf("http rule %q: %w", g.Name, err)
		}
		names[g.Name] = true
		r.setTransport(o)
		b.rules = append(b.rules, r)
	}
	for name := range o.Rules {
		if !names[name] {
			return fmt.Errorf("options for http rule %q: there is no rule of that name", name)
		}
	}
	slices.SortStableFunc(b.rules, func(a, b *rule) int {
		return outbound.CompareRules(a.host, a.private, b.host, b.private)
	})
	return nil
}

// setTransport sets the rule's transport, rate limiter and other options.
func (r *rule) setTransport(o *Options) {
	own := o.Rules[r.name]
	if r.retries = own.Retries; r.retries == 0 {
		r.retries = 3
	}
	if own.Rate > 0 {
		r.limiter = rate.NewLimiter(rate.Limit(own.Rate), max(own.Burst, 1))
	}
	r.trace = own.Trace
	r.dialer = &outbound.Dialer{Host: r.host, Private: r.private, Resolver: o.Resolver}
	r.transport = newTransport(r.dialer, o.Proxy, o.RootCAs, &o.Limits)
}

// MaxRequestBody returns Limits.RequestBody.
func (b *Broker) MaxRequestBody() int64 { return b.limits.RequestBody }

// Close closes idle connections. Running requests end with their contexts.
func (b *Broker) Close() error {
	for _, r := range b.rules {
		if t, ok := r.transport.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	}
	return nil
}

// withDefaults returns a validated copy of o with the defaults filled in.
func (o *Options) withDefaults() (*Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	l := &c.Limits
	if l.Time < 0 || min(l.RequestBody, l.ResponseBody, l.Decompressed, l.Header) < 0 ||
		min(l.Concurrent, l.PerCall) < 0 {
		return nil, errors.New("http limits must not be negative")
	}
	fill(&l.Time, 30*time.Second)
	fill(&l.RequestBody, 4<<20)
	fill(&l.ResponseBody, 16<<20)
	fill(&l.Decompressed, 64<<20)
	fill(&l.Header, 64<<10)
	fill(&l.Concurrent, 64)
	fill(&l.PerCall, 100)
	fill(&c.CacheBytes, 8<<20)
	fill(&c.UserAgent, "hako (+https://github.com/hako-run/hako)")
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &c, nil
}

func fill[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// newTransport returns a transport for one rule. Rules do not share connections: a connection of a rule with Private
// must not serve a rule without it.
func newTransport(d *outbound.Dialer, proxy *url.URL, roots *x509.CertPool, limits *Limits) *http.Transport {
	t := &http.Transport{
		DialContext:         d.Dial,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: outbound.Timeout,
		DisableCompression:  true, // done by this package, which limits it
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        16,
		MaxIdleConnsPerHost: maxPending,
		// Connections outlive requests that end early, until the handshake is over or has taken TLSHandshakeTimeout.
		MaxConnsPerHost:        limits.Concurrent,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: limits.Header,
	}
	if proxy != nil {
		outbound.UseProxy(t, http.ProxyURL(proxy))
		t.DialContext = d.DialAny
	}
	return t
}
