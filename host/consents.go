package host

import (
	"context"
	"errors"
	"io/fs"

	"github.com/hako-run/hako/host/grant"
)

// consents caches the operator's consents from the file or the store.
type consents struct {
	file        *grant.File
	stamp       fileStamp
	unreachable bool // the store could not be read
}

// refresh reloads the consents of o if they have changed. If that fails, the old consents stay in force; the error is
// returned once for each version of the file or outage of the store.
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
	case err != nil && c.file != nil && c.unreachable:
		return false, nil
	case err != nil:
		c.unreachable = true
		return false, err
	}
	c.unreachable = false
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

// of returns the consent in force for any version of the plugin.
func (c *consents) of(name string) (grant.Consent, bool) {
	for _, consent := range c.file.Consents() {
		if consent.Name == name && consent.RevokedAt.IsZero() {
			return consent, true
		}
	}
	return grant.Consent{}, false
}
