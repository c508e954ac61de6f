package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/internal/config"
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
		Version: version, Logger: logger,
	})
}

// WithUpstreams connects the configured servers that are wanted, adds their tools to a catalog, and calls do with the
// state of each after all have been tried. It disconnects them afterwards. version is that of this program.
func WithUpstreams(
	ctx context.Context, c *config.Config, to *catalog.Catalog, wanted func(*mcpclient.Spec) bool, version string,
	logger *slog.Logger, do func([]mcpclient.Status) error,
) (err error) {
	specs, err := UpstreamSpecs(c)
	if err != nil {
		return err
	}
	specs = slices.DeleteFunc(specs, func(s mcpclient.Spec) bool { return !wanted(&s) })
	if len(specs) == 0 {
		return do(nil)
	}
	credentials, err := NewCredentials(c, logger, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, credentials.Close()) }()
	u, err := newUpstreams(c, to, credentials, version, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	if err := u.Apply(specs); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := u.Ready(ctx); err != nil {
		return err
	}
	return do(u.Status())
}

// upstreamWait is how long the start waits for upstream servers. Slower ones are added when they are connected.
const upstreamWait = 5 * time.Second

// upstreams is the part that connects the upstream servers and follows changes of their file.
type upstreams struct {
	server      *Server
	credentials *credentials

	*mcpclient.Upstreams
	// ctx is that of the server.
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
	wait, done := context.WithTimeout(ctx, upstreamWait)
	defer done()
	if err := u.Ready(wait); err != nil && ctx.Err() == nil {
		s.Logger.Info("the frontends open before all upstream servers are connected", "err", err)
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
	return []string{"upstreams", "upstreamsEnabled", "limits", "outbound.proxy"}
}

func (u *upstreams) prepare(_ context.Context, next *config.Config) (func() []string, error) {
	specs, err := UpstreamSpecs(next)
	if err != nil {
		return nil, err
	}
	return func() []string {
		u.SetDefaults(next.Limits, next.ProxyURL())
		err := u.Apply(specs)
		u.follow(next)
		if err != nil {
			return []string{err.Error()}
		}
		return nil
	}, nil
}
