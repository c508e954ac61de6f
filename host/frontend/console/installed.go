package console

import (
	"context"
	"errors"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// Installed are the plugins that were installed into the folder that plugins are added to.
type Installed interface {
	// Origin returns where a plugin was installed from, empty for a file of a person, and the version before it, which
	// may be empty. ok is false for plugins that are not in the folder.
	Origin(p *host.Status) (from, previous string, ok bool, err error)
	// Newer fetches the newest version of a plugin from where it was installed, nil if there is no newer one. It
	// reaches only public addresses, and what the configuration names.
	Newer(ctx context.Context, name string) (*Addition, error)
	// Previous fetches the version before.
	Previous(ctx context.Context, name string) (*Addition, error)
	// Remove removes a plugin's files and the records of its installation, and returns what is left. Its consent
	// stays.
	Remove(ctx context.Context, name string) (left []string, err error)
}

// installedJSON describes the installation of a plugin.
type installedJSON struct {
	From     string `json:"from,omitempty"`
	Previous string `json:"previous,omitempty"`
}

// addInstalled adds how the plugin was installed.
func (c *Console) addInstalled(d *pluginDetail, p *host.Status) error {
	if c.options.Installed == nil {
		return nil
	}
	from, previous, ok, err := c.options.Installed.Origin(p)
	if ok {
		d.Installed = &installedJSON{from, previous}
	}
	return err
}

// versionJSON names the version that was shown. Digest is empty where it is only to be shown.
type versionJSON struct {
	Digest string `json:"digest"`
}

// newerJSON is the result of looking for a newer version.
type newerJSON struct {
	Newer *additionJSON `json:"newer,omitempty"`
}

// readNewer shows the newest version of a plugin, and how it differs.
func (c *Console) readNewer(q *request) (any, error) {
	return c.withVersion(q, Installed.Newer, func(p *Addition, _ string) (any, error) {
		if p == nil {
			return &newerJSON{}, nil
		}
		return &newerJSON{c.shown(q, p)}, nil
	})
}

// update puts the newest version of a plugin into the folder. The digest says which one was shown.
func (c *Console) update(q *request) (any, error) {
	return c.withVersion(q, Installed.Newer, func(p *Addition, digest string) (any, error) {
		if p == nil {
			return nil, faultChanged
		}
		return c.add(q, p, "plugin.update", digest, true)
	})
}

// readPrevious shows the version before, and how it differs.
func (c *Console) readPrevious(q *request) (any, error) {
	return c.withVersion(q, Installed.Previous, func(p *Addition, _ string) (any, error) { return c.shown(q, p), nil })
}

// rollback puts the version before into the folder. The digest says which one was shown.
func (c *Console) rollback(q *request) (any, error) {
	return c.withVersion(q, Installed.Previous, func(p *Addition, digest string) (any, error) {
		return c.add(q, p, "plugin.rollback", digest, true)
	})
}

// withVersion fetches a version of the request's plugin.
func (c *Console) withVersion(q *request, fetch func(Installed, context.Context, string) (*Addition, error),
	use func(p *Addition, digest string) (any, error)) (any, error) {
	shown := new(versionJSON)
	if err := q.decode(shown); err != nil {
		return nil, err
	}
	plugin, err := c.installed(q)
	if err != nil {
		return nil, err
	}
	_, end, err := c.beginAdding(q)
	if err != nil {
		return nil, err
	}
	defer end()
	p, err := fetch(c.options.Installed, q.Context(), plugin.Name)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return use(p, shown.Digest)
}

// installed returns the request's plugin, which must be in the folder that plugins are added to.
func (c *Console) installed(q *request) (*host.Status, error) {
	p, err := c.findPlugin(q.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if c.options.Installed == nil {
		return nil, notFound("plugin folder", "")
	}
	_, _, ok, err := c.options.Installed.Origin(p)
	if err == nil && !ok {
		err = invalid("%s is not in the folder that plugins are added to", p.Name)
	}
	return p, err
}

// removedJSON lists what a removed plugin leaves behind.
type removedJSON struct {
	Left []string `json:"left"`
}

// remove removes a plugin, as it was shown, and its consent.
func (c *Console) remove(q *request) (any, error) {
	var body versionJSON
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	p, err := c.installed(q)
	if err != nil {
		return nil, err
	}
	// Without a digest, only what has none is removed: a file that cannot be read.
	if body.Digest != p.Digest && (body.Digest == "" || body.Digest != p.Serving) {
		return nil, faultChanged
	}
	_, end, err := c.beginAdding(q)
	if err != nil {
		return nil, err
	}
	defer end()
	answer := &removedJSON{Left: []string{}}
	o := &audit.Operation{Action: "plugin.remove", Target: audit.Target{Plugin: p.Name, Digest: p.Digest}}
	err = c.audited(q, o, func() error {
		left, err := c.options.Installed.Remove(q.lasting(), p.Name)
		if err != nil {
			return &fault{code: codeUnavailable, text: said("%v", err), remedy: manifest.Text{
				"en": "At a terminal, as a user who may write there: hako plugin remove " + p.Name,
				"ja": "書き込みのできるユーザーで、ターミナルで実行してください: hako plugin remove " + p.Name,
			}}
		}
		answer.Left = append(answer.Left, left...)
		return c.removeConsent(q, p.Name)
	})
	if err != nil {
		return nil, err
	}
	return answer, c.options.Host.Load(q.lasting())
}

func (c *Console) removeConsent(q *request, name string) error {
	if c.options.Consents == nil {
		return nil
	}
	file, err := c.readConsents(q)
	if err == nil {
		err = file.Remove(q.lasting(), name)
	}
	if errors.Is(err, grant.ErrNoConsent) {
		return nil
	}
	return faultConsents(err, "hako plugin remove "+name)
}
