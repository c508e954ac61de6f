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
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	execbroker "github.com/hako-run/hako/host/broker/exec"
	"github.com/hako-run/hako/host/broker/exec/gateway"
	"github.com/hako-run/hako/host/broker/file"
	httpbroker "github.com/hako-run/hako/host/broker/http"
	sqlbroker "github.com/hako-run/hako/host/broker/sql"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/strictyaml"
)

// plugin is one plugin file and what is in service for it.
type plugin struct {
	source source
	stamp  stamp
	// stale says that it has to be looked at again although its file has not changed.
	stale bool
	// asked says that its guest was being asked what it offers when it was last looked at. h.scanning guards it.
	asked  bool
	status Status
	// service is what answers calls; nil if nothing does.
	service *service
}

// service is one version of a plugin under one set of grants.
type service struct {
	name     string
	digest   string
	identity string
	grants   grant.Grants
	// manifest is the file's, for an Extism guest with what it was asked for.
	manifest *manifest.Manifest
	tools    []string
	sandbox  *sandbox.Plugin
	closers  []io.Closer
	// extism says that it is a guest of that ABI.
	extism bool
	// known says that an earlier process served the same file, and so has probably left compiled code in the cache.
	known bool
}

// close waits for the calls in flight and gives everything up.
func (s *service) close() error {
	err := s.sandbox.Close()
	for _, closer := range s.closers {
		err = errors.Join(err, closer.Close())
	}
	return err
}

// build makes a service of what was read, under its grants. Nothing of the plugin runs, unless it is an Extism guest that has not yet
// been asked for its tools.
func (h *Host) build(ctx context.Context, from *plugin, p *pluginFile, grants grant.Grants) (_ *service, err error) {
	settings := h.options().Settings[p.manifest.Name]
	s := &service{name: p.manifest.Name, digest: p.module.Digest, identity: h.identity(p, grants), grants: grants, manifest: p.manifest, extism: p.module.IsExtism(), known: p.wasm == nil}
	defer func() {
		if err != nil {
			for _, closer := range s.closers {
				err = errors.Join(err, closer.Close())
			}
		}
	}()
	if h.options().Mock {
		if err := p.readRecordings(); err != nil {
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
		mount, err := file.New(granted, nil)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, mount)
		spec.Mounts = append(spec.Mounts, mount)
	}
	if err := h.keepCopy(from, p); err != nil {
		return nil, err
	}
	spec.Wasm = func() ([]byte, error) { return h.copyOf(from.source, s.digest) }
	switch {
	case p.module.IsExtism():
		if s.manifest, err = h.adopt(p, client, &spec); err != nil {
			return nil, err
		}
	case client != nil:
		spec.Modules = append(spec.Modules, client.Module())
	}
	if database, err := h.database(s, grants); err != nil {
		return nil, err
	} else if database != nil {
		spec.Modules = append(spec.Modules, database.Module())
	}
	if commands, err := h.commands(s, grants); err != nil {
		return nil, err
	} else if commands != nil {
		spec.Modules = append(spec.Modules, commands.Module())
	}
	s.manifest = h.bounded(s.manifest)
	for _, tool := range s.manifest.Tools {
		s.tools = append(s.tools, settings.Prefix+tool.Name)
	}
	s.sandbox = h.engine.Load(spec)
	return s, nil
}

// client makes what sends the plugin's HTTP requests, at most perCall of them in one call; nil if it asks for none.
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

// checkRules checks that what is set for single HTTP permissions is for some that there are.
func checkRules(plugin string, rules map[string]httpbroker.RuleOptions, permissions []manifest.HTTPPermission) error {
	var known []string
	for _, p := range permissions {
		known = append(known, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("plugin.%s.http in hako.yaml: %s", plugin, strictyaml.Unknown("HTTP permission", name, known))
		}
	}
	return nil
}

// database makes what runs the plugin's SQL; nil if it asks for none.
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

// commands makes what runs the plugin's commands; nil if it asks for none.
func (h *Host) commands(s *service, grants grant.Grants) (*execbroker.Broker, error) {
	if grants.Exec == nil {
		return nil, nil
	}
	options := execbroker.Options{
		Plugin: s.name, Rules: h.options().CommandRules, Environ: h.options().Environ, Proxy: h.options().Proxy, Logger: h.logger,
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

// clock is the wall clock for a plugin: the operator's, or that of the recordings that it lives in.
func (h *Host) clock(p *pluginFile) func() time.Time {
	if h.options().Clock != nil || !h.options().Mock || p.recordings == nil || p.recordings.Clock.IsZero() {
		return h.options().Clock
	}
	return func() time.Time { return p.recordings.Clock }
}

// identity changes whenever a service has to be made anew.
func (h *Host) identity(p *pluginFile, grants grant.Grants) string {
	hash := sha256.New()
	name := p.manifest.Name
	o := h.options()
	// The parts are plain data, so encoding them cannot fail.
	_ = json.NewEncoder(hash).Encode([]any{p.module.Digest, grants, o.Settings[name], o.tenantConfigs(name), o.Limits, o.Ceilings, fmt.Sprint(o.Proxy), o.Mock})
	return hex.EncodeToString(hash.Sum(nil))
}

// offer describes the service to the catalog.
func (h *Host) offer(p *pluginFile, s *service) (catalog.Source, error) {
	options := h.options()
	config, err := options.configure(p.manifest)
	if err != nil {
		return catalog.Source{}, err
	}
	tenants, err := options.configureTenants(p.manifest, p.module.IsExtism())
	if err != nil {
		return catalog.Source{}, err
	}
	roots, err := s.grants.RootPaths(p.manifest)
	if err != nil {
		return catalog.Source{}, fmt.Errorf("plugin %s: %w", s.name, err)
	}
	return catalog.Source{
		Name: s.name, Prefix: options.Settings[s.name].Prefix, Config: config, Tenants: tenants, Roots: roots,
		Credentials: credentialsOf(s.grants), Asks: s.grants.Exec != nil, Backend: s.sandbox,
	}, nil
}

// credentialsOf are the names of those that the plugin's requests carry.
func credentialsOf(grants grant.Grants) []string {
	var names []string
	for _, rule := range grants.HTTP {
		if rule.Credential != "" && !slices.Contains(names, rule.Credential) {
			names = append(names, rule.Credential)
		}
	}
	return names
}

// replace puts the new service in the place of p's old one. An old one stays until the new one is ready, so that no call falls
// between them. If it fails, the old one stays.
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
	p.service = s
	h.mu.Unlock()
	if old != nil && old.name != s.name {
		h.catalog.Remove(old.name)
	}
	h.dispose(old)
	return nil
}

// retire takes p out of service.
func (h *Host) retire(p *plugin) {
	if p.service == nil {
		return
	}
	h.catalog.Remove(p.service.name)
	h.dispose(p.service)
	p.service = nil
}

// dispose closes a service when its calls have ended.
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

// offers reports whether the plugin's file describes a tool that the doors would call name.
func (p *plugin) offers(name string, settings map[string]Settings) bool {
	if p.status.Manifest == nil {
		return false
	}
	local, ok := strings.CutPrefix(name, settings[p.status.Name].Prefix)
	return ok && slices.ContainsFunc(p.status.Manifest.Tools, func(tool manifest.Tool) bool { return tool.Name == local })
}

func sortStatus(list []Status) {
	slices.SortFunc(list, func(a, b Status) int {
		return strings.Compare(a.Name+"\x00"+a.Path, b.Name+"\x00"+b.Path)
	})
}
