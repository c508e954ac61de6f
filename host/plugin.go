package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/execbroker/gateway"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/brokers/toolbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/strictyaml"
)

// plugin is a plugin file and its service.
type plugin struct {
	source source
	stamp  stamp
	// stale forces an evaluation although the file has not changed.
	stale bool
	// asked reports whether the last evaluation was waiting for the guest's listing. Guarded by h.scanning.
	asked  bool
	status Status
	// conflict is why the plugin was not offered at the last evaluation, if another source was in the way. Guarded by
	// h.scanning.
	conflict *catalog.ConflictError
	// service handles calls. It is nil if the plugin is not in service.
	service *service
}

// service is one version of a plugin under one set of grants.
type service struct {
	name     string
	digest   string
	identity string
	grants   grant.Grants
	// manifest is the file's, completed with the listing of an Extism guest.
	manifest *manifest.Manifest
	tools    []string
	// omitted names the entries of the guest's list that cannot be offered, each with the reason.
	omitted []string
	sandbox *sandbox.Plugin
	closers []io.Closer
	// fixedConfig reports whether the plugin has one configuration for all tenants: it has the Extism ABI or is a
	// component.
	fixedConfig bool
	// known reports whether an earlier process served the same file, so compiled code is probably cached.
	known bool
}

// close waits for calls in flight and frees all resources.
func (s *service) close() error {
	err := s.sandbox.Close()
	for _, closer := range s.closers {
		err = errors.Join(err, closer.Close())
	}
	return err
}

// build returns a service for the content under its grants. No guest code runs, except for the first listing of an
// Extism guest.
func (h *Host) build(ctx context.Context, from *plugin, p *pluginFile, grants grant.Grants) (_ *service, err error) {
	settings := h.options().Settings[p.manifest.Name]
	s := &service{name: p.manifest.Name, digest: p.module.Digest, identity: h.identity(p, grants), grants: grants,
		manifest: p.manifest, fixedConfig: p.fixedConfig(), known: p.wasm == nil}
	defer func() {
		if err != nil {
			for _, closer := range s.closers {
				err = errors.Join(err, closer.Close())
			}
		}
	}()
	if h.options().Mock {
		if err := p.readRecordings(from.source); err != nil {
			return nil, err
		}
	}
	spec := sandbox.Spec{
		Name:   s.name,
		Limits: h.limits(p.manifest),
		State:  cmp.Or(settings.State, p.manifest.Permissions.State),
		Clock:  h.clock(p),
	}
	client, err := h.client(s, p, grants, spec.Limits.Requests)
	if err != nil {
		return nil, err
	}
	for _, granted := range grants.Mounts {
		mount, err := file.New(granted)
		if errors.Is(err, fs.ErrNotExist) && h.options().ReadOnly && from.source.shipped() {
			continue // a host that serves would have made it
		}
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, mount)
		spec.Mounts = append(spec.Mounts, mount)
	}
	database, err := h.database(s, grants)
	if err != nil {
		return nil, err
	}
	commands, err := h.commands(s, grants)
	if err != nil {
		return nil, err
	}
	var tools *toolbroker.Broker
	if len(grants.Tools) > 0 {
		limits := spec.Limits.Or(manifest.DefaultLimits)
		tools = toolbroker.New(grants.Tools, limits.Calls, limits.ParallelCalls)
	}
	if err := h.keepCopy(from, p); err != nil {
		return nil, err
	}
	spec.Digest, spec.Wasm = s.digest, func() ([]byte, error) { return h.copyOf(from.source, s.digest) }
	switch {
	case p.module.Component != nil:
		if err := h.configureComponent(p, s, brokers{client, database, commands, tools}, &spec); err != nil {
			return nil, err
		}
	case p.module.IsExtism():
		if err := h.configureExtism(p, s, client, &spec); err != nil {
			return nil, err
		}
	case client != nil:
		spec.Modules = append(spec.Modules, client.Module())
	}
	if database != nil {
		spec.Modules = append(spec.Modules, database.Module())
	}
	if commands != nil {
		spec.Modules = append(spec.Modules, commands.Module())
	}
	if tools != nil {
		spec.Modules = append(spec.Modules, tools.Module())
	}
	s.manifest = h.bounded(s.manifest)
	for _, tool := range s.manifest.Tools {
		s.tools = append(s.tools, settings.Prefix+tool.Name)
	}
	s.sandbox = h.engine.Load(spec)
	return s, nil
}

// client returns the broker for the plugin's HTTP requests, at most perCall per call, or nil without the permission.
func (h *Host) client(s *service, p *pluginFile, grants grant.Grants, perCall int) (*httpbroker.Broker, error) {
	if len(p.manifest.Permissions.HTTP) == 0 {
		return nil, nil
	}
	options := &httpbroker.Options{Logger: h.logger, Proxy: h.options().Proxy, Rules: h.options().Settings[s.name].HTTP}
	options.Limits.PerCall = perCall
	if err := checkRules(s.name, options.Rules, p.manifest.Permissions.HTTP); err != nil {
		return nil, err
	}
	if observer, ok := h.options().Observer.(RequestObserver); ok {
		options.Observe = func(o httpbroker.Observation) { observer.RequestEnded(s.name, o) }
	}
	if h.options().Credentials != nil {
		options.Credentials = h.options().Credentials
	}
	if h.options().Mock {
		options.Replay = p.recordings
	}
	if dir := h.options().RecordDir; dir != "" {
		r := &recorder{path: filepath.Join(dir, s.name+".recordings.json"), now: time.Now}
		if h.options().Clock != nil {
			r.now = h.options().Clock
		}
		s.closers = append(s.closers, r)
		options.Record = r.add
	}
	client, err := httpbroker.New(grants.HTTP, options)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, client)
	return client, nil
}

// checkRules rejects settings for HTTP permissions that do not exist.
func checkRules(plugin string, rules map[string]httpbroker.RuleOptions, permissions []manifest.HTTPPermission) error {
	var known []string
	for _, p := range permissions {
		known = append(known, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("plugin.%s.http in hako.yaml: %s", plugin, strictyaml.Unknown("HTTP permission", name,
				known))
		}
	}
	return nil
}

// database returns the plugin's SQL broker, or nil without the permission.
func (h *Host) database(s *service, grants grant.Grants) (*sqlbroker.Broker, error) {
	if grants.SQL == nil {
		return nil, nil
	}
	options := sqlbroker.Options{Logger: h.logger}
	switch {
	case h.options().Databases != nil:
		options.PageStore, options.Dir = h.options().Databases, s.name
	case h.options().DataDir != "":
		options.Dir = filepath.Join(h.options().DataDir, sqlbroker.Folder, s.name)
	default:
		return nil, fmt.Errorf("plugin %s: there is no directory for its database: set DataDir", s.name)
	}
	if observer, ok := h.options().Observer.(StatementObserver); ok {
		options.Observe = func(o sqlbroker.Observation) { observer.StatementEnded(s.name, o) }
	}
	database := sqlbroker.New(grants.SQL, options)
	s.closers = append(s.closers, database)
	return database, nil
}

// commands returns the plugin's command broker, or nil without the permission.
func (h *Host) commands(s *service, grants grant.Grants) (*execbroker.Broker, error) {
	if grants.Exec == nil {
		return nil, nil
	}
	options := execbroker.Options{
		Plugin: s.name, Rules: h.options().CommandRules, Environ: h.options().Environ,
		Proxy: h.options().Proxy, Logger: h.logger,
	}
	if observer, ok := h.options().Observer.(CommandObserver); ok {
		options.Observe = func(o execbroker.Observation) { observer.CommandEnded(s.name, o) }
		options.ObserveConnection = func(o gateway.Observation) { observer.ConnectionEnded(s.name, o) }
	}
	commands, err := execbroker.New(grants.Exec, grants.Mounts, options)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", s.name, err)
	}
	return commands, nil
}

// clock returns a plugin's wall clock: the operator's, or the clock of its recordings. Nil means the real clock.
func (h *Host) clock(p *pluginFile) func() time.Time {
	if h.options().Clock != nil || !h.options().Mock || p.recordings == nil || p.recordings.Clock.IsZero() {
		return h.options().Clock
	}
	return func() time.Time { return p.recordings.Clock }
}

// identity changes whenever a service has to be rebuilt.
func (h *Host) identity(p *pluginFile, grants grant.Grants) string {
	hash := sha256.New()
	name := p.manifest.Name
	o := h.options()
	// Encoding cannot fail: all parts are plain data.
	_ = json.NewEncoder(hash).Encode([]any{p.module.Digest, grants, o.Settings[name], o.tenantConfigs(name), o.Limits,
		o.Ceilings, fmt.Sprint(o.Proxy), o.Mock})
	return hex.EncodeToString(hash.Sum(nil))
}

// offer describes the service to the catalog.
func (h *Host) offer(p *pluginFile, s *service) (catalog.Source, error) {
	options := h.options()
	config, err := options.configure(p.manifest, s.grants)
	if err != nil {
		return catalog.Source{}, err
	}
	tenants, err := options.configureTenants(p.manifest, s.grants, p.fixedConfig())
	if err != nil {
		return catalog.Source{}, err
	}
	roots, err := s.grants.RootPaths(p.manifest)
	if err != nil {
		return catalog.Source{}, fmt.Errorf("plugin %s: %w", s.name, err)
	}
	return catalog.Source{
		Name: s.name, Prefix: options.Settings[s.name].Prefix, Config: config, Tenants: tenants, Roots: roots,
		Credentials: credentialsOf(s.grants), Asks: s.grants.Exec != nil || len(s.grants.Tools) > 0,
		Calls: toolbroker.Granted(s.grants.Tools), Backend: s.sandbox,
	}, nil
}

// credentialsOf returns the names of the credentials that are applied to the plugin's requests.
func credentialsOf(grants grant.Grants) []string {
	var names []string
	for _, rule := range grants.HTTP {
		if rule.Credential != "" && !slices.Contains(names, rule.Credential) {
			names = append(names, rule.Credential)
		}
	}
	return names
}

// replace replaces p's service when the new one is ready, so that no call fails in between. On an error the old one
// stays.
func (h *Host) replace(ctx context.Context, p *plugin, content *pluginFile, s *service) error {
	offered, err := h.offer(content, s)
	if err != nil {
		return err
	}
	if p.service != nil {
		if err := s.sandbox.Prepare(ctx); err != nil {
			return err
		}
	}
	if err := h.catalog.Put(offered, s.manifest); err != nil {
		return err
	}
	h.mu.Lock()
	old := p.service
	h.setService(p, s)
	h.mu.Unlock()
	if old != nil && old.name != s.name {
		h.catalog.Remove(old.name)
	}
	h.dispose(old)
	return nil
}

// retire stops p's service.
func (h *Host) retire(p *plugin) {
	if p.service == nil {
		return
	}
	h.catalog.Remove(p.service.name)
	h.dispose(p.service)
	h.setService(p, nil)
}

// setService sets the service of p, which may be nil. Callers hold h.mu.
func (h *Host) setService(p *plugin, s *service) {
	if old := p.service; old != nil {
		rest := slices.DeleteFunc(h.serving[old.name], func(other *plugin) bool { return other == p })
		if h.serving[old.name] = rest; len(rest) == 0 {
			delete(h.serving, old.name)
		}
	}
	if p.service = s; s != nil {
		h.serving[s.name] = append(h.serving[s.name], p)
	}
}

// dispose closes a service in the background when its calls have ended.
func (h *Host) dispose(s *service) {
	if s == nil {
		return
	}
	h.retired.Go(func() {
		if err := s.close(); err != nil {
			h.logger.Warn("close a plugin", "plugin", s.name, "err", err)
		}
	})
}

// offers reports whether the plugin's file describes a tool with this name in the catalog.
func (p *plugin) offers(name string, settings map[string]Settings) bool {
	if p.status.Manifest == nil {
		return false
	}
	local, ok := strings.CutPrefix(name, settings[p.status.Name].Prefix)
	return ok && slices.ContainsFunc(p.status.Manifest.Tools,
		func(tool manifest.Tool) bool { return tool.Name == local })
}

func sortStatus(list []Status) {
	slices.SortFunc(list, func(a, b Status) int {
		return strings.Compare(a.Name+"\x00"+a.Path, b.Name+"\x00"+b.Path)
	})
}
