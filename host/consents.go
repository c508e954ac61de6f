package host

import (
	"context"
	"errors"
	"io/fs"

	"github.com/hako-run/hako/host/grant"
)

// consents caches the operator's consents from the file or the store.
type consents struct {
	file  *grant.File
	stamp fileStamp
	// evaluated is the content of file under which the plugins were evaluated last.
	evaluated   *grant.Content
	unreachable bool // the store could not be read
}

// refresh reloads the consents of o if they have changed, and returns the names of the plugins whose consents have. If
// that fails, the old consents stay in force; the error is returned once for each version of the file or outage of the
// store.
func (c *consents) refresh(ctx context.Context, o *Options) (changed []string, err error) {
	switch {
	case o.Consents == "":
		c.file = new(grant.File)
		return nil, nil
	case o.ConsentStore != nil:
		err = c.refreshStored(ctx, o)
	default:
		err = c.refreshFile(ctx, o.Consents)
	}
	if err != nil {
		return nil, err
	}
	now := c.file.Content()
	changed, c.evaluated = now.Changed(c.evaluated), now
	return changed, nil
}

func (c *consents) refreshStored(ctx context.Context, o *Options) (err error) {
	if c.file == nil {
		c.file, err = grant.LoadStored(ctx, o.ConsentStore, o.Consents)
		return err
	}
	err = c.file.Refresh(ctx)
	if err != nil && c.unreachable {
		return nil
	}
	c.unreachable = err != nil
	return err
}

func (c *consents) refreshFile(ctx context.Context, path string) error {
	stamp, err := stampOf(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if c.file != nil && stamp == c.stamp {
		return nil
	}
	c.stamp = stamp
	if c.file != nil {
		return c.file.Refresh(ctx)
	}
	c.file, err = grant.Load(path)
	return err
}
