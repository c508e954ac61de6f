package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/host/metrics"
	"github.com/hako-run/hako/internal/config"
)

func (a *app) upstreamsCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "upstreams",
		Short: "Connect the upstream MCP servers and say how they stand",
		Long: `Connect the MCP servers of the configuration (upstreams in hako.yaml), say for each how it stands and what it offers, and stop them
again. Each program is started a second time for this if hako serve runs; the metrics of that process say how its own stand.

Exit codes: 0 all are up or disabled, 1 one is down or all that it offers is left out, 2 the configuration is wrong.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			h, err := a.hostFor(cmd.Context(), c, func(*host.Options) {}) // what plugins offer is not the servers' to offer
			if err != nil {
				return err
			}
			return closing(h, a.withUpstreams(cmd.Context(), c, h.Catalog(), everyUpstream,
				func(list []mcpclient.Status) error {
					return a.printUpstreams(list, asJSON)
				}))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func everyUpstream(*mcpclient.Spec) bool { return true }

// upstreamFor selects the servers that can have a tool of that name.
func upstreamFor(tool string) func(*mcpclient.Spec) bool {
	return func(s *mcpclient.Spec) bool { return s.Owns(tool) }
}

// upstreamSpecs reads what the configuration names.
func upstreamSpecs(c *config.Config) ([]mcpclient.Spec, error) {
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

// newUpstreams makes the upstream servers, none of which is started before Apply. The caller closes them.
func newUpstreams(c *config.Config, to *catalog.Catalog, credentials mcpclient.Credentials,
	logger *slog.Logger) (*mcpclient.Upstreams, error) {
	return mcpclient.New(mcpclient.Options{
		Catalog: to, Dir: c.Dir, Environ: os.Environ(), Credentials: credentials, Proxy: c.ProxyURL(), Limits: c.Limits,
		Version: thisBuild().Version, Logger: logger,
	})
}

// withUpstreams connects the servers that are wanted for one command, and calls do when each has been tried. What is
// down is reported.
func (a *app) withUpstreams(ctx context.Context, c *config.Config, to *catalog.Catalog,
	wanted func(*mcpclient.Spec) bool, do func([]mcpclient.Status) error) (err error) {
	specs, err := upstreamSpecs(c)
	if err != nil {
		return err
	}
	specs = slices.DeleteFunc(specs, func(s mcpclient.Spec) bool { return !wanted(&s) })
	if len(specs) == 0 {
		return do(nil)
	}
	level := silent
	if c.Origin("log.level") != config.OriginDefault {
		level = logLevels[c.LogLevel]
	}
	logger := a.logger(c, level)
	credentials, err := newCredentials(c, logger, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, credentials.Close()) }()
	u, err := newUpstreams(c, to, credentials, logger)
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
	list := u.Status()
	for _, s := range list {
		if s.State == mcpclient.Down {
			printf(a.stderr, "down: upstream server %s: %s\n", s.Name, s.Error)
		}
	}
	return do(list)
}

// stateUnoffered is shown for a server that is connected, but all that it has is left out.
const stateUnoffered = "unoffered"

// upstreamStatus is a server's status as JSON.
type upstreamStatus struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Transport string   `json:"transport"`
	Prefix    string   `json:"prefix"`
	Protocol  string   `json:"protocol,omitempty"`
	Server    string   `json:"server,omitempty"`
	Version   string   `json:"version,omitempty"`
	Tools     int      `json:"tools"`
	Prompts   int      `json:"prompts"`
	Resources int      `json:"resources"`
	Omitted   []string `json:"omitted,omitempty"`
	Error     string   `json:"error,omitempty"`
}

func (a *app) printUpstreams(list []mcpclient.Status, asJSON bool) error {
	shown := []upstreamStatus{}
	failed := false
	for _, s := range list {
		state := string(s.State)
		if s.State == mcpclient.Up && s.Tools+s.Prompts+s.Resources == 0 && len(s.Omitted) > 0 {
			state = stateUnoffered
		}
		failed = failed || s.State == mcpclient.Down || state == stateUnoffered
		shown = append(shown, upstreamStatus{
			s.Name, state, s.Transport, s.Prefix, s.Protocol, s.Server, s.Version, s.Tools, s.Prompts, s.Resources,
			s.Omitted, s.Error,
		})
	}
	var err error
	if asJSON {
		err = a.printJSON(shown)
	} else {
		err = a.printUpstreamTable(shown)
	}
	if err == nil && failed {
		return &exitError{code: exitFailed}
	}
	return err
}

func (a *app) printUpstreamTable(list []upstreamStatus) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.stderr,
			"no upstream servers are configured: name a file with upstreams in hako.yaml (docs/upstreams.md)")
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tTRANSPORT\tPREFIX\tTOOLS\tPROMPTS\tRESOURCES\tPROTOCOL\tSERVER")
	for _, s := range list {
		printf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", s.Name, s.State, s.Transport, s.Prefix, s.Tools,
			s.Prompts, s.Resources,
			s.Protocol, strings.TrimSpace(s.Server+" "+s.Version))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		for _, what := range s.Omitted {
			printf(a.stderr, "%s: left out: %s\n", s.Name, what)
		}
	}
	return nil
}

// upstreamWait is how long hako serve waits for the upstream servers before it opens its frontends. Slower ones come
// later.
const upstreamWait = 5 * time.Second

// connectUpstreams connects the upstream servers and keeps them as their file has them, until stop is called.
func (s *service) connectUpstreams(ctx context.Context, c *config.Config, credentials mcpclient.Credentials,
	numbers *metrics.Metrics) (stop func(), err error) {
	specs, err := upstreamSpecs(c)
	if err != nil {
		return nil, err
	}
	u, err := newUpstreams(c, s.host.Catalog(), credentials, s.logger)
	if err != nil {
		return nil, err
	}
	numbers.ShowUpstreams(u)
	if err := u.Apply(specs); err != nil {
		return nil, errors.Join(fmt.Errorf("configuration: %w", err), u.Close())
	}
	wait, done := context.WithTimeout(ctx, upstreamWait)
	defer done()
	if err := u.Ready(wait); err != nil && ctx.Err() == nil {
		s.logger.Info("the frontends open before all upstream servers are connected", "err", err)
	}
	s.upstreams = &upstreamFollower{upstreams: u, ctx: ctx, stop: func() {}}
	s.upstreams.follow(c)
	return s.upstreams.close, nil
}

// upstreamFollower keeps the upstream servers as their file has them.
type upstreamFollower struct {
	upstreams *mcpclient.Upstreams
	// ctx is that of hako serve.
	ctx context.Context
	// stop ends the following. Those who change it do not do so at once.
	stop func()
}

// follow follows the file that c names, in the place of another one.
func (f *upstreamFollower) follow(c *config.Config) {
	f.stop()
	f.stop = func() {}
	path := c.UpstreamsFile()
	if path == "" {
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	following := make(chan struct{})
	go func() {
		defer close(following)
		f.upstreams.Follow(ctx, path, c.Dir)
	}()
	f.stop = func() { cancel(); <-following }
}

func (f *upstreamFollower) close() {
	f.stop()
	_ = f.upstreams.Close() // which cannot fail
}
