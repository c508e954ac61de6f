// Package httpbroker sends HTTP requests for guests, under their grants.
//
// A Broker belongs to one plugin. It holds each request, and each redirect, against the plugin's rules, checks the address
// that is dialled, and sees to limits, redirects, decompression, caching and retries, so that a guest gets the final answer
// or an error that says what to do. Neither the proxy nor the certificate settings of the process's environment play a part.
//
// What is checked is what is sent: a URL is first brought into one form, and one that servers might read differently is
// allowed only if the rules allow every reading.
package httpbroker

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/host/grant"
)

// maxRedirects is how many redirects one request follows.
const maxRedirects = 10

// Options configures a Broker. A nil *Options means all defaults.
type Options struct {
	Limits Limits
	// Rules adds to single rules, by name.
	Rules map[string]RuleOptions
	// CacheBytes is the most memory that cached answers take, in bytes. Zero means 8 MiB, a negative number no cache.
	CacheBytes int64
	// UserAgent is sent where the guest sets none. Empty means "hako (+https://github.com/hako-run/hako)".
	UserAgent string

	// Credentials are applied to the requests of rules that name one. Nil means that such a request fails. While recordings are
	// replayed they are not needed.
	Credentials Credentials

	// Proxy is an upstream proxy (http, https or socks5) for all requests. Names are then resolved by the proxy, so a rule's
	// hosts are checked here only as far as they resolve here: the proxy has to keep private addresses away itself.
	Proxy *url.URL
	// RootCAs are the certificate authorities to trust. Nil means the system's.
	RootCAs *x509.CertPool
	// Resolver looks up host names. Nil means net.DefaultResolver. "localhost" is never looked up.
	Resolver outbound.Resolver
	// Now is the clock of the cache and of Retry-After dates. Nil means time.Now.
	Now func() time.Time

	// Record, if set, gets every exchange with the network, redirects included; the cache is then off. It is called from
	// many goroutines at once.
	Record func(Exchange)
	// Replay, if set, answers from recordings alone: nothing is sent, and a request without a recording fails. Rules and
	// limits hold all the same. The Recordings must not change any more.
	Replay *Recordings

	// Observe, if set, is called once for every request of a guest when it is over, from many goroutines at once.
	Observe func(Observation)
	// Logger gets requests at debug level and refused addresses at warn, never with queries, headers or bodies. Nil discards them.
	Logger *slog.Logger
}

// Limits bound requests. A field that is zero has its default. Passing a limit is an error with abi.CodeLimit, or
// abi.CodeTimeout for Time.
type Limits struct {
	// Time bounds one request from start to the last byte of the answer, with redirects, retries and waiting for the rate
	// limit. Zero means 30s. The call's own deadline holds besides.
	Time time.Duration
	// RequestBody is the largest request body, in bytes. Zero means 4 MiB.
	RequestBody int64
	// ResponseBody is the largest body as it comes over the network, in bytes. Zero means 16 MiB.
	ResponseBody int64
	// Decompressed is the largest body after decompression, in bytes. Zero means 64 MiB.
	Decompressed int64
	// Header is the largest response header, in bytes. Zero means 64 KiB.
	Header int64
	// Concurrent is how many requests of the plugin are under way at once, until their bodies are read or closed. More fail
	// at once, because waiting calls that hold answers open could block each other. Zero means 64.
	Concurrent int
	// PerCall is how many requests one call may make. Zero means 100.
	PerCall int
}

// RuleOptions adds to one rule.
type RuleOptions struct {
	// Retries is how often a request is sent again after 429, any 5xx or a failed connection, if its method is idempotent. Zero
	// means 3, a negative number none.
	Retries int
	// Rate is how many requests a second go out, Burst how many of them at once (zero means 1). What comes faster waits.
	// Answers from the cache do not count. Zero means no limit.
	Rate  float64
	Burst int
	// Trace tells the server which trace a request belongs to (W3C Trace Context: traceparent and tracestate). A vendor learns nothing of the
	// caller by it, but can tell which requests belong together, so that is for servers of the operator's own.
	Trace bool
}

// Broker sends one plugin's requests. It is safe for concurrent use.
type Broker struct {
	rules       []*rule
	limits      Limits
	credentials Credentials // nil: none
	userAgent   string
	proxied     bool
	proxyMask   *mask // of the proxy's password; nil: none
	now         func() time.Time
	cache       *cache // nil: none
	record      func(Exchange)
	replay      recorded // nil: not replaying
	replayNote  string   // what the recordings say they are
	observe     func(Observation)
	log         *slog.Logger
	slots       chan struct{} // holds one element per request under way
}

// New returns a Broker for the requests that rules allow. The rule that says most about a request's host applies to it,
// whatever their order. The error names the rule or option that is wrong.
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
		b.cache = newCache(o.CacheBytes)
	}
	if o.Replay != nil {
		if b.replay, err = o.Replay.index(); err != nil {
			return nil, err
		}
		b.replayNote = o.Replay.Note
	}
	return b, b.addRules(rules, o)
}

func (b *Broker) addRules(rules []grant.HTTPRule, o *Options) error {
	names := map[string]bool{}
	for _, g := range rules {
		r, err := newRule(g)
		if err != nil {
			return fmt.Errorf("http rule %q: %w", g.Name, err)
		}
		names[g.Name] = true
		r.equip(o)
		b.rules = append(b.rules, r)
	}
	for name := range o.Rules {
		if !names[name] {
			return fmt.Errorf("options for http rule %q: there is no rule of that name", name)
		}
	}
	sortRules(b.rules)
	return nil
}

// equip gives the rule what it needs to reach the network.
func (r *rule) equip(o *Options) {
	own := o.Rules[r.name]
	if r.retries = own.Retries; r.retries == 0 {
		r.retries = 3
	}
	if own.Rate > 0 {
		r.limiter = rate.NewLimiter(rate.Limit(own.Rate), max(own.Burst, 1))
	}
	r.trace = own.Trace
	r.dialer = &outbound.Dialer{Host: r.host, Private: r.private, Resolver: o.Resolver}
	r.transport = newTransport(r.dialer, o.Proxy, o.RootCAs, o.Limits.Header)
}

// Close closes idle connections. Requests under way end with their contexts.
func (b *Broker) Close() error {
	for _, r := range b.rules {
		if t, ok := r.transport.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	}
	return nil
}

// withDefaults returns a checked copy of o with every default filled in.
func (o *Options) withDefaults() (*Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	l := &c.Limits
	if l.Time < 0 || min(l.RequestBody, l.ResponseBody, l.Decompressed, l.Header) < 0 || min(l.Concurrent, l.PerCall) < 0 {
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

// newTransport returns the rule's own transport. Connections are not shared between rules: one that a rule with Private
// opened must not serve a rule without.
func newTransport(d *outbound.Dialer, proxy *url.URL, roots *x509.CertPool, header int64) *http.Transport {
	t := &http.Transport{
		DialContext:            d.Dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    outbound.Timeout,
		DisableCompression:     true, // done here, where the limits are
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           16,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: header,
	}
	if proxy != nil {
		outbound.UseProxy(t, http.ProxyURL(proxy))
		t.DialContext = d.DialAny
	}
	return t
}
