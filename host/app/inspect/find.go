package inspect

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Find returns the plugin with a name, or in a file. Of several with one name it returns the one without a conflict. A
// plugin whose name could not be read has that of its file.
func Find(plugins []host.Status, name, file string) (*host.Status, error) {
	var found *host.Status
	var known []string
	for i := range plugins {
		p := &plugins[i]
		if sameFile(p.Path, file) || p.Name == "" && strings.TrimSuffix(filepath.Base(p.Path), ".wasm") == name {
			return p, nil
		}
		if p.Name != "" {
			known = append(known, p.Name)
		}
		if p.Name == name && (found == nil || found.State == host.Conflict) {
			found = p
		}
	}
	if found == nil {
		unknown := fmt.Errorf("unknown plugin %q: there is none", name)
		if len(known) > 0 {
			unknown = strictyaml.Unknown("plugin", name, known)
		}
		return nil, fmt.Errorf("%w\nPlugins are looked for in the folders of the configuration, or of --plugins. Those that come with "+
			"hako need shipped.enabled", unknown)
	}
	return found, nil
}

func sameFile(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// Remedy explains in a language why a plugin is not in service and what to do. For one in service it is a warning, or
// empty.
func Remedy(plugin host.Status, language string) string {
	switch plugin.State {
	case host.Active:
		if plugin.Reason == "" {
			return ""
		}
		return fmt.Sprintf("warning: plugin %s: %s", plugin.Name, plugin.Reason)
	case host.Revoked:
		return "" // as somebody wanted it
	case host.Pending:
		return fmt.Sprintf("%s: %s", plugin.State, plugin.Explain(language))
	}
	return fmt.Sprintf("%s: %s: %s", plugin.State, plugin.Path, plugin.Explain(language))
}

// Hint returns what to do about an unknown tool, prompt or resource; kind is that of pipeline.NotFoundError.
func Hint(h *host.Host, kind, name string) string {
	if kind != "tool" {
		return otherHint(h, kind, name)
	}
	var known []string
	for _, t := range h.Catalog().View().Tools {
		known = append(known, t.Name)
	}
	if near := strictyaml.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	for _, plugin := range h.Plugins() {
		if plugin.Name == name && plugin.Manifest != nil {
			return "that is a plugin: it offers " + strings.Join(Offers(plugin.Manifest), ", ")
		}
		if plugin.State == host.Broken || plugin.State == host.Conflict {
			return fmt.Sprintf("hako tools lists them; %s is not usable (%s)", plugin.Path, plugin.Reason)
		}
	}
	return "hako tools lists them"
}

// otherHint returns what to do about an unknown prompt or resource.
func otherHint(h *host.Host, kind, name string) string {
	var known []string
	for _, p := range h.Catalog().View().Prompts {
		known = append(known, p.Name)
	}
	near := strictyaml.Nearest(name, known)
	switch {
	case kind == "prompt" && near != "":
		return fmt.Sprintf("did you mean %s?", near)
	case kind == "prompt" && len(known) > 0:
		return "known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("no plugin in service has a %s of this name", kind)
}

// missingCredentials returns the credentials that a plugin asks for, if callers without a tenant have none of them.
func missingCredentials(h *host.Host, plugin string) []string {
	for _, t := range h.Catalog().View().Tools {
		if t.Source.Name == plugin && !h.Usable("", t.Source) {
			return t.Source.Credentials
		}
	}
	return nil
}
