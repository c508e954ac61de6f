// Package mcpclient offers the tools of other MCP servers as if they were plugins'.
//
// Upstreams keeps each server of a configuration connected (a program over its standard input and output, or streamable
// HTTP), puts what it offers into the catalog under a prefix, and passes calls on. Everything that a server says is a
// stranger's: names and schemas are made safe, sizes and rates are bounded, and what cannot be used is left out by
// itself.
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
	"slices"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
)

// Options configures Upstreams.
type Options struct {
	// Catalog takes what the servers offer. It must be set.
	Catalog *catalog.Catalog
	// Dir is where relative paths of a Spec start, and the working directory of programs. Empty means the process's.
	Dir string
	// Environ is what ${NAME} refers to and where programs get PATH, HOME, the language and the temporary directory
	// from, "NAME=value". They get nothing else of it.
	Environ []string
	// Credentials are those that a Spec can name. It may be nil.
	Credentials Credentials
	// Proxy is for servers over HTTP that are not on this machine. Nil means none.
	Proxy *url.URL
	// Limits are for servers that state none. What is zero there too is manifest.DefaultLimits'.
	Limits manifest.Limits
	// Version is what hako calls its own version to servers.
	Version string
	// Logger receives changes of state, and what servers write to their standard error, marked and bounded. Nil
	// discards it.
	Logger *slog.Logger

	// outage is for tests to shorten; zero means the constant.
	outage time.Duration
}

// Upstreams are the servers of a configuration. It is safe for concurrent use.
type Upstreams struct {
	env environment
	ctx context.Context // ends with Close
	end context.CancelFunc

	// applying is held by Apply and Close, which may take long, and guards options but for the logger.
	applying sync.Mutex
	options  Options
	// mu guards what follows.
	mu       sync.Mutex
	servers  map[string]*server
	disabled []Spec
}

// New returns Upstreams without servers; Apply brings them.
func New(options Options) (*Upstreams, error) {
	var err error
	if options.Dir, err = filepath.Abs(options.Dir); err != nil {
		return nil, err
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	u := &Upstreams{options: options, env: newEnvironment(options.Environ), servers: map[string]*server{}}
	u.ctx, u.end = context.WithCancel(context.Background())
	return u, nil
}

// Apply makes specs the servers: new ones are started, those that are no more or are not as they were are stopped
// first. Other limits, but for the size of answers, are for the calls from then on, and stop nothing. It does not wait
// for new ones to be connected. The error says which Spec is wrong, or that two cannot be told apart; then nothing
// changes.
func (u *Upstreams) Apply(specs []Spec) error {
	_, err := u.apply(specs)
	return err
}

// apply is Apply. It reports whether any server is not as it was.
func (u *Upstreams) apply(specs []Spec) (changed bool, err error) {
	if err := checkSet(specs); err != nil {
		return false, err
	}
	u.applying.Lock()
	defer u.applying.Unlock()
	if u.ctx.Err() != nil {
		return false, errClosed
	}
	wanted := map[string]Spec{}
	var disabled []Spec
	for _, spec := range specs {
		if spec.Disabled {
			disabled = append(disabled, spec)
		} else {
			wanted[spec.Name] = spec
		}
	}
	changed = u.retire(func(s *server) bool {
		spec, ok := wanted[s.spec.Name]
		return !ok || !s.serves(&spec, &u.options)
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.disabled = disabled
	for name, spec := range wanted {
		if s := u.servers[name]; s != nil && s.bounds.Load().limits != spec.limits(&u.options) {
			s.bounds.Store(newBounds(spec.limits(&u.options)))
			changed = true
		}
		if u.servers[name] == nil {
			s := newServer(spec, u.options, u.env)
			u.servers[name] = s
			s.start(u.ctx)
			changed = true
		}
	}
	return changed, nil
}

// serves reports whether s can go on as what newServer would make. It may have other limits, but for the size of
// answers, which the connection was made for.
func (s *server) serves(spec *Spec, options *Options) bool {
	was, now := s.spec, *spec
	was.Limits, now.Limits = manifest.Limits{}, manifest.Limits{}
	return reflect.DeepEqual(was, now) && spec.limits(options).Output == s.bounds.Load().limits.Output &&
		(spec.URL == "" || reflect.DeepEqual(options.Proxy, s.options.Proxy))
}

// SetDefaults changes Options.Limits and Options.Proxy, from the next Apply on.
func (u *Upstreams) SetDefaults(limits manifest.Limits, proxy *url.URL) {
	u.applying.Lock()
	defer u.applying.Unlock()
	u.options.Limits, u.options.Proxy = limits, proxy
}

// retire stops servers, all at once, waits, and reports whether there were any. applying is held.
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

// Ready waits until each server has been connected or has failed once, or ctx ends, whose error it then returns.
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

// Status lists all servers, by name.
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
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Close stops all servers, takes what they offer from the catalog and waits for their programs to be gone: some seconds
// for one that does not want to. It may be called twice.
func (u *Upstreams) Close() error {
	u.end()
	u.applying.Lock()
	defer u.applying.Unlock()
	u.retire(func(*server) bool { return true })
	return nil
}
