package host

import (
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// operatorLimits returns the limits that the operator has set for a plugin.
func (h *Host) operatorLimits(plugin string) manifest.Limits {
	o := h.options()
	return o.Settings[plugin].Limits.Or(o.Limits)
}

// ceilings returns the bounds for the limits of manifests.
func (h *Host) ceilings() manifest.Limits { return h.options().Ceilings.Or(manifest.DefaultCeilings) }

// limits is limitsInForce for a plugin that is brought into service.
func (h *Host) limits(m *manifest.Manifest) manifest.Limits {
	h.reportCeilings(m, h.operatorLimits(m.Name), h.ceilings())
	return h.limitsInForce(m)
}

// limitsInForce returns the limits of a plugin: the operator's, else the manifest's within the ceilings.
func (h *Host) limitsInForce(m *manifest.Manifest) manifest.Limits {
	return h.operatorLimits(m.Name).Or(m.Limits.Within(h.ceilings()))
}

// bounded returns m with its tools' limits bounded by the ceilings, and without limits that the operator has set.
func (h *Host) bounded(m *manifest.Manifest) *manifest.Manifest {
	set, ceilings := h.operatorLimits(m.Name), h.ceilings()
	bounded := *m
	bounded.Tools = append([]manifest.Tool(nil), m.Tools...)
	for i := range bounded.Tools {
		bounded.Tools[i].Limits = bounded.Tools[i].Limits.Without(set).Within(ceilings)
	}
	return &bounded
}

// LongestCall returns the largest time limit of the plugins in service.
func (h *Host) LongestCall() (longest time.Duration) {
	for _, s := range h.Plugins() {
		if s.Serving == "" || s.Manifest == nil {
			continue
		}
		all := h.operatorLimits(s.Name).Or(s.Manifest.Limits.Within(h.ceilings())).Or(manifest.DefaultLimits)
		longest = max(longest, all.Time)
		for _, tool := range h.bounded(s.Manifest).Tools {
			longest = max(longest, tool.Limits.Time)
		}
	}
	return longest
}

// reportCeilings logs the limits of a manifest that exceed the ceilings.
func (h *Host) reportCeilings(m *manifest.Manifest, set, ceilings manifest.Limits) {
	cut := m.Permissions.Limits.Without(set).Beyond(ceilings)
	asked, most, none := cut.Texts(), ceilings.Texts(), manifest.Limits{}.Texts()
	for _, key := range manifest.LimitKeys {
		if asked[key] != none[key] {
			h.logger.Warn(
				"the plugin asks for a larger limit than this host gives: raise ceilings."+key+", or set plugin."+
					m.Name+".limits."+key,
				"plugin", m.Name, "limit", key, "asked", asked[key], "given", most[key])
		}
	}
}
