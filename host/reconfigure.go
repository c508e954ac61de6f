package host

import (
	"context"
	"fmt"
	"os"
)

// Reconfigure checks other options and returns a function that applies them. Watch need not run. Of options those
// count that say what an operator wants of plugins: Folders, Shipped, ShippedMounts, Roots, Consents, Updates,
// Settings, Tenants, Limits, Ceilings, MaxPluginSize, MountQuota, Mock, Locale, Proxy, Toolsets, AuditOptional and
// AuditFields. All others stay as they were given to New.
//
// The error says which folder cannot be read, or which plugin in service does not take its settings. Nothing has
// changed before put is called, once; that looks at all plugins, as Load does, and has its errors. Plugins for which
// nothing changes stay as they are. One for which something does gets a new service, and the calls in flight are
// finished by the old; if that fails, the old stays, and its Status says why.
func (h *Host) Reconfigure(options *Options) (put func(context.Context) error, err error) {
	next := *h.options()
	next.Folders, next.Shipped, next.ShippedMounts, next.Consents, next.Updates = options.Folders, options.Shipped,
		options.ShippedMounts, options.Consents, options.Updates
	next.Settings, next.Tenants, next.Limits, next.MaxPluginSize = options.Settings, options.Tenants, options.Limits,
		options.MaxPluginSize
	next.MountQuota, next.Roots = options.MountQuota, options.Roots
	next.Mock, next.Locale, next.Proxy, next.Toolsets = options.Mock, options.Locale, options.Proxy, options.Toolsets
	next.AuditOptional, next.AuditFields = options.AuditOptional, options.AuditFields
	if err := h.checkOptions(&next); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		h.apply(&next)
		return h.Load(ctx)
	}, nil
}

// checkOptions validates o against the existing folders and the plugins in service.
func (h *Host) checkOptions(o *Options) error {
	for _, folder := range o.Folders {
		if _, err := os.ReadDir(folder); err != nil {
			return fmt.Errorf("plugin folder: %w", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.service == nil {
			continue
		}
		if err := o.checkService(p.service); err != nil {
			return err
		}
	}
	return nil
}

// checkService validates the settings of a service.
func (o *Options) checkService(s *service) error {
	if _, err := o.configure(s.manifest, s.grants); err != nil {
		return err
	}
	if _, err := o.configureTenants(s.manifest, s.grants, s.fixedConfig); err != nil {
		return err
	}
	return checkRules(s.name, o.Settings[s.name].HTTP, s.manifest.Permissions.HTTP)
}

// apply puts options in force and marks all plugins for evaluation.
func (h *Host) apply(o *Options) {
	h.scanning.Lock()
	defer h.scanning.Unlock()
	if h.current.Swap(o).Consents != o.Consents {
		h.consents = consents{}
	}
	h.pipeline.Set(o.pipelineSettings())
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		p.stale = true
	}
}
