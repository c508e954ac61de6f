package mcpclient

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
)

const (
	defaultStart = 30 * time.Second
	// firstDelay and lastDelay are how long to wait before a server is tried again: half to all of it, and twice as
	// long each time.
	firstDelay, lastDelay = 500 * time.Millisecond, time.Minute
	// stable is how long a server has to be up for its failures to be forgotten.
	stable = time.Minute
	// outage is how long what a server offered stays on offer while it is being connected again.
	outage = 30 * time.Second
	// settle is how long to wait after a list_changed for more of them. At most refreshBurst are taken up at once, and
	// one every refreshEvery.
	settle                     = 200 * time.Millisecond
	refreshEvery, refreshBurst = 5 * time.Second, 5
	// look is how often a server is asked for its lists anyway: not every one tells of changes, or of its end.
	look = time.Minute
	// maxLogLine bounds what a server can put into one line of the log, in bytes; logRate and logBurst bound the lines,
	// in each second and at once.
	maxLogLine        = 2 << 10
	logRate, logBurst = 5, 100
	// stderrRate and stderrBurst bound what is read of a program's standard error, in bytes a second and at once.
	stderrRate, stderrBurst = 1 << 20, 4 << 20
)

// server keeps one upstream server connected, and what it offers in the catalog.
type server struct {
	spec    Spec
	options Options
	env     environment
	bounds  atomic.Pointer[bounds]
	logger  *slog.Logger
	stderr  *lineWriter
	lines   *rate.Limiter

	// version is the one to ask for; only run uses it.
	version string

	stop context.CancelFunc
	done chan struct{}
	// tried is closed when the first attempt has succeeded or failed.
	tried     chan struct{}
	triedOnce sync.Once

	// watches want to know of changed resources. interest tells attend of other ones.
	watches  watches
	interest chan struct{}

	// mu guards what follows.
	mu      sync.Mutex
	session *session
	// arrived is closed when there is a session.
	arrived chan struct{}
	status  Status
	offer   *offer

	// offering guards the catalog's entry: the name of its source, with digest telling what it was made from, and
	// whether there is one. sessions counts the sessions that filled it.
	offering sync.Mutex
	source   string
	digest   [sha256.Size]byte
	offered  bool
	sessions int
}

func newServer(spec Spec, options Options, env environment) *server {
	s := &server{
		spec: spec, options: options, env: env,
		logger: options.Logger.With("upstream", spec.Name), version: spec.ProtocolVersion,
		lines: rate.NewLimiter(logRate, logBurst),
		done:  make(chan struct{}), tried: make(chan struct{}), arrived: make(chan struct{}),
		interest: make(chan struct{}, 1), offer: newOffer(&spec, new(listing)),
	}
	s.bounds.Store(newBounds(spec.limits(&options)))
	s.stderr = &lineWriter{line: func(text string) { s.said("stderr", "%s", text) },
		pace: rate.NewLimiter(stderrRate, stderrBurst)}
	s.status = Status{Name: spec.Name, Prefix: spec.prefix(), Transport: spec.transport(), State: Connecting,
		Since: time.Now()}
	return s
}

// bounds are limits of calls, with what counts them. Calls keep those that they began under.
type bounds struct {
	limits manifest.Limits
	gate   *limit.Gate
}

func newBounds(l manifest.Limits) *bounds { return &bounds{l, limit.NewGate(l)} }

// limits are those of its calls.
func (s *Spec) limits(options *Options) manifest.Limits {
	return s.Limits.Or(options.Limits).Or(manifest.DefaultLimits)
}

func (s *server) startTimeout() time.Duration { return cmp.Or(s.spec.StartTimeout, defaultStart) }

// said logs what a server says, marked as its words and bounded.
func (s *server) said(where, format string, args ...any) {
	if s.lines.Allow() {
		s.logger.Info("an upstream server says", "where", where, "text", oneLineOf(fmt.Sprintf(format, args...)))
	}
}

// start keeps the server connected until stop is called.
func (s *server) start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		s.run(ctx)
	}()
}

func (s *server) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			s.attempted()
			return
		}
		if time.Since(began) > stable {
			failures = 0
		}
		delay := backOff(failures)
		s.down(err, delay)
		s.attempted()
		if !s.pause(ctx, delay) {
			return
		}
		s.count()
	}
}

func backOff(failures int) time.Duration {
	d := min(lastDelay, firstDelay<<min(failures, 10))
	return d/2 + rand.N(d/2)
}

// pause waits. It returns false if ctx ends first.
func (s *server) pause(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *server) attempted() { s.triedOnce.Do(func() { close(s.tried) }) }

// serve connects once and stays until the session ends, and says why it did.
func (s *server) serve(ctx context.Context) (err error) {
	x, err := s.connectAny(ctx)
	if err != nil {
		return err
	}
	defer func() {
		s.lost(x)
		s.lapse()
		x.close(err)
	}()
	s.returned()
	if err := s.refresh(x); err != nil {
		return err
	}
	s.up(x)
	s.attempted()
	return s.attend(x)
}

// connectAny connects with the version that worked before, or the newest. The SDK goes back to an older one where a
// server refuses that; one that ends or says nothing is tried again with the older one.
func (s *server) connectAny(ctx context.Context) (*session, error) {
	x, err := s.connect(ctx, s.version)
	if s.version == "" && (errors.Is(err, errSilent) || errors.Is(err, errEnded)) && ctx.Err() == nil {
		if x, err = s.connect(ctx, legacyVersion); err == nil {
			s.version = legacyVersion
		}
	}
	return x, err
}

// attend takes up changes of the lists until the session ends.
func (s *server) attend(x *session) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	often := rate.NewLimiter(rate.Every(refreshEvery), refreshBurst)
	s.subscribe(x)
	for {
		select {
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		case <-ticker.C:
		case <-s.interest:
			s.subscribe(x)
			continue
		case <-x.changed:
			if !s.pause(x.ctx, settle) || often.Wait(x.ctx) != nil {
				continue // which ends it
			}
		}
		if err := s.refresh(x); err != nil {
			return err
		}
	}
}

// refresh brings the catalog up to date with the server's lists.
func (s *server) refresh(x *session) error {
	l, err := x.list(x.ctx)
	if err != nil {
		return err
	}
	digest, err := l.digest()
	if err != nil {
		return err
	}
	s.offering.Lock()
	defer s.offering.Unlock()
	if s.offered && digest == s.digest {
		return nil
	}
	o := newOffer(&s.spec, l)
	s.mu.Lock()
	before := s.offer
	s.offer = merged(o, before) // calls of clients that have not heard of the change find both
	s.mu.Unlock()
	err = s.put(o)
	s.mu.Lock()
	if s.offer = o; err != nil {
		s.offer = before
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.digest, s.offered = digest, true
	if !slices.Equal(o.omitted, before.omitted) {
		s.logOmitted(o.omitted)
	}
	s.logger.Info("an upstream server's tools are on offer", "tools", len(o.manifest.Tools), "prompts",
		len(o.manifest.Prompts),
		"resources", len(o.manifest.Resources)+len(o.manifest.ResourceTemplates))
	return nil
}

// merged has the names of both.
func merged(o, before *offer) *offer {
	m := *o
	m.tools, m.prompts = map[string]string{}, map[string]string{}
	for _, from := range []*offer{before, o} {
		for name, own := range from.tools {
			m.tools[name] = own
		}
		for name, own := range from.prompts {
			m.prompts[name] = own
		}
	}
	return &m
}

// maxOmittedLogged is how many things that are left out are named in the log.
const maxOmittedLogged = 20

func (s *server) logOmitted(omitted []string) {
	for i, what := range omitted {
		if i == maxOmittedLogged {
			s.logger.Warn("more is left out of what an upstream server offers", "more", len(omitted)-i)
			return
		}
		s.logger.Warn("left out of what an upstream server offers", "what", what)
	}
}

// upstreamSuffix tells a server from a plugin of the same name, where policies, quotas and records name either.
const upstreamSuffix = ".upstream"

// put offers o. What another source offers already stays that source's: it is left out here. offering is held.
func (s *server) put(o *offer) error {
	if !s.offered {
		s.source = s.spec.Name
	}
	source := catalog.Source{
		Name: s.source, Prefix: s.spec.prefix(), Upstream: true, Asks: s.spec.Elicitation != ElicitationDecline,
		Untrusted: !s.spec.TrustAnnotations, Backend: s,
	}
	for {
		err := s.options.Catalog.Put(source, o.manifest)
		var conflict *catalog.ConflictError
		if errors.As(err, &conflict) && conflict.Kind == "source" && s.source == s.spec.Name {
			s.source += upstreamSuffix
			source.Name = s.source
			continue
		}
		if !errors.As(err, &conflict) || !o.drop(conflict, source.Prefix) {
			return err
		}
	}
}

// drop leaves out what is in conflict, and reports whether it was there.
func (o *offer) drop(conflict *catalog.ConflictError, prefix string) bool {
	m := *o.manifest
	before := len(m.Tools) + len(m.Prompts) + len(m.Resources) + len(m.ResourceTemplates)
	switch conflict.Kind {
	case "tool":
		m.Tools = slices.DeleteFunc(slices.Clone(m.Tools),
			func(t manifest.Tool) bool { return prefix+t.Name == conflict.Name })
	case "prompt":
		m.Prompts = slices.DeleteFunc(slices.Clone(m.Prompts),
			func(p manifest.Prompt) bool { return prefix+p.Name == conflict.Name })
	case "resource":
		m.Resources = slices.DeleteFunc(slices.Clone(m.Resources),
			func(r manifest.Resource) bool { return r.URI == conflict.Name })
	case "resource template":
		m.ResourceTemplates = slices.DeleteFunc(slices.Clone(m.ResourceTemplates),
			func(r manifest.ResourceTemplate) bool { return r.URITemplate == conflict.Name })
	}
	o.manifest = &m
	if len(m.Tools)+len(m.Prompts)+len(m.Resources)+len(m.ResourceTemplates) == before {
		return false
	}
	o.omit("%s %s: %s offers it already", conflict.Kind, quoted(conflict.Name), conflict.Holder)
	return true
}

// lapse lets what the server offers go, unless it is back in time.
func (s *server) lapse() {
	s.offering.Lock()
	defer s.offering.Unlock()
	last := s.sessions
	time.AfterFunc(cmp.Or(s.options.outage, outage), func() {
		s.offering.Lock()
		defer s.offering.Unlock()
		if s.sessions == last {
			s.remove()
		}
	})
}

// returned keeps what the server offers from going.
func (s *server) returned() {
	s.offering.Lock()
	defer s.offering.Unlock()
	s.sessions++
}

// remove takes what the server offers from the catalog. offering is held.
func (s *server) remove() {
	if s.offered {
		s.options.Catalog.Remove(s.source)
		s.offered = false
	}
}

// withdraw takes what the server offers from the catalog.
func (s *server) withdraw() {
	s.offering.Lock()
	defer s.offering.Unlock()
	s.remove()
}

// names are the server's own for those at the frontends.
func (s *server) names() *offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer
}

// close stops the server and takes what it offers from the catalog. It waits for both.
func (s *server) close() {
	s.withdraw()
	s.stop()
	<-s.done
	s.withdraw() // what arrived meanwhile
}
