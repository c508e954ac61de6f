package console

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// pluginItem is a plugin in the list.
type pluginItem struct {
	Name    string     `json:"name"`
	File    string     `json:"file,omitempty"`
	Version string     `json:"version"`
	State   host.State `json:"state"`
	Title   string     `json:"title"`
	Reason  string     `json:"reason"`
	Digest  string     `json:"digest"`
	Serving string     `json:"serving"`
	Tools   int        `json:"tools"`
	Running int        `json:"running"`
	Waiting int        `json:"waiting"`

	path string
}

func newPluginItem(p *host.Status, language string) *pluginItem {
	item := &pluginItem{
		p.Name, "", p.Version, p.State, "", whyNot(p, language), p.Digest, p.Serving, len(p.Tools), p.Running, p.Waiting, p.Path,
	}
	if p.Name == "" {
		item.File = filepath.Base(p.Path)
	}
	if p.Manifest != nil {
		item.Title, _, _ = strings.Cut(strings.TrimSpace(p.Manifest.Description.In(language)), "\n")
	}
	return item
}

// whyNot is the reason of a plugin's state. How to approve it at a terminal is left out: the page can do that.
func whyNot(p *host.Status, language string) string {
	if p.NeedsConsent {
		return p.Because.Cause.In(language)
	}
	return p.Explain(language)
}

func (c *Console) plugins(q *request) (any, error) {
	wanted, search := q.param("state"), strings.ToLower(q.param("q"))
	if wanted != "" && !slices.Contains(host.States, host.State(wanted)) {
		return nil, invalid("%q is not a state of a plugin", wanted)
	}
	var list []*pluginItem
	for _, p := range c.options.Host.Plugins() {
		item := newPluginItem(&p, q.language)
		if (wanted == "" || string(p.State) == wanted) &&
			contains(search, item.Name, item.File, item.Title, strings.Join(p.Tools, " ")) {
			list = append(list, item)
		}
	}
	return page(q, list, func(i *pluginItem) string { return i.Name + "\x00" + i.path })
}

// contains reports whether a text contains search, which is in lower case.
func contains(search string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), search) })
}

// pluginDetail has all details of a plugin.
type pluginDetail struct {
	*pluginItem
	Path        string            `json:"path"`
	Description string            `json:"description"`
	License     string            `json:"license"`
	Asks        []string          `json:"asks"`
	Gets        []string          `json:"gets"`
	Offers      []pluginTool      `json:"tools"`
	Limits      map[string]string `json:"limits"`
	Config      []pluginConfig    `json:"config"`
	Consent     *consentJSON      `json:"consent,omitempty"`
	Ask         *ask              `json:"ask,omitempty"`
	Choose      *chooseJSON       `json:"choose,omitempty"`
	// Signer is missing for plugins that are in no folder, such as shipped ones.
	Signer *signerJSON `json:"signer,omitempty"`
	// Installed is missing for plugins that are not in the folder that plugins are added to.
	Installed *installedJSON `json:"installed,omitempty"`
}

type pluginTool struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

type pluginConfig struct {
	Key         string `json:"key"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

type consentJSON struct {
	Version    string    `json:"version"`
	Digest     string    `json:"digest"`
	ApprovedBy string    `json:"approvedBy"`
	ApprovedAt time.Time `json:"approvedAt"`
	RevokedBy  string    `json:"revokedBy,omitempty"`
	RevokedAt  time.Time `json:"revokedAt,omitzero"`
	Note       string    `json:"note,omitempty"`
}

func (c *Console) plugin(q *request) (any, error) {
	p, err := c.findPlugin(q.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return c.detail(q, p)
}

// findPlugin returns the plugin with the name, or the file with that name if the name of its plugin cannot be read. Of
// several, it returns the one in service.
func (c *Console) findPlugin(name string) (*host.Status, error) {
	var found *host.Status
	for _, p := range c.options.Host.Plugins() {
		if cmp.Or(p.Name, filepath.Base(p.Path)) == name && (found == nil || found.State == host.Conflict) {
			found = &p
		}
	}
	if found == nil {
		return nil, notFound("plugin", name)
	}
	return found, nil
}

func (c *Console) detail(q *request, p *host.Status) (*pluginDetail, error) {
	d := &pluginDetail{
		pluginItem: newPluginItem(p, q.language), Path: p.Path, Asks: []string{}, Gets: []string{},
		Offers: []pluginTool{}, Config: []pluginConfig{},
	}
	if p.Serving != "" {
		d.Gets = p.Grants.Explain(q.language)
	}
	if err := errors.Join(c.addSigner(d, p), c.addInstalled(d, p)); err != nil {
		return nil, err
	}
	consents, err := c.consents(q)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(consents, func(c grant.Consent) bool { return c.Name == p.Name }); i >= 0 {
		g := &consents[i]
		d.Consent = &consentJSON{g.Version, g.Digest, g.ApprovedBy, g.ApprovedAt, g.RevokedBy, g.RevokedAt, g.Note}
	}
	if p.Manifest != nil {
		d.describe(p.Manifest, c.options.Settings.Plugin(p.Name), q.language)
		made := c.propose(p, consents, nil, q)
		if p.NeedsConsent {
			d.Ask = made.ask(c, q.language)
		}
		if p.NeedsConsent || d.Consent != nil {
			d.Choose = c.chooses(q, made)
		}
	}
	return d, nil
}

// addSigner adds who signed the plugin.
func (c *Console) addSigner(d *pluginDetail, p *host.Status) error {
	if c.options.Folder == nil {
		return nil
	}
	signer, ok, err := c.options.Folder.Signer(p)
	if ok {
		d.Signer = new(signerJSON(signer))
	}
	return err
}

// describe adds the contents of the manifest.
func (d *pluginDetail) describe(m *manifest.Manifest, settings host.Settings, language string) {
	d.Description, d.License = m.Description.In(language), m.License
	d.Asks = grant.Explain(m.Permissions, language)
	for _, t := range m.Tools {
		d.Offers = append(d.Offers, pluginTool{settings.Prefix + t.Name, t.Title.In(language),
			t.Description.In(language)})
	}
	d.Limits = settings.Limits.Or(m.Limits).Or(manifest.DefaultLimits).Texts()
	for _, key := range slices.Sorted(maps.Keys(m.Config)) {
		k := m.Config[key]
		d.Config = append(d.Config, pluginConfig{key, k.Type, k.Required, k.Description.In(language)})
	}
}
