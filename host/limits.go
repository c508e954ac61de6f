package host

import (
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// set are the limits that the operator has set for a plugin.
func (h *Host) set(plugin string) manifest.Limits {
	o := h.options()
	return o.Settings[plugin].Limits.Or(o.Limits)
}

// ceilings are the most that manifests get.
func (h *Host) ceilings() manifest.Limits { return h.options().Ceilings.Or(manifest.DefaultCeilings) }

// limits are those in force for a plugin: what the operator has set, and else what its manifest asks for within the ceilings.
func (h *Host) limits(m *manifest.Manifest) manifest.Limits {
	set, ceilings := h.set(m.Name), h.ceilings()
	h.reportCeilings(m, set, ceilings)
	return set.Or(m.Limits.Within(ceilings))
}

// bounded returns m with the limits of its tools within the ceilings, and without those that the operator has set.
func (h *Host) bounded(m *manifest.Manifest) *manifest.Manifest {
	set, ceilings := h.set(m.Name), h.ceilings()
	bounded := *m
	bounded.Tools = append([]manifest.Tool(nil), m.Tools...)
	for i := range bounded.Tools {
		bounded.Tools[i].Limits = bounded.Tools[i].Limits.Without(set).Within(ceilings)
	}
	return &bounded
}

// LongestCall is the longest time that a call of a plugin in service may take.
func (h *Host) LongestCall() (longest time.Duration) {
	for _, s := range h.Plugins() {
		if s.Serving == "" || s.Manifest == nil {
			continue
		}
		all := h.set(s.Name).Or(s.Manifest.Limits.Within(h.ceilings())).Or(manifest.DefaultLimits)
		longest = max(longest, all.Time)
		for _, tool := range h.bounded(s.Manifest).Tools {
			longest = max(longest, tool.Limits.Time)
		}
	}
	return longest
}

// reportCeilings logs which limits a manifest asks for in vain.
func (h *Host) reportCeilings(m *manifest.Manifest, set, ceilings manifest.Limits) {
	cut := m.Permissions.Limits.Without(set).Beyond(ceilings)
	asked, most, none := cut.Texts(), ceilings.Texts(), manifest.Limits{}.Texts()
	for _, key := range manifest.LimitKeys {
		if asked[key] != none[key] {
			h.logger.Warn("the plugin asks for a larger limit than this host gives: raise ceilings."+key+", or set plugin."+m.Name+".limits."+key,
				"plugin", m.Name, "limit", key, "asked", asked[key], "given", most[key])
		}
	}
}
