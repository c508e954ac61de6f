// Package host runs plugins: it finds them, holds them against the operator's consent, and takes calls to their tools.
//
// A Host is made with New, filled once with Load or kept up to date with Watch, called with Call, and closed with Close. The
// packages below it do one thing each; the doors (mcpserver, ...) stand in front of it.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	execbroker "github.com/hako-run/hako/host/broker/exec"
	"github.com/hako-run/hako/host/broker/exec/gateway"
	"github.com/hako-run/hako/host/broker/exec/judge"
	httpbroker "github.com/hako-run/hako/host/broker/http"
	sqlbroker "github.com/hako-run/hako/host/broker/sql"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/sandbox"
	statestore "github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/trace"
)

// Options configures a Host. A nil *Options means all defaults: no plugins at all.
type Options struct {
	// Folders are watched for plugins, not recursively. A missing one is an error of Load and Watch.
	Folders []string
	// Shipped are plugins that are part of the program and so need no consent, unless they ask to run commands. One in a folder with
	// the same name takes its place.
	Shipped []Shipped
	// ShippedMounts maps the mounts that shipped plugins ask for to directories, which are made if missing. A shipped plugin with
	// a mount that is not in it is pending.
	ShippedMounts map[string]string
	// Roots are directories for all plugins whose manifests ask for roots and that run.
	Roots grant.Roots
	// Consents is the file with the operator's consents. It need not exist. Empty means none: only shipped plugins run.
	Consents string
	// ConsentStore, if not nil, has the consents instead of the file Consents: a store that replicas share; see grant.LoadStored. The caller
	// closes it, after the host.
	ConsentStore *statestore.Store
	// Updates says what happens to a new version of a plugin with consent that asks for no more than the old one.
	Updates grant.UpdateRule
	// MountQuota is the quota of the writable mounts of shipped plugins, in bytes. Zero means grant.DefaultMountQuota.
	MountQuota int64
	// MemoryBudget bounds the memory of all plugins together, in bytes; see sandbox.Options. Zero means 2 GiB.
	MemoryBudget int64
	// Processors is how many guests compute at the same moment; see sandbox.Options. Zero means GOMAXPROCS.
	Processors int
	// CacheDir keeps compiled code and copies of consented plugins. Empty keeps both in memory.
	CacheDir string
	// ReadOnly leaves all files and folders as they are, for a look at what is there: copies in CacheDir are read and none is added,
	// compiled code lies in a temporary directory, and folders of shipped mounts are not made.
	ReadOnly bool
	// DataDir keeps the databases of plugins, one file for each plugin and tenant; package sqlbroker has the layout. Empty keeps plugins
	// that ask for one from working.
	DataDir string
	// Databases, if not nil, has the databases of plugins instead of DataDir: in a store that replicas share.
	Databases *sqlbroker.PageStore
	// Settings are the operator's for single plugins, by name.
	Settings map[string]Settings
	// Tenants are the operator's for callers of single tenants, by name. Callers of others get what is set for all.
	Tenants map[string]Tenant
	// Limits override every manifest's; Settings override them.
	Limits manifest.Limits
	// Ceilings are the most that manifests get of each limit. They do not hold for Limits and Settings. What is zero is taken from
	// manifest.DefaultCeilings.
	Ceilings manifest.Limits
	// Credentials are applied to the requests of plugins that ask for them. Nil means that there are none. Close closes them.
	Credentials Credentials
	// MaxPluginSize is the largest plugin file, in bytes. Zero means 64 MiB.
	MaxPluginSize int64
	// Mock answers HTTP requests from the recordings that plugins ship with and never touches the network.
	Mock bool
	// RecordDir is a directory for recordings: when a plugin goes out of service, the HTTP exchanges that it had are written to
	// NAME.recordings.json there. Empty records nothing.
	RecordDir string
	// Clock is the guests' wall clock. Nil means the real one, or with Mock that of the recordings.
	Clock func() time.Time
	// Locale is for callers without one, a BCP 47 tag. Empty means "en".
	Locale string
	// Proxy is an upstream proxy (http, https or socks5) for the HTTP requests of plugins and the connections of their
	// commands; see httpbroker.Options. Nil means none.
	Proxy *url.URL
	// Governance decides about calls, limits and records them. Zero allows everything.
	Governance pipeline.Governance
	// CommandRules returns the operator's rules for the commands of plugins, which come before judge's own. It is called for every
	// command, so that changes are live. Nil means none.
	CommandRules func() []judge.Rule
	// Environ is the environment of which commands get what is granted, "NAME=value".
	Environ []string
	// Changed is told of each change of a plugin: it comes into service or goes out of it, another version does, or it waits. One whose file is
	// gone has the state Removed. It is called from one goroutine at a time and must not call the host. It may be nil.
	Changed func(Status)
	// Tracer makes spans of calls and of what they do. Nil makes none.
	Tracer *trace.Tracer
	// Observer sees every call, every HTTP request if it is a RequestObserver, every statement if it is a StatementObserver, every command
	// if it is a CommandObserver, and what becomes of instances if it is a sandbox.Observer. It may be nil.
	Observer pipeline.Observer
	// Logger receives what happens. Nil discards it.
	Logger *slog.Logger
}

// RequestObserver is a pipeline.Observer that also sees the HTTP requests of plugins. Its method is called from many goroutines at once.
type RequestObserver interface {
	RequestEnded(plugin string, o httpbroker.Observation)
}

// StatementObserver is a pipeline.Observer that also sees the statements of plugins. Its method is called from many goroutines at once.
type StatementObserver interface {
	StatementEnded(plugin string, o sqlbroker.Observation)
}

// CommandObserver is a pipeline.Observer that also sees the commands of plugins. Its methods are called from many goroutines at once.
type CommandObserver interface {
	CommandEnded(plugin string, o execbroker.Observation)
	// ConnectionEnded sees the connections of commands.
	ConnectionEnded(plugin string, o gateway.Observation)
}

// Settings are what an operator sets for one plugin.
type Settings struct {
	// Prefix is put in front of the names of its tools and prompts.
	Prefix string
	// Config holds its configuration, as its manifest declares it.
	Config map[string]any
	// Limits override the manifest's.
	Limits manifest.Limits
	// State, if not empty, replaces the manifest's.
	State manifest.State
	// HTTP adds to single HTTP permissions, by name.
	HTTP map[string]httpbroker.RuleOptions
}

// Credentials are the operator's; *credential.Broker is one.
type Credentials interface {
	httpbroker.Credentials
	// Configured reports whether any tenant has a credential of that name.
	Configured(name string) bool
	// ConfiguredFor reports whether requests of the tenant can have a credential of that name: its own, or one for all.
	ConfiguredFor(tenant, name string) bool
	// Watch renews what expires until ctx ends.
	Watch(ctx context.Context)
	// Close is called when all plugins are out of service.
	Close() error
}

// Tenant is what an operator sets for one tenant.
type Tenant struct {
	// Config holds the configuration of plugins, by their name: keys that take the place of those in Settings. A key that is the
	// configKey of a permission cannot be among them, because grants are the same for all.
	Config map[string]map[string]any
}

// Shipped is one plugin that is part of the program.
type Shipped struct {
	// File is its file name, for messages.
	File string
	Wasm []byte
}

// Host runs plugins. It is safe for concurrent use.
type Host struct {
	// current are the options; only Reconfigure changes them, with scanning held.
	current  atomic.Pointer[Options]
	logger   *slog.Logger
	engine   *sandbox.Engine
	catalog  *catalog.Catalog
	pipeline *pipeline.Pipeline
	store    store
	index    *index
	listings *listings

	// retired counts services that are being closed.
	retired sync.WaitGroup

	// added wakes the compiler.
	added chan struct{}

	// scanning is held while plugins are looked at, which may take long, and guards consents. Whoever changes a plugin holds it and,
	// for the moment of the change, mu.
	scanning sync.Mutex
	consents consents

	// mu guards what follows.
	mu      sync.Mutex
	plugins map[string]*plugin // by path
	closed  bool
}

// New returns a Host without plugins; Load or Watch brings them. It fails if the cache directory cannot be used.
func New(options *Options) (*Host, error) {
	h := &Host{catalog: new(catalog.Catalog), plugins: map[string]*plugin{}, added: make(chan struct{}, 1), listings: newListings()}
	o := new(Options)
	if options != nil {
		*o = *options
	}
	h.current.Store(o)
	if h.logger = o.Logger; h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	engineOptions := &sandbox.Options{Logger: h.logger, Redact: h.redact, MemoryBudget: o.MemoryBudget, Processors: o.Processors}
	h.index = openIndex("")
	if dir := o.CacheDir; dir != "" {
		h.index = openIndex(filepath.Join(dir, "index.json"))
		h.index.readOnly = o.ReadOnly
		h.store.dir, h.store.readOnly = filepath.Join(dir, "plugins"), o.ReadOnly
		if !o.ReadOnly {
			engineOptions.CacheDir = filepath.Join(dir, "compiled")
		}
	}
	var err error
	engineOptions.Observer, _ = o.Observer.(sandbox.Observer)
	if h.engine, err = sandbox.New(engineOptions); err != nil {
		return nil, err
	}
	h.pipeline = pipeline.New(h.catalog, &pipeline.Options{
		Missing: h.missing, Usable: h.Usable, Locale: o.Locale, Governance: o.Governance, Tracer: o.Tracer, Observer: o.Observer, Logger: h.logger,
	})
	return h, nil
}

// options are those in force. They must not be changed.
func (h *Host) options() *Options { return h.current.Load() }

// Catalog is what is on offer. It changes while Watch runs.
func (h *Host) Catalog() *catalog.Catalog { return h.catalog }

// Call takes one call to a plugin and back; see pipeline.Pipeline.Call for its errors.
func (h *Host) Call(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
	return h.pipeline.Call(ctx, call)
}

// WatchUpdates tells of resources that calls have changed; see pipeline.Pipeline.WatchUpdates.
func (h *Host) WatchUpdates(updated func(tenant, uri string)) (stop func()) {
	return h.pipeline.WatchUpdates(updated)
}

// Visible reports whether the caller may ever call the tool, or ask to, and its tenant can use it. Doors list no others.
func (h *Host) Visible(caller pipeline.Caller, tool *catalog.Tool) bool {
	return h.Offered(caller.Tenant, tool) && h.pipeline.Visible(caller, tool)
}

// Offered reports whether callers of the tenant can use the tool: they have what its source needs, and its configuration for them is one
// with which the tool is on offer.
func (h *Host) Offered(tenant string, tool *catalog.Tool) bool {
	return h.Usable(tenant, tool.Source) && tool.Spec.OfferedUnder(tool.Source.ConfigFor(tenant))
}

// Usable reports whether callers of the tenant have what the source needs: if it asks for credentials, their own or a shared one. Any one
// makes a plugin useful, which may know several services. Recordings need none.
func (h *Host) Usable(tenant string, source *catalog.Source) bool {
	return len(source.Credentials) == 0 || h.options().Mock || slices.ContainsFunc(source.Credentials, func(name string) bool {
		return h.options().Credentials != nil && h.options().Credentials.ConfiguredFor(tenant, name)
	})
}

// MayAsk reports whether a call of the tool by the caller may put a question to people; see pipeline.Pipeline.MayAsk.
func (h *Host) MayAsk(caller pipeline.Caller, tool *catalog.Tool) bool {
	return h.pipeline.MayAsk(caller, tool)
}

// Memory tells how much of the memory budget of all plugins is used, and how much there is, in bytes.
func (h *Host) Memory() (used, limit int64) { return h.engine.Memory() }

// Close takes all plugins out of the catalog, waits for the calls in flight and frees everything. It may be called twice.
func (h *Host) Close() error {
	h.scanning.Lock()
	defer h.scanning.Unlock()
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	for _, p := range h.plugins {
		h.retire(p)
	}
	h.mu.Unlock()
	h.listings.close()
	h.retired.Wait()
	err := h.engine.Close()
	if h.options().Credentials != nil {
		err = errors.Join(err, h.options().Credentials.Close())
	}
	return err
}

// missing explains a tool that exists but waits for consent.
func (h *Host) missing(kind, name string) error {
	if kind != "tool" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.status.State != Active && p.offers(name, h.options().Settings) {
			return &pipeline.NotAllowedError{Name: name, Reason: fmt.Sprintf("plugin %s is %s: %s", p.status.Name, p.status.State, p.status.Reason)}
		}
	}
	return nil
}

// State says how a plugin stands.
type State string

// States.
const (
	Active   State = "active"   // its tools can be called
	Pending  State = "pending"  // waits for the operator's consent
	Revoked  State = "revoked"  // the operator took the consent back
	Broken   State = "broken"   // the file is not a usable plugin
	Conflict State = "conflict" // another plugin has its name or one of its tools
	Removed  State = "removed"  // its file is gone; for Options.Changed alone
)

// States lists them all.
var States = []State{Active, Pending, Revoked, Broken, Conflict}

// Status is one plugin as an operator sees it.
type Status struct {
	// Path is the file; Name, Version and Digest are what is in it, as far as it could be read.
	Path, Name, Version, Digest string
	State                       State
	// Reason says why the plugin is not active, and the remedy. An active one may have a warning here.
	Reason string
	// Serving is the digest in service; it differs from Digest while an update is pending or broken, and is empty if none is.
	Serving string
	// Manifest is the file's. Nil if it could not be read. It must not be changed.
	Manifest *manifest.Manifest
	// Grants are those in force for what is in service.
	Grants grant.Grants
	// Tools are the names in service, as the doors show them.
	Tools []string
	// Running and Waiting count its calls now: those in an instance and those that wait for one.
	Running, Waiting int
	// Idle and Used count its instances between calls: those ready for one, and those that have to be put back first.
	Idle, Used int
	// Interpreted says that its code is not compiled yet.
	Interpreted bool
}

// Plugins lists all plugins found, active or not, by name and path.
func (h *Host) Plugins() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]Status, 0, len(h.plugins))
	for _, p := range h.plugins {
		status := p.status
		if p.service != nil {
			load := p.service.sandbox.Load()
			status.Running, status.Waiting = load.Running, load.Waiting
			status.Idle, status.Used, status.Interpreted = load.Idle, load.Used, load.Interpreted
		}
		list = append(list, status)
	}
	sortStatus(list)
	return list
}
