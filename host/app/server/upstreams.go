package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// UpstreamSpecs reads the file of upstream servers that the configuration names.
func UpstreamSpecs(c *config.Config) ([]mcpclient.Spec, error) {
	path := c.UpstreamsFile()
	if path == "" {
		return nil, nil
	}
	specs, err := mcpclient.ReadFile(path, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return specs, nil
}

// newUpstreams makes the client of upstream servers, whose tools it adds to a catalog. It connects none of them before
// Apply is called. version is that of this program. The caller closes it.
func newUpstreams(
	c *config.Config, to *catalog.Catalog, credentials mcpclient.Credentials, version string, logger *slog.Logger,
) (*mcpclient.Upstreams, error) {
	return mcpclient.New(mcpclient.Options{
		Catalog: to, Dir: c.Dir, Environ: os.Environ(), Credentials: credentials, Proxy: c.ProxyURL(), Limits: c.Limits,
		Start: mcpclient.Start(c.Upstreams.Start), CacheDir: filepath.Join(c.StateDir(), "upstreams"), Version: version,
		Logger: logger,
	})
}

// listsWait bounds the wait for servers whose lists are not in the cache.
const listsWait = 10 * time.Second

// WithUpstreams adds the tools of the configured servers to a catalog, and calls do with the state of each. Servers
// whose lists are in the cache are connected when they are called. WithUpstreams waits at most 10 seconds for the
// others, which join later. It disconnects all afterwards. version is that of this program.
func WithUpstreams(
	ctx context.Context, c *config.Config, to *catalog.Catalog, version string, logger *slog.Logger,
	do func([]mcpclient.Status) error,
) error {
	all := func(*mcpclient.Spec) bool { return true }
	return withUpstreams(ctx, c, to, mcpclient.Lazy, all, version, logger, func(u *mcpclient.Upstreams) error {
		if err := awaitLists(ctx, u); err != nil {
			return err
		}
		return do(u.Status())
	})
}

// awaitLists waits until each server is ready, at most for listsWait. The error says that ctx has ended.
func awaitLists(ctx context.Context, u *mcpclient.Upstreams) error {
	wait, done := context.WithTimeout(ctx, listsWait)
	defer done()
	if err := u.Ready(wait); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// ConnectUpstreams connects the configured servers that are wanted, adds their tools to a catalog, and calls do with
// the state of each after all have been tried. It disconnects them afterwards. version is that of this program.
func ConnectUpstreams(
	ctx context.Context, c *config.Config, to *catalog.Catalog, wanted func(*mcpclient.Spec) bool, version string,
	logger *slog.Logger, do func([]mcpclient.Status) error,
) error {
	return withUpstreams(ctx, c, to, mcpclient.Eager, wanted, version, logger, func(u *mcpclient.Upstreams) error {
		if err := u.Ready(ctx); err != nil {
			return err
		}
		return do(u.Status())
	})
}

// withUpstreams calls do with the configured servers that are wanted, all of which begin in the same way.
func withUpstreams(
	ctx context.Context, c *config.Config, to *catalog.Catalog, start mcpclient.Start,
	wanted func(*mcpclient.Spec) bool,
	version string, logger *slog.Logger, do func(*mcpclient.Upstreams) error,
) (err error) {
	specs, err := UpstreamSpecs(c)
	if err != nil {
		return err
	}
	specs = slices.DeleteFunc(specs, func(s mcpclient.Spec) bool { return !wanted(&s) })
	for i := range specs {
		specs[i].Start = start
	}
	var credentials mcpclient.Credentials
	if len(specs) > 0 {
		opened, err := NewCredentials(c, logger, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, opened.Close()) }()
		credentials = opened
	}
	u, err := newUpstreams(c, to, credentials, version, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	if err := u.Apply(specs); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return do(u)
}

// upstreams is the part that connects the upstream servers and follows changes of their file.
type upstreams struct {
	server      *Server
	credentials *credentials

	*mcpclient.Upstreams
	// ctx is the context of the server.
	ctx context.Context
	// stopFollowing stops following the file. Reloads, which change it, are serialised.
	stopFollowing func()
}

func (u *upstreams) start(ctx context.Context) error {
	s := u.server
	specs, err := UpstreamSpecs(s.Config)
	if err != nil {
		return err
	}
	catalog := s.plugins.host.Load().Catalog()
	if u.Upstreams, err = newUpstreams(s.Config, catalog, u.credentials, s.Build.Version, s.Logger); err != nil {
		return err
	}
	s.observability.metrics.ShowUpstreams(u.Upstreams)
	if err := u.Apply(specs); err != nil {
		return errors.Join(fmt.Errorf("configuration: %w", err), u.Close())
	}
	u.ctx, u.stopFollowing = ctx, func() {}
	u.follow(s.Config)
	return nil
}

// follow follows the file of upstream servers that c names, and no other.
func (u *upstreams) follow(c *config.Config) {
	u.stopFollowing()
	u.stopFollowing = func() {}
	path := c.UpstreamsFile()
	if path == "" {
		return
	}
	ctx, cancel := context.WithCancel(u.ctx)
	following := make(chan struct{})
	go func() {
		defer close(following)
		u.Follow(ctx, path, c.Dir)
	}()
	u.stopFollowing = func() { cancel(); <-following }
}

func (u *upstreams) stop() error {
	u.stopFollowing()
	return u.Close()
}

func (*upstreams) keys() []string {
	return []string{"upstreams", "upstreamsEnabled", "upstreamsStart", "limits", "outbound.proxy"}
}

func (u *upstreams) prepare(_ context.Context, next *config.Config) (*change, error) {
	specs, err := UpstreamSpecs(next)
	if err != nil {
		return nil, err
	}
	return &change{apply: func() []string {
		u.SetDefaults(next.Limits, next.ProxyURL(), mcpclient.Start(next.Upstreams.Start))
		err := u.Apply(specs)
		u.follow(next)
		if err != nil {
			return []string{err.Error()}
		}
		return nil
	}}, nil
}
