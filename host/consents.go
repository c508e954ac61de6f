package host

import (
	"errors"
	"io/fs"

	"github.com/hako-run/hako/host/grant"
)

// consents are the operator's, as the file has them.
type consents struct {
	file  *grant.File
	stamp fileStamp
}

// refresh reads the file at path again if it has changed. One that cannot be read leaves the old consents in force, and is an
// error once for each of its versions.
func (c *consents) refresh(path string) (changed bool, err error) {
	if path == "" {
		c.file = new(grant.File)
		return false, nil
	}
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
