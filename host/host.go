// Package host runs plugins: it finds them in folders, checks the operator's consent, and runs calls of their tools.
//
// New returns a Host. Load brings the plugins into service once, and Watch keeps them up to date; Call runs a tool;
// Close ends everything. The packages below do one thing each. Frontends, such as package mcpserver, use a Host.
package host

import (
	"cmp"
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

	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/execbroker/gateway"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/judge"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/sandbox"
	statestore "github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/host/wasmfile"
)

// Options configures a Host. A nil *Options means all defaults: no plugins at all.
type Options struct {
	// Folders are the plugin folders, without subfolders. A missing folder is an error of Load and Watch.
	Folders []string
	// Shipped are plugins that are part of the program. They need no consent unless they ask to run commands. A plugin
	// in a folder replaces the shipped one of the same name.
	Shipped []Shipped
	// ShippedMounts maps the mounts that shipped plugins ask for to directories, which are made if missing. A shipped
	// plugin with a mount that is not in it is pending.
	ShippedMounts map[string]string
	// Roots are directories for all plugins whose manifests ask for roots and that run.
	Roots grant.Roots
	// Consents is the file with the operator's consents. It need not exist. Empty means none: only shipped plugins run.
	Consents string
	// ConsentStore, if not nil, has the consents instead of the file Consents: a store that replicas share; see
	// grant.LoadStored. The caller closes it, after the host.
	ConsentStore *statestore.Store
	// Updates is the rule for new versions of a plugin with consent that ask for no more than the old one.
	Updates grant.UpdateRule
	// MountQuota is the quota of the writable mounts of shipped plugins, in bytes. Zero means grant.DefaultMountQuota.
	MountQuota int64
	// MemoryBudget bounds the total memory of all plugins, in bytes; see sandbox.Options. Zero means 2 GiB.
	MemoryBudget int64
	// Processors bounds the guests that compute at the same time; see sandbox.Options. Zero means GOMAXPROCS.
	Processors int
	// Interpret runs plugins without compiling them, where that is possible; see sandbox.Options.
	Interpret bool
	// CompileGrace bounds how long Close waits for compilations; see sandbox.Options.
	CompileGrace time.Duration
	// CacheDir keeps compiled code and copies of consented plugins. Empty keeps both in memory.
	CacheDir string
	// ReadOnly leaves all files and folders as they are, for a look at what is there: copies in CacheDir are read and
	// none is added, compiled code lies in a temporary directory, and folders of shipped mounts are not made.
	ReadOnly bool
	// DataDir has the databases of plugins, one file for each plugin and tenant; package sqlbroker has the layout. If
	// it is empty, plugins that ask for a database are broken.
	DataDir string
	// Databases, if not nil, has the databases of plugins instead of DataDir: in a store that replicas share.
	Databases *sqlbroker.PageStore
	// Settings are the operator's for single plugins, by name.
	Settings map[string]Settings
	// Tenants has settings for single tenants, by name. They override Settings.
	Tenants map[string]Tenant
	// Limits override every manifest's; Settings override them.
	Limits manifest.Limits
	// Ceilings bound the limits of manifests, but not Limits and Settings. Zero fields mean those of
	// manifest.DefaultCeilings.
	Ceilings manifest.Limits
	// Credentials are applied to the requests of plugins that ask for them. Nil means none. Close closes them.
	Credentials Credentials
	// MaxPluginSize is the largest plugin file, in bytes. Zero means 64 MiB.
	MaxPluginSize int64
	// Mock answers HTTP requests from the recordings that plugins ship with and never uses the network.
	Mock bool
	// RecordDir is a directory for recordings: when a plugin is stopped, its HTTP exchanges are written to
	// NAME.recordings.json. Empty records nothing.
	RecordDir string
	// Results keeps tool results that are too large for their callers, and offers them; see pipeline.Options. Nil keeps
	// none.
	Results *results.Keeper
	// Clock is the guests' wall clock. Nil means the real clock, or with Mock the clock of the recordings.
	Clock func() time.Time
	// Locale is for callers without one, a BCP 47 tag. Empty means "en".
	Locale string
	// Proxy is an upstream proxy (http, https or socks5) for the HTTP requests of plugins and the connections of their
	// commands; see httpbroker.Options. Nil means none.
	Proxy *url.URL
	// Toolsets are the selections of the catalog that callers are offered. Nil offers everything to everyone.
	Toolsets *toolset.Config
	// Governance has the policy, quotas and audit log for calls. Zero allows everything.
	Governance pipeline.Governance
	// AuditOptional lets calls proceed that cannot be recorded in Governance.Audit.
	AuditOptional bool
	// AuditFields are the arguments to record in full, by tool name. Others are only part of the digest.
	AuditFields map[string][]string
	// CommandRules returns the operator's rules for the commands of plugins, which precede judge's own. It is called
	// for every command, so changes apply at once. Nil means none.
	CommandRules func() []judge.Rule
	// Environ has environment variables as "NAME=value". Commands get those that are granted.
	Environ []string
	// Changed, if not nil, is called with the new status of a plugin that starts, stops, changes its version or waits
	// for consent. A plugin whose file is gone has the state Removed. Calls are serialized. It must not call the host.
	Changed func(Status)
	// Tracer records spans of calls and their operations. Nil records none.
	Tracer *trace.Tracer
	// Observer, if not nil, observes calls. It may also implement RequestObserver, StatementObserver, CommandObserver,
	// SecretObserver and sandbox.Observer.
	Observer pipeline.Observer
	// Logger receives host and guest records. Nil discards them.
	Logger *slog.Logger
}

// RequestObserver is a pipeline.Observer that also observes HTTP requests of plugins. It is called concurrently.
type RequestObserver interface {
	RequestEnded(plugin string, o httpbroker.Observation)
}

// StatementObserver is a pipeline.Observer that also observes SQL statements of plugins. It is called concurrently.
type StatementObserver interface {
	StatementEnded(plugin string, o sqlbroker.Observation)
}

// CommandObserver is a pipeline.Observer that also observes commands of plugins. It is called concurrently.
type CommandObserver interface {
	CommandEnded(plugin string, o execbroker.Observation)
	// ConnectionEnded is called for each network connection of a command.
	ConnectionEnded(plugin string, o gateway.Observation)
}

// Settings are an operator's settings for one plugin.
type Settings struct {
	// Prefix is prepended to the names of its tools and prompts.
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

// Credentials applies credentials to requests; *credential.Broker implements it.
type Credentials interface {
	httpbroker.Credentials
	// Configured reports whether any tenant has a credential of that name.
	Configured(name string) bool
	// ConfiguredFor reports whether the tenant has a credential of that name, its own or a shared one.
	ConfiguredFor(tenant, name string) bool
	// Watch renews expiring credentials until ctx ends.
	Watch(ctx context.Context)
	// Close is called after all plugins have stopped.
	Close() error
}

// Tenant has an operator's settings for one tenant.
type Tenant struct {
	// Config has configuration keys by plugin, which override those in Settings. It must not have the configKey of a
	// permission, because grants are the same for all tenants.
	Config map[string]map[string]any
}

// Shipped is one plugin that is part of the program.
type Shipped struct {
	// File is its file name, for messages.
	File string
	// Module is the result of wasmfile.Read for the plugin, without Recordings. manifest.ParseModule must accept it:
	// the host does not validate it again. If it is nil, the plugin is read.
	Module *wasmfile.Module
	// Wasm returns the plugin. It is called whenever its code or its recordings are needed, so that the host need not
	// hold it.
	Wasm func() ([]byte, error)
}

// Host runs plugins. It is safe for concurrent use.
type Host struct {
	// current has the options in force. Reconfigure replaces them while holding scanning.
	current  atomic.Pointer[Options]
	logger   *slog.Logger
	engine   *sandbox.Engine
	catalog  *catalog.Catalog
	pipeline *pipeline.Pipeline
	copies   copies
	index    *index
	listings *listings

	// retired counts services that are being closed.
	retired sync.WaitGroup

	// added wakes the compiler.
	added chan struct{}

	// scanning is held while plugins are evaluated, which may take long, and guards consents. Changing a plugin
	// requires scanning and, for the change itself, mu.
	scanning sync.Mutex
	consents consents

	// mu guards the fields below.
	mu      sync.Mutex
	plugins map[string]*plugin   // by path
	serving map[string][]*plugin // those with a service, by its name
	closed  bool
}

// New returns a Host without plugins; call Load next. It fails if the cache directory cannot be used.
func New(options *Options) (*Host, error) {
	h := &Host{catalog: new(catalog.Catalog), plugins: map[string]*plugin{},
		serving: map[string][]*plugin{}, added: make(chan struct{}, 1), listings: newListings()}
	o := new(Options)
	if options != nil {
		*o = *options
	}
	h.current.Store(o)
	if h.logger = o.Logger; h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	engineOptions := &sandbox.Options{Logger: h.logger, Redact: h.redact, MemoryBudget: o.MemoryBudget,
		Processors: o.Processors, Interpret: o.Interpret, CompileGrace: o.CompileGrace}
	h.index = openIndex("")
	if dir := o.CacheDir; dir != "" {
		h.index = openIndex(filepath.Join(dir, "index.json"))
		h.index.readOnly = o.ReadOnly
		h.copies.dir = plugincopies.In(dir)
		h.copies.dir.ReadOnly = o.ReadOnly
		if !o.ReadOnly {
			engineOptions.CacheDir = compiledDir(dir)
		}
	}
	var err error
	engineOptions.Observer, _ = o.Observer.(sandbox.Observer)
	if h.engine, err = sandbox.New(engineOptions); err != nil {
		return nil, err
	}
	h.pipeline = pipeline.New(h.catalog, &pipeline.Options{
		Missing: h.missing, Offered: h.Offered, Settings: o.pipelineSettings(), Governance: o.Governance,
		Results: o.Results, Tracer: o.Tracer, Observer: o.Observer, Logger: h.logger,
	})
	if o.Results != nil {
		if err := o.Results.Offer(h.catalog); err != nil {
			return nil, errors.Join(err, h.engine.Close())
		}
	}
	return h, nil
}

// pipelineSettings returns the options that are the pipeline's, and can change.
func (o *Options) pipelineSettings() pipeline.Settings {
	return pipeline.Settings{Locale: o.Locale, AuditOptional: o.AuditOptional, AuditFields: o.AuditFields,
		Toolsets: o.Toolsets}
}

// compiledDir is the directory of compiled code in a cache directory.
func compiledDir(cache string) string { return filepath.Join(cache, "compiled") }

// options returns the options in force. They must not be changed.
func (h *Host) options() *Options { return h.current.Load() }

// Catalog returns the live catalog.
func (h *Host) Catalog() *catalog.Catalog { return h.catalog }

// Call runs one call; see pipeline.Pipeline.Call for its errors.
func (h *Host) Call(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error) {
	return h.pipeline.Call(ctx, call)
}

// WatchUpdates reports resources changed by calls; see pipeline.Pipeline.WatchUpdates.
func (h *Host) WatchUpdates(updated func(tenant, uri string)) (stop func()) {
	return h.pipeline.WatchUpdates(updated)
}

// View returns the offer to the caller; see pipeline.Pipeline.View.
func (h *Host) View(caller pipeline.Caller) *catalog.View { return h.pipeline.View(caller) }

// MayChoose reports whether the caller may use the toolset that it names.
func (h *Host) MayChoose(caller pipeline.Caller) bool { return h.pipeline.MayChoose(caller) }

// Tools returns the tools that are to be listed for the caller, in the form in which they are offered.
func (h *Host) Tools(caller pipeline.Caller) []*catalog.Tool {
	return h.visible(caller, h.View(caller).Tools)
}

// Deferred returns the tools that Tools leaves out because the catalog is too large to list; see toolset.Search.
func (h *Host) Deferred(caller pipeline.Caller) []*catalog.Tool {
	return h.visible(caller, h.View(caller).Deferred)
}

func (h *Host) visible(caller pipeline.Caller, tools []*catalog.Tool) (list []*catalog.Tool) {
	for _, tool := range tools {
		if h.Visible(caller, tool) {
			list = append(list, h.Described(caller, tool))
		}
	}
	return list
}

// Visible reports whether the tool is to be listed for the caller: the policy may allow a call, or ask a person, and
// the tenant can use it.
func (h *Host) Visible(caller pipeline.Caller, tool *catalog.Tool) bool {
	return h.Offered(caller.Tenant, tool) && h.pipeline.Visible(caller, tool)
}

// Described returns the tool as it is to be described to the caller; see pipeline.Pipeline.Described.
func (h *Host) Described(caller pipeline.Caller, tool *catalog.Tool) *catalog.Tool {
	return h.pipeline.Described(caller, tool)
}

// Offered reports whether the tenant can use the tool: it has the required credentials, and the tool is offered under
// the tenant's configuration.
func (h *Host) Offered(tenant string, tool *catalog.Tool) bool {
	return h.Usable(tenant, tool.Source) && tool.Spec.OfferedUnder(tool.Source.ConfigFor(tenant))
}

// Usable reports whether the tenant has a credential that the source asks for, its own or a shared one. One is enough:
// a plugin may support several services. Replay needs none.
func (h *Host) Usable(tenant string, source *catalog.Source) bool {
	return len(source.Credentials) == 0 || h.options().Mock ||
		slices.ContainsFunc(source.Credentials, func(name string) bool {
			return h.options().Credentials != nil && h.options().Credentials.ConfiguredFor(tenant, name)
		})
}

// MayAsk reports whether the caller's call of the tool may have to ask people; see pipeline.Pipeline.MayAsk.
func (h *Host) MayAsk(caller pipeline.Caller, tool *catalog.Tool) bool {
	return h.pipeline.MayAsk(caller, tool)
}

// Memory returns the used part and the size of the memory budget of all plugins, in bytes.
func (h *Host) Memory() (used, limit int64) { return h.engine.Memory() }

// Close removes all plugins from the catalog, waits for calls in flight and frees all resources. It may be called
// twice.
func (h *Host) Close() error {
	h.scanning.Lock()
	defer h.scanning.Unlock()
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	release := h.catalog.Hold()
	for _, p := range h.plugins {
		h.retire(p)
	}
	release()
	h.mu.Unlock()
	h.listings.close()
	h.retired.Wait()
	err := h.engine.Close()
	if h.options().Credentials != nil {
		err = errors.Join(err, h.options().Credentials.Close())
	}
	return err
}

// Compiling returns the names of plugins that are being compiled. Close waits for them for at most
// Options.CompileGrace, unless StopCompiling is called.
func (h *Host) Compiling() []string { return h.engine.Compiling() }

// StopCompiling ends running compilations, whose results are lost.
func (h *Host) StopCompiling() { h.engine.StopCompiling() }

// missing explains a tool that exists but waits for consent.
func (h *Host) missing(kind, name string) error {
	if kind != "tool" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.status.State != Active && p.offers(name, h.options().Settings) {
			reason := p.status.Reason
			if p.status.Because.Cause == nil {
				reason = fmt.Sprintf("plugin %s is %s: %s", p.status.Name, p.status.State, reason)
			}
			return &pipeline.NotAllowedError{Name: name, Reason: reason}
		}
	}
	return nil
}

// State is the state of a plugin.
type State string

// States.
const (
	Active   State = "active"   // its tools can be called
	Pending  State = "pending"  // waits for the operator's consent
	Revoked  State = "revoked"  // the operator revoked the consent
	Broken   State = "broken"   // the file is not a usable plugin
	Conflict State = "conflict" // another plugin has its name or one of its tools
	Removed  State = "removed"  // its file is gone; only for Options.Changed
)

// States lists the states of Host.Plugins.
var States = []State{Active, Pending, Revoked, Broken, Conflict}

// Status is the status of a plugin.
type Status struct {
	// Path is the file. Name, Version and Digest describe its content, as far as it could be read.
	Path, Name, Version, Digest string
	State                       State
	// Reason explains why the plugin is not active, and the remedy, in English. For an active one it may be a warning.
	Reason string
	// Because is the Reason of a plugin that waits or that another one displaces, in English and Japanese. It is zero for
	// broken plugins, whose Reason is an error, and for warnings.
	Because grant.Reason
	// NeedsConsent reports whether a pending or revoked plugin waits for the operator's consent, and not for something
	// else, such as a credential.
	NeedsConsent bool
	// Serving is the digest of the version in service, or empty. It differs from Digest while an update is pending or
	// broken.
	Serving string
	// Manifest is the file's manifest, or nil if it could not be read. It must not be changed.
	Manifest *manifest.Manifest
	// Grants are the grants of the version in service.
	Grants grant.Grants
	// Tools are the names of the tools in service, as in the catalog.
	Tools []string
	// Running and Waiting count current calls: those in an instance and those waiting for one.
	Running, Waiting int
	// Idle and Used count instances between calls: those ready for a call, and those still to be restored.
	Idle, Used int
	// Interpreted reports whether the interpreter runs the code because it is not compiled yet.
	Interpreted bool
}

// Title is the plugin's name, or its file if no name could be read.
func (s *Status) Title() string { return cmp.Or(s.Name, s.Path) }

// Explain returns the Reason in a language, as far as there is a translation.
func (s *Status) Explain(language string) string { return cmp.Or(s.Because.In(language), s.Reason) }

// waits sets the reason of a plugin that is not in service.
func (s *Status) waits(because grant.Reason) { s.Because, s.Reason = because, because.In("en") }

// Plugins lists all plugins, active or not, sorted by name and path.
func (h *Host) Plugins() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]Status, 0, len(h.plugins))
	for _, p := range h.plugins {
		status := p.status
		if p.service != nil {
			load := p.service.sandbox.Stats()
			status.Running, status.Waiting = load.Running, load.Waiting
			status.Idle, status.Used, status.Interpreted = load.Idle, load.Used, load.Interpreted
		}
		list = append(list, status)
	}
	sortStatus(list)
	return list
}
