// Package mcpclient offers the tools of other MCP servers like those of plugins.
//
// Upstreams keeps the servers of a configuration connected: programs over standard input and output, and streamable
// HTTP. It adds their tools, prompts and resources to the catalog under a prefix and forwards calls. A Spec describes
// one server; ReadFile reads Specs. Everything from a server is untrusted: names and schemas are made safe, sizes and
// rates are bounded, and an entry that cannot be used is omitted without the others.
package mcpclient

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
)

// Options configures Upstreams.
type Options struct {
	// Catalog receives the entries of the servers. It is required.
	Catalog *catalog.Catalog
	// Dir is the base of relative paths in a Spec, and the working directory of programs. Empty means the process's.
	Dir string
	// Environ has the variables for ${NAME}, as "NAME=value". Programs inherit only PATH, HOME, the language and the
	// temporary directory from it.
	Environ []string
	// Credentials are those that a Spec can name. It may be nil.
	Credentials Credentials
	// Proxy is for HTTP servers that are not on this machine. Nil means none.
	Proxy *url.URL
	// Limits apply to servers without their own. Zero fields mean manifest.DefaultLimits.
	Limits manifest.Limits
	// Start applies to servers without their own. Empty means Eager.
	Start Start
	// CacheDir is a directory for the last lists of each server, which are offered until the server is connected. It is
	// made when it is needed. Empty means none.
	CacheDir string
	// Version is hako's version, which is sent to servers.
	Version string
	// Logger receives changes of state, and the standard error of programs, marked and bounded. Nil discards them.
	Logger *slog.Logger

	// outage replaces the constant in tests, unless zero.
	outage time.Duration
}

// Upstreams are the servers of a configuration. They are safe for concurrent use.
type Upstreams struct {
	env environment
	ctx context.Context // ends with Close
	end context.CancelFunc
	// starts has an entry for each server that is being started.
	starts chan struct{}

	// applying is held by Apply and Close, which may take long. It guards options except for the logger.
	applying sync.Mutex
	options  Options
	// mu guards the fields below.
	mu       sync.Mutex
	servers  map[string]*server
	disabled []Spec
	invalid  []Spec
}

// New returns Upstreams without servers. Apply adds them.
func New(options Options) (*Upstreams, error) {
	var err error
	if options.Dir, err = filepath.Abs(options.Dir); err != nil {
		return nil, err
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	u := &Upstreams{options: options, env: newEnvironment(options.Environ), servers: map[string]*server{}}
	u.env.addDefaults(options.Dir)
	u.starts = make(chan struct{}, startsAtOnce)
	u.ctx, u.end = context.WithCancel(context.Background())
	return u, nil
}

// Apply replaces the servers with specs. It stops removed and changed servers, then offers the cached lists of new and
// changed ones and starts them. It does not wait for their connections. Changed limits, except for Output, apply to
// later calls and stop nothing. The error names the invalid Spec, or two that cannot be distinguished; then nothing has
// changed.
func (u *Upstreams) Apply(specs []Spec) error {
	_, err := u.apply(specs)
	return err
}

// apply implements Apply. It reports whether any server changed.
func (u *Upstreams) apply(specs []Spec) (changed bool, err error) {
	if err := checkSet(specs); err != nil {
		return false, err
	}
	u.applying.Lock()
	defer u.applying.Unlock()
	if u.ctx.Err() != nil {
		return false, errClosed
	}
	wanted, named := map[string]Spec{}, map[string]bool{}
	var disabled, invalid []Spec
	for _, spec := range specs {
		named[spec.Name] = true
		if spec.Disabled {
			disabled = append(disabled, spec)
		} else if spec.Invalid != "" {
			invalid = append(invalid, spec)
			u.options.Logger.Error("the entry of an upstream server is invalid: a previous one stays in force",
				"upstream", oneLineOf(spec.Name), "err", oneLineOf(spec.Invalid))
		} else {
			wanted[spec.Name] = spec
		}
	}
	changed = u.retire(func(s *server) bool {
		spec, ok := wanted[s.spec.Name]
		s.forgotten.Store(!named[s.spec.Name])
		if slices.ContainsFunc(invalid, func(i Spec) bool { return i.Name == s.spec.Name }) {
			return false
		}
		return !ok || !s.serves(&spec, &u.options)
	})
	u.mu.Lock()
	u.disabled, u.invalid = disabled, invalid
	var added []*server
	for name, spec := range wanted {
		if s := u.servers[name]; s != nil && s.bounds.Load().limits != spec.limits(&u.options) {
			s.bounds.Store(newBounds(spec.limits(&u.options)))
			changed = true
		}
		if u.servers[name] == nil {
			s := newServer(spec, u.options, u.env, u.starts)
			u.servers[name] = s
			added = append(added, s)
			changed = true
		}
	}
	u.mu.Unlock()
	u.restore(added)
	for _, s := range added {
		s.start(u.ctx)
	}
	return changed, nil
}

// restore offers the cached lists of servers.
func (u *Upstreams) restore(servers []*server) {
	defer u.options.Catalog.Hold()()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, s := range servers {
		group.Go(func() error { s.restore(); return nil })
	}
	_ = group.Wait() // a server without a cache is connected
}

// serves reports whether s can continue as the server that newServer would make. Its limits may differ, except for
// Output, with which the connection was made.
func (s *server) serves(spec *Spec, options *Options) bool {
	was, now := s.spec, *spec
	was.Limits, now.Limits = manifest.Limits{}, manifest.Limits{}
	return reflect.DeepEqual(was, now) && spec.limits(options).Output == s.bounds.Load().limits.Output &&
		s.options.Start == options.Start && (spec.URL == "" || reflect.DeepEqual(options.Proxy, s.options.Proxy))
}

// SetDefaults changes Options.Limits, Options.Proxy and Options.Start for later calls of Apply.
func (u *Upstreams) SetDefaults(limits manifest.Limits, proxy *url.URL, start Start) {
	u.applying.Lock()
	defer u.applying.Unlock()
	u.options.Limits, u.options.Proxy, u.options.Start = limits, proxy, start
}

// retire stops servers concurrently and waits for them. It reports whether there were any. The caller holds applying.
func (u *Upstreams) retire(which func(*server) bool) (any bool) {
	var group sync.WaitGroup
	u.mu.Lock()
	for name, s := range u.servers {
		if which(s) {
			delete(u.servers, name)
			group.Go(s.close)
			any = true
		}
	}
	u.mu.Unlock()
	group.Wait()
	return any
}

// Ready waits until each server has been connected or has failed once, or is idle. If ctx ends first, Ready returns its
// error.
func (u *Upstreams) Ready(ctx context.Context) error {
	u.mu.Lock()
	servers := slices.Collect(maps.Values(u.servers))
	u.mu.Unlock()
	for _, s := range servers {
		select {
		case <-s.tried:
		case <-ctx.Done():
			return fmt.Errorf("upstream server %s is still being connected: %w", s.spec.Name, ctx.Err())
		}
	}
	return nil
}

// Status lists all servers by name.
func (u *Upstreams) Status() []Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []Status
	for _, s := range u.servers {
		list = append(list, s.Status())
	}
	for _, spec := range u.disabled {
		list = append(list, Status{Name: spec.Name, Prefix: spec.prefix(), Transport: spec.transport(),
			State: Disabled})
	}
	for _, spec := range u.invalid {
		if u.servers[spec.Name] == nil {
			list = append(list, Status{Name: oneLineOf(spec.Name), Prefix: spec.prefix(), Transport: spec.transport(),
				State: Down, Error: oneLineOf(spec.Invalid)})
		}
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Close stops all servers, removes their entries from the catalog and waits for the end of their programs, which may
// take seconds. It may be called twice.
func (u *Upstreams) Close() error {
	u.end()
	u.applying.Lock()
	defer u.applying.Unlock()
	u.retire(func(*server) bool { return true })
	return nil
}
