package mcpclient

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/retry"
)

const (
	defaultStart = 30 * time.Second
	// firstDelay and lastDelay bound the exponential backoff between attempts, which has a jitter of half.
	firstDelay, lastDelay = 500 * time.Millisecond, time.Minute
	// stable is the time after which a connected server's failures are forgotten.
	stable = time.Minute
	// outage is the time for which the entries of a disconnected server stay in the catalog.
	outage = 30 * time.Second
	// settle is the wait for further list_changed notifications. refreshBurst and refreshEvery bound the
	// refreshes.
	settle                     = 200 * time.Millisecond
	refreshEvery, refreshBurst = 5 * time.Second, 5
	// refreshTime is the interval at which a server is asked for its lists without a notification. Some servers notify
	// neither of changes nor of their end.
	refreshTime = time.Minute
	// maxLogLine bounds a log line from a server, in bytes. logRate and logBurst bound the lines per second and at
	// once.
	maxLogLine        = 2 << 10
	logRate, logBurst = 5, 100
	// stderrRate and stderrBurst bound what is read of a program's standard error, in bytes per second and at once.
	stderrRate, stderrBurst = 1 << 20, 4 << 20
)

// server keeps one upstream server connected, and its entries in the catalog.
type server struct {
	spec    Spec
	options Options
	env     environment
	bounds  atomic.Pointer[bounds]
	logger  *slog.Logger
	stderr  *lineWriter
	// lastLine is the last line that the program wrote to its standard error.
	lastLine atomic.Pointer[string]
	lines    *rate.Limiter
	// starts is Upstreams.starts.
	starts chan struct{}

	// version is the protocol version to request, and cache has the server's lists. After restore, only run uses them.
	version string
	cache   cache

	stop context.CancelFunc
	done chan struct{}
	// forgotten reports whether the server is no longer configured: close removes its cache.
	forgotten atomic.Bool
	// tried is closed after the first attempt.
	tried     chan struct{}
	triedOnce sync.Once

	// watches are the subscriptions of clients. interest signals changes of them, and waiting calls, to run.
	watches  watches
	interest chan struct{}

	// mu guards the fields below.
	mu      sync.Mutex
	session *session
	// arrived is closed when there is a session.
	arrived chan struct{}
	// attemptFailed is closed when an attempt to connect has failed.
	attemptFailed chan struct{}
	status        Status
	offer         *offer
	// active counts the calls, waiting those without a session. lastUse is the time of the last call.
	active, waiting int
	lastUse         time.Time
	// rested reports whether run begins idle.
	rested bool

	// offering guards the entry in the catalog: the name of its source, the digest of its listing, and whether it
	// exists. sessions counts the sessions that filled it.
	offering sync.Mutex
	source   string
	digest   [sha256.Size]byte
	offered  bool
	sessions int
}

func newServer(spec Spec, options Options, env environment, starts chan struct{}) *server {
	s := &server{
		spec: spec, options: options, env: env,
		logger: options.Logger.With("upstream", spec.Name), version: spec.ProtocolVersion,
		lines: rate.NewLimiter(logRate, logBurst), starts: starts, cache: newCache(&spec, &options, env),
		attemptFailed: make(chan struct{}),
		done:          make(chan struct{}), tried: make(chan struct{}), arrived: make(chan struct{}),
		interest: make(chan struct{}, 1), offer: newOffer(&spec, new(listing), nil),
	}
	s.bounds.Store(newBounds(spec.limits(&options)))
	s.stderr = &lineWriter{pace: rate.NewLimiter(stderrRate, stderrBurst), line: func(text string) {
		if strings.TrimSpace(text) != "" {
			s.lastLine.Store(&text)
		}
		s.logFromServer("stderr", "%s", text)
	}}
	s.status = Status{Name: spec.Name, Prefix: spec.prefix(), Transport: spec.transport(), State: Connecting,
		Since: time.Now()}
	return s
}

// bounds are limits of calls with their gate. Running calls keep the bounds with which they began.
type bounds struct {
	limits manifest.Limits
	gate   *limit.Gate
}

func newBounds(l manifest.Limits) *bounds { return &bounds{l, limit.NewGate(l)} }

// limits returns the limits of the server's calls.
func (s *Spec) limits(options *Options) manifest.Limits {
	return s.Limits.Or(options.Limits).Or(manifest.DefaultLimits)
}

func (s *server) startTimeout() time.Duration { return cmp.Or(s.spec.StartTimeout, defaultStart) }

// logFromServer logs a message of a server, marked as its own and bounded.
func (s *server) logFromServer(where, format string, args ...any) {
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

// run connects the server, again and again. A lazy server whose lists are known is idle in between.
func (s *server) run(ctx context.Context) {
	var ended error         // why the last session of a lazy server ended
	var delay time.Duration // before the next attempt
	var failed failures
	idle := s.rested
	for ctx.Err() == nil {
		if idle {
			if s.waitIdle(ctx, ended, delay) != nil {
				return
			}
			if ended != nil {
				s.count()
			}
			ended = nil
		}
		release, err := s.acquireStart(ctx)
		if err != nil {
			break
		}
		began := time.Now()
		connected, err := s.serve(ctx, release)
		if ctx.Err() != nil {
			break
		}
		idle, delay = s.lazy() && connected, failed.delay(err, connected, time.Since(began))
		if idle {
			if !errors.Is(err, errIdle) {
				ended = err
			}
			continue
		}
		s.down(err, delay)
		s.removeAfterOutage()
		s.attempted()
		if retry.Wait(ctx, delay) != nil {
			return
		}
		s.count()
	}
	s.attempted()
}

// failures counts the attempts that failed one after the other.
type failures int

// delay returns the time before the next attempt, after one that took so long and ended with err. It is zero after a
// session that ended because nobody used it.
func (f *failures) delay(err error, connected bool, took time.Duration) time.Duration {
	if errors.Is(err, errIdle) {
		*f = 0
		return 0
	}
	if connected && took > stable {
		*f = 0
	}
	d := retry.Backoff(int(*f), firstDelay, lastDelay)
	*f++
	return d
}

func (s *server) attempted() { s.triedOnce.Do(func() { close(s.tried) }) }

// serve connects once, waits for the end of the session and returns its cause. connected reports whether the server's
// lists arrived. release is called when that is known.
func (s *server) serve(ctx context.Context, release func()) (connected bool, err error) {
	release = sync.OnceFunc(release)
	defer release()
	x, err := s.connectAny(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		s.lost(x)
		x.close(err)
	}()
	s.cancelRemoval()
	if err := s.refresh(x); err != nil {
		return false, err
	}
	s.up(x)
	s.attempted()
	release()
	return true, s.refreshUntilEnd(x)
}

// connectAny connects with the version that worked before, or the newest. It falls back to the older version if the
// server refuses the newest one, leaves the probe for it unanswered or ends, and remembers that in the last two cases.
func (s *server) connectAny(ctx context.Context) (*session, error) {
	probe := min(probeTime, s.startTimeout()/2)
	x, silent, err := s.connect(ctx, s.version, probe)
	switch {
	case ctx.Err() != nil, s.spec.ProtocolVersion != "":
	case s.version != "" && err != nil:
		s.version = "" // the server may be another one by now
	case s.version != "":
	case silent && err == nil:
		s.version = legacyVersion
	case silent && answered(err) != nil: // it knows only the newest version, and starts slowly
		x, _, err = s.connect(ctx, "", s.startTimeout())
	case errors.Is(err, errEnded):
		if x, _, err = s.connect(ctx, legacyVersion, probe); err == nil {
			s.version = legacyVersion
		}
	}
	return x, err
}

// refreshUntilEnd refreshes the lists until the session ends.
func (s *server) refreshUntilEnd(x *session) error {
	ticker := time.NewTicker(refreshTime)
	defer ticker.Stop()
	var unused <-chan time.Time
	var idle *time.Timer
	if s.lazy() {
		idle = time.NewTimer(s.idleTimeout())
		defer idle.Stop()
		unused = idle.C
	}
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
		case <-unused:
			again := s.releaseUnused(x)
			if again == 0 {
				return errIdle
			}
			idle.Reset(again)
			continue
		case <-x.changed:
			if retry.Wait(x.ctx, settle) != nil || often.Wait(x.ctx) != nil {
				continue // ends the session
			}
		}
		if err := s.refresh(x); err != nil {
			return err
		}
	}
}

// refresh updates the catalog and the cache from the server's lists.
func (s *server) refresh(x *session) error {
	l, err := x.list(x.ctx)
	if err != nil {
		return err
	}
	changed, err := s.present(l)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.status.Cached = false
	s.mu.Unlock()
	if s.currentOffer().kept {
		return nil // the cache has more
	}
	if err := s.cache.save(l, s.version, changed); err != nil {
		s.logger.Warn("the lists of an upstream server are not cached", "err", err)
	}
	return nil
}

// close stops the server and removes its entries from the catalog. It waits for both.
func (s *server) close() {
	s.withdraw()
	s.stop()
	<-s.done
	s.withdraw() // an offer that arrived meanwhile
	if s.forgotten.Load() {
		s.cache.remove()
	}
}
