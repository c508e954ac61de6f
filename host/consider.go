package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// look considers a plugin whose file has changed, or all of them when the consents have. h.scanning is held.
func (h *Host) look(ctx context.Context, source source, consentsChanged bool) {
	now, err := source.stamp()
	h.mu.Lock()
	p, known := h.plugins[source.path]
	if !known {
		p = &plugin{source: source, status: Status{Path: source.path}}
		h.plugins[source.path] = p
	}
	same := known && err == nil && p.stamp == now && !consentsChanged
	h.mu.Unlock()
	if same || h.closing() {
		return
	}
	before := p.status
	status := h.consider(ctx, p)
	h.mu.Lock()
	p.stamp = now
	p.status = status
	if p.service != nil {
		p.status.Serving = p.service.digest
	}
	if status.State == Active && before.State != Active {
		h.notifyCompiler()
	}
	if before.Name != status.Name {
		h.reconsider()
	}
	h.mu.Unlock()
	h.report(before, p.status)
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

func (h *Host) report(before, now Status) {
	if before.State == now.State && before.Reason == now.Reason && before.Serving == now.Serving {
		return
	}
	attrs := []any{"plugin", now.Name, "path", now.Path, "state", string(now.State), "digest", now.Digest}
	switch now.State {
	case Active:
		h.logger.Info("plugin in service", append(attrs, "tools", now.Tools)...)
	case Pending, Revoked:
		h.logger.Warn("plugin waits", append(attrs, "reason", now.Reason)...)
	default:
		h.logger.Error("plugin not usable", append(attrs, "err", now.Reason)...)
	}
}

// consider decides what becomes of a plugin and brings it into service or out of it. h.scanning is held.
func (h *Host) consider(ctx context.Context, p *plugin) Status {
	status := Status{Path: p.source.path}
	content, err := p.source.read(h.options.MaxPluginSize)
	if err != nil {
		return h.broken(p, status, err)
	}
	status.Name, status.Version, status.Digest, status.Manifest = content.manifest.Name, content.manifest.Version, content.module.Digest, content.manifest
	if other := h.holder(p, content.manifest.Name); other != "" {
		status.State = Conflict
		status.Reason = fmt.Sprintf("%s is a plugin called %s too: remove one of them", other, status.Name)
		return status
	}
	decision := h.decide(p, content)
	if decision.State != grant.Approved {
		return h.waiting(ctx, p, status, decision)
	}
	return h.admit(ctx, p, status, content, decision.Consent)
}

// broken keeps what is in service and says why the file is not.
func (h *Host) broken(p *plugin, status Status, err error) Status {
	status.State, status.Reason = Broken, err.Error()
	if p.service != nil {
		status.Name = p.service.name
		status.Reason += "; the version before it stays in service"
	}
	return status
}

// holder is the path of another plugin with this name, if it is the one that counts: shipped plugins give way to files.
func (h *Host) holder(p *plugin, name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for path, other := range h.plugins {
		if other == p || other.status.Name != name || other.status.State == Conflict {
			continue
		}
		if other.source.shipped() && !p.source.shipped() {
			h.retire(other)
			other.status.State, other.status.Serving, other.status.Tools = Conflict, "", nil
			other.status.Reason = fmt.Sprintf("%s takes its place", p.source.path)
			continue
		}
		return path
	}
	return ""
}

// decide holds a plugin against the operator's consents. What is part of the program needs none, but obeys one that is there.
func (h *Host) decide(p *plugin, content *pluginFile) grant.Decision {
	decision := h.consents.file.Decide(content.manifest, content.module.Digest, h.options.Updates)
	if decision.State == grant.Revoked || decision.State == grant.Approved {
		return decision
	}
	for _, shipped := range h.options.Shipped {
		if sum(shipped.Wasm) == sum(content.wasm) {
			return h.shippedConsent(content.manifest, decision)
		}
	}
	return decision
}

// shippedConsent is the yes to everything that a shipped plugin asks for, with the operator's mounts.
func (h *Host) shippedConsent(m *manifest.Manifest, pending grant.Decision) grant.Decision {
	mounts := map[string]grant.Mount{}
	for _, asked := range m.Permissions.Files {
		dir, ok := h.options.ShippedMounts[asked.Mount]
		if !ok {
			pending.Reason = fmt.Sprintf("its mount %s is not mapped: set shipped.mounts.%s in hako.yaml", asked.Mount, asked.Mount)
			return pending
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			pending.Reason = fmt.Sprintf("mount %s: %v", asked.Mount, err)
			return pending
		}
		mounts[asked.Mount] = grant.Mount{Name: asked.Mount, Path: dir, Write: true}
	}
	return grant.Decision{State: grant.Approved, Consent: &grant.Consent{Mounts: mounts}}
}

// waiting keeps a version in service that the operator consented to, also across restarts, while this one waits.
func (h *Host) waiting(ctx context.Context, p *plugin, status Status, decision grant.Decision) Status {
	status.State, status.Reason = Pending, decision.Reason
	if decision.State == grant.Revoked {
		status.State = Revoked
		h.mu.Lock()
		h.retire(p)
		h.mu.Unlock()
	}
	return status
}

// admit brings a plugin into service under the consent.
func (h *Host) admit(ctx context.Context, p *plugin, status Status, content *pluginFile, consent *grant.Consent) Status {
	settings := h.options.Settings[status.Name]
	grants, err := grant.Resolve(content.manifest, consent, settings.Config)
	if err != nil {
		return h.broken(p, status, err)
	}
	if p.service == nil || p.service.identity != identity(content, grants, settings) {
		s, err := h.build(content, grants)
		if err != nil {
			return h.broken(p, status, err)
		}
		if err := h.replace(ctx, p, content, s); err != nil {
			h.dispose(s)
			return h.refused(p, status, err)
		}
	}
	status.State, status.Grants = Active, grants
	for _, tool := range content.manifest.Tools {
		status.Tools = append(status.Tools, settings.Prefix+tool.Name)
	}
	return status
}

func (h *Host) refused(p *plugin, status Status, err error) Status {
	var conflict *catalog.ConflictError
	if !errors.As(err, &conflict) {
		return h.broken(p, status, err)
	}
	status.State, status.Reason = Conflict, err.Error()
	return status
}
