package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// candidate is a plugin to evaluate, with the current content of its file.
type candidate struct {
	plugin  *plugin
	stamp   stamp
	content *pluginFile
	err     error
}

// candidates returns the plugins whose files have changed, and those whose consents have: the plugins with the names in
// consents. Callers hold h.scanning.
func (h *Host) candidates(sources []source, consents []string) []*candidate {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(consents) > 0 {
		h.reconsider(consents)
	}
	var list []*candidate
	for _, source := range sources {
		now, err := source.stamp()
		p, known := h.plugins[source.path]
		if !known {
			p = &plugin{source: source, status: Status{Path: source.path}}
			h.plugins[source.path] = p
		}
		if !known || err != nil || p.stamp != now || p.stale || p.asked {
			list = append(list, &candidate{plugin: p, stamp: now})
		}
	}
	return list
}

// readAll reads the candidates' files in parallel.
func (h *Host) readAll(list []*candidate) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, c := range list {
		group.Go(func() error {
			c.content, c.err = h.readCandidate(c)
			return nil
		})
	}
	_ = group.Wait() // the candidates have the errors
}

// evaluate updates the state of one plugin and reports the change. Callers hold h.scanning.
func (h *Host) evaluate(ctx context.Context, c *candidate) {
	if h.closing() {
		return
	}
	p := c.plugin
	before := p.status
	p.asked, p.conflict = false, nil
	status := h.decideState(ctx, p, c.content, c.err)
	h.mu.Lock()
	p.stamp, p.stale = c.stamp, false
	p.status = status
	if s := p.service; s != nil {
		p.status.Serving, p.status.Grants, p.status.Tools = s.digest, s.grants, s.tools
		if s.digest == status.Digest {
			p.status.Manifest = s.manifest
		}
	}
	if status.State == Active && before.State != Active {
		h.notifyCompiler()
	}
	if before.Name != "" && before.Name != status.Name {
		h.reconsider(nil)
	}
	h.mu.Unlock()
	h.report(before, p.status, p.source.shipped())
}

func (h *Host) closing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func (h *Host) notifyCompiler() {
	select {
	case h.added <- struct{}{}:
	default:
	}
}

func (h *Host) report(before, now Status, shipped bool) {
	if before.State == now.State && before.Reason == now.Reason && before.Serving == now.Serving {
		return
	}
	h.changed(now)
	attrs := []any{"plugin", now.Name, "path", now.Path, "state", string(now.State), "digest", now.Digest}
	switch now.State {
	case Active:
		if now.Reason != "" {
			attrs = append(attrs, "reason", now.Reason)
		}
		h.logger.Info("plugin in service", append(attrs, "tools", now.Tools)...)
	case Pending:
		log := h.logger.Warn
		if shipped {
			log = h.logger.Info // it comes with hako, and perhaps nobody wants it
		}
		log("plugin waits", append(attrs, "reason", now.Reason)...)
	case Revoked:
		h.logger.Info("plugin revoked", append(attrs, "reason", now.Reason)...)
	default:
		h.logger.Error("plugin not usable", append(attrs, "err", now.Reason)...)
	}
}

func (h *Host) changed(now Status) {
	if h.options().Changed != nil {
		h.options().Changed(now)
	}
}

// decideState determines a plugin's state, and starts or stops its service accordingly. Callers hold h.scanning.
func (h *Host) decideState(ctx context.Context, p *plugin, content *pluginFile, err error) Status {
	status := Status{Path: p.source.path}
	if err == nil {
		err = sandbox.CheckStart(content.module, h.limitsInForce(content.manifest))
	}
	if err != nil {
		return h.broken(p, status, err)
	}
	status.Name, status.Version, status.Digest, status.Manifest = content.manifest.Name, content.manifest.Version,
		content.module.Digest, content.manifest
	rival := h.rival(p, status.Name)
	if rival != nil && (p.source.shipped() || !rival.source.shipped()) {
		status.State = Conflict
		status.waits(grant.Because("%s is also a plugin named %s", "%s も %s という名前のプラグインです",
			rival.source.path, status.Name).WithRemedy("Remove one of them", "どちらかを削除してください"))
		return status
	}
	decision := h.decide(p, content)
	if decision.State != grant.Approved {
		return h.awaitConsent(ctx, p, status, decision)
	}
	if rival != nil {
		h.displace(rival, p)
	}
	return h.admit(ctx, p, status, content, decision)
}

// broken returns the status of an unusable file. A version in service stays there.
func (h *Host) broken(p *plugin, status Status, err error) Status {
	status.State, status.Reason = Broken, err.Error()
	if p.service != nil {
		status.Name = p.service.name
		status.Reason += "; the version before it stays in service"
	}
	return status
}

// rival returns another plugin in service with this name, or nil.
func (h *Host) rival(p *plugin, name string) *plugin {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, other := range h.serving[name] {
		if other != p {
			return other
		}
	}
	return nil
}

// displace stops a shipped plugin that is replaced by a file.
func (h *Host) displace(shipped, file *plugin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retire(shipped)
	shipped.status.State, shipped.status.Serving, shipped.status.Tools = Conflict, "", nil
	shipped.status.waits(grant.Because("%s takes its place", "代わりに %s が使われます", file.source.path))
}

// decide compares a plugin with the operator's consents. A shipped plugin needs none unless it asks to run commands,
// but obeys an existing one.
func (h *Host) decide(p *plugin, content *pluginFile) grant.Decision {
	shipped := p.source.shipped() || h.isShipped(content.module.Digest)
	rule := h.options().Updates
	if shipped {
		rule = grant.SamePermissions
	}
	decision := h.consents.file.Decide(content.manifest, content.module.Digest, rule)
	if !shipped {
		return decision
	}
	decision.Unrecorded = false // the consent may belong to a file of the same name
	if decision.State != grant.Pending || content.manifest.Permissions.Exec != nil ||
		content.manifest.Permissions.Tools != nil {
		return decision
	}
	return h.shippedConsent(content.manifest, decision)
}

// isShipped reports whether a file is a copy of a shipped plugin.
func (h *Host) isShipped(digest string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.options().Shipped, func(s Shipped) bool {
		p := h.plugins[s.File]
		return p != nil && p.status.Digest == digest
	})
}

// shippedConsent grants everything that a shipped plugin asks for, with the operator's mounts.
func (h *Host) shippedConsent(m *manifest.Manifest, pending grant.Decision) grant.Decision {
	pending.NeedsConsent = false // it lacks configuration
	if missing := h.missingCredentials(m); len(missing) > 0 {
		pending.Reason = grant.Because("plugin %s needs a credential of yours", "プラグイン %s には認証情報が必要です", m.Name).
			WithRemedy("Set %s in hako.yaml (docs/credentials.md)", "hako.yaml に %s を設定してください (docs/credentials.md)",
				strings.Join(missing, " or "))
		return pending
	}
	mounts := map[string]grant.Mount{}
	for _, asked := range m.Permissions.Files {
		dir, ok := h.options().ShippedMounts[asked.Mount]
		if !ok {
			pending.Reason = grant.Because("plugin %s has no folder for its mount %s",
				"プラグイン %s のマウント %s にフォルダーがありません", m.Name, asked.Mount).
				WithRemedy("Set shipped.mounts.%s in hako.yaml", "hako.yaml に shipped.mounts.%s を設定してください", asked.Mount)
			return pending
		}
		dir, err := filepath.Abs(dir)
		if err == nil && !h.options().ReadOnly {
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			pending.Reason = grant.Because("plugin %s cannot have shipped.mounts.%s: %v",
				"プラグイン %s は shipped.mounts.%s を使えません: %v", m.Name, asked.Mount, err)
			return pending
		}
		mounts[asked.Mount] = grant.Mount{Name: asked.Mount, Path: dir, Write: true, Quota: h.MountQuota()}
	}
	return grant.Decision{State: grant.Approved, Consent: &grant.Consent{Mounts: mounts}}
}

// MountQuota is the default quota of a writable mount in bytes.
func (h *Host) MountQuota() int64 { return cmp.Or(h.options().MountQuota, grant.DefaultMountQuota) }

// Roots are the directories for plugins whose manifests ask for roots.
func (h *Host) Roots() grant.Roots { return h.options().Roots }

// missingCredentials returns the keys of the credentials that a plugin asks for, if none of them is configured. One is
// enough: a plugin may support several services, of which an operator uses one.
func (h *Host) missingCredentials(m *manifest.Manifest) []string {
	var asked []string
	for _, p := range m.Permissions.HTTP {
		if key := "credentials." + p.Credential; p.Credential != "" && !slices.Contains(asked, key) {
			asked = append(asked, key)
		}
	}
	configured := func(key string) bool {
		return h.options().Credentials != nil &&
			h.options().Credentials.Configured(strings.TrimPrefix(key, "credentials."))
	}
	if len(asked) == 0 || h.options().Mock || slices.ContainsFunc(asked, configured) {
		return nil
	}
	return asked
}

// awaitConsent keeps the version with consent in service, also across restarts, while this one waits for consent.
func (h *Host) awaitConsent(ctx context.Context, p *plugin, status Status, decision grant.Decision) Status {
	status.State, status.NeedsConsent = Pending, decision.NeedsConsent
	status.waits(decision.Reason)
	if decision.State == grant.Revoked {
		status.State = Revoked
		h.mu.Lock()
		h.retire(p)
		h.mu.Unlock()
		return status
	}
	if p.service == nil {
		h.restoreConsented(ctx, p, status.Name)
	}
	return status
}

// restoreConsented brings the version with consent into service from its copy.
func (h *Host) restoreConsented(ctx context.Context, p *plugin, name string) {
	consent, ok := h.consents.file.InForce(name)
	if !ok {
		return
	}
	wasm, err := h.copies.open(consent.Digest)
	if err != nil {
		h.logger.Debug("the approved version has no copy", "plugin", name, "err", err)
		return
	}
	content, err := parse(wasm)
	if err == nil {
		err = h.serve(ctx, p, content, &consent)
	}
	p.asked = errors.Is(err, errAsked)
	if err != nil && !p.asked {
		h.logger.Warn("the approved version cannot be restored", "plugin", name, "err", err)
	}
}

// admit brings a plugin into service under its consent.
func (h *Host) admit(ctx context.Context, p *plugin, status Status, content *pluginFile,
	decision grant.Decision) Status {
	err := h.serve(ctx, p, content, decision.Consent)
	var conflict *catalog.ConflictError
	switch {
	case errors.As(err, &conflict):
		status.State, status.Reason = Conflict, err.Error()
		p.conflict = conflict
		return status
	case errors.Is(err, errAsked):
		p.asked = true
		status.State = Pending
		status.waits(grant.Because("its tools are being listed", "ツールの一覧を取得しています"))
		return status
	case err != nil:
		return h.broken(p, status, err)
	}
	status.State = Active
	var warnings []string
	if left := p.service.omitted; len(left) > 0 {
		warnings = append(warnings, "not in the catalog: "+strings.Join(left, "; "))
	}
	if warning := p.service.grants.WorkspaceWarning("en"); warning != "" {
		warnings = append(warnings, warning)
	}
	if decision.Unrecorded {
		if err := h.consents.file.Approve(ctx, *decision.Consent); err != nil {
			warnings = append(warnings, fmt.Sprintf("the update could not be recorded: %v", err))
		}
	}
	status.Reason = strings.Join(warnings, "; ")
	return status
}

// serve builds a service from the content and the consent. It replaces the current one unless that is identical.
func (h *Host) serve(ctx context.Context, p *plugin, content *pluginFile, consent *grant.Consent) error {
	grants, err := grant.Resolve(content.manifest, consent, h.options().Settings[content.manifest.Name].Config,
		h.options().Roots)
	if err != nil {
		return err
	}
	if p.service != nil && p.service.identity == h.identity(content, grants) {
		return nil
	}
	s, err := h.build(ctx, p, content, grants)
	if err != nil {
		return err
	}
	if err := h.replace(ctx, p, content, s); err != nil {
		h.dispose(s)
		return err
	}
	return nil
}
