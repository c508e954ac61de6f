package host

import (
	"context"
	"errors"
	"io/fs"

	"github.com/hako-run/hako/host/grant"
)

// consents are the operator's, as the file or the store has them.
type consents struct {
	file  *grant.File
	stamp fileStamp
	away  bool // the store could not be read
}

// refresh reads the consents of o again if they have changed. What cannot be read leaves the old consents in force, and is an error once
// for each version of the file, or for each outage of the store.
func (c *consents) refresh(ctx context.Context, o *Options) (changed bool, err error) {
	switch {
	case o.Consents == "":
		c.file = new(grant.File)
		return false, nil
	case o.ConsentStore != nil:
		return c.refreshStored(ctx, o)
	}
	return c.refreshFile(o.Consents)
}

func (c *consents) refreshStored(ctx context.Context, o *Options) (changed bool, err error) {
	file, err := grant.LoadStored(ctx, o.ConsentStore, o.Consents)
	switch {
	case err != nil && c.file != nil && c.away:
		return false, nil
	case err != nil:
		c.away = true
		return false, err
	}
	c.away = false
	if c.file != nil && c.file.Same(file) {
		return false, nil
	}
	c.file = file
	return true, nil
}

func (c *consents) refreshFile(path string) (changed bool, err error) {
	stamp, err := stampOf(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if c.file != nil && stamp == c.stamp {
		return false, nil
	}
	c.stamp = stamp
	file, err := grant.Load(path)
	if err != nil {
		return false, err
	}
	c.file = file
	return true, nil
}

// of returns the consent in force for some version of the plugin.
func (c *consents) of(name string) (grant.Consent, bool) {
	for _, consent := range c.file.Consents() {
		if consent.Name == name && consent.RevokedAt.IsZero() {
			return consent, true
		}
	}
	return grant.Consent{}, false
}
