// Package server is the running hako process. It composes the host with its stores, frontends and observability, and
// starts, reloads, drains and stops them.
//
// New makes the Server of "hako serve", NewAgent that of "hako agent run". Open starts its parts, Run serves until the
// context or the only client ends, and Close releases everything. Each component is a part in a file of its own: it
// implements the interface part, and of the optional interfaces runner, drainer, stopper, reloadable and reporter those
// that it needs. Adding a component means adding one file and naming its part in New or NewAgent.
//
// Commands that need one component without a server use the functions that make it from a configuration: NewHost,
// OpenGovernance, NewCredentials, NewUpstreams, NewModels, NewEngine and others.
package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/govern/approval"
)

// Options configures a Server. Config, Level and Logger are needed.
type Options struct {
	// Config is the configuration to start with.
	Config *config.Config
	// Source is the source of Config, from which it is also read again. Digest is Source.Digest of before Config was
	// read.
	Source config.Source
	Digest string
	// Shipped are the plugins that come with the program.
	Shipped []shipped.Plugin
	// Build describes the program.
	Build console.Build

	// HTTP serves MCP, the console and Slack. Stdio serves one MCP client on In and Out; Run ends when it disconnects.
	HTTP, Stdio bool
	In          io.Reader
	Out         io.Writer
	// Extension adds to the MCP server. Nil: nothing.
	Extension *mcpserver.Extension

	// Reload receives a signal for each order to read the configuration again. Nil: there are none.
	Reload <-chan os.Signal
	// QuietStart logs nothing about plugins while they are loaded, for callers that print Plugins afterwards.
	QuietStart bool
	// Level is the level of Logger. It follows the configuration.
	Level  *slog.LevelVar
	Logger *slog.Logger
}

// part is one component of the process. Parts start in the order in which the Server lists them.
type part interface {
	// start opens the component. Requests that arrive before run wait. If it fails, it releases what it opened.
	start(ctx context.Context) error
}

// stopper is a part that holds resources. Started parts are stopped in the reverse order.
type stopper interface{ stop() error }

// runner is a part that works while the server runs. run returns when ctx ends; an error ends the server.
type runner interface {
	run(ctx context.Context) error
}

// drainer is a part that finishes requests during a shutdown. drain accepts no more of them and waits for those in
// flight, within a limit of its own. Parts are drained one after the other, in their order.
type drainer interface {
	drain(ctx context.Context) error
}

// reloadable is a part that can apply another configuration while it runs.
type reloadable interface {
	// keys are the configuration keys, each with all keys below it, whose changes the part applies.
	keys() []string
	// prepare checks a configuration and returns the change to it. It changes nothing itself.
	prepare(ctx context.Context, next *config.Config) (*change, error)
}

// change is a configuration that a part has prepared. Exactly one of its functions is called, once.
type change struct {
	// apply puts the configuration in force and returns warnings. Work in progress is finished under the old one.
	apply func() []string
	// discard releases what was prepared. Nil: nothing.
	discard func()
}

// reporter is a part with conditions that an operator should look at.
type reporter interface {
	// status describes them for /readyz, without quoting rules, users or the configuration.
	status() []string
	// problems describes them for the console, in the language "en" or "ja".
	problems(language string) []console.Problem
}

// errDone ends Run without an error: there is nothing left to serve.
var errDone = errors.New("nothing is left to serve")

// Server is a hako process. New and NewAgent make one.
type Server struct {
	Options

	parts   []part
	started []part
	// draining reports whether the shutdown has begun.
	draining atomic.Bool

	observability *observability
	governance    *governance
	plugins       *plugins
	reloader      *reloader
	console       *consoleFrontend // nil: there is no console
	web           *web             // nil: nothing is served over HTTP
}

// New returns the server of "hako serve", or an error if the configuration is not usable.
func New(o Options) (*Server, error) {
	s := &Server{Options: o}
	if err := checkConfig(o.Config); err != nil {
		return nil, err
	}
	credentials, err := s.newCommonParts(agentKeys)
	if err != nil {
		return nil, err
	}
	s.plugins.renewed = true // by a background job
	var traffic *console.Traffic
	if o.HTTP && ConsoleEnabled(o.Config) {
		traffic = console.NewTraffic()
		s.plugins.traffic = traffic
	}
	certificate := &tlsCertificate{server: s}
	jobs := &backgroundJobs{server: s, credentials: credentials}
	upstreams := &upstreams{server: s, credentials: credentials}
	mcp := &mcpFrontend{server: s, jobs: jobs}
	s.parts = []part{
		&logLevel{s.Level}, gcTuner{}, certificate, s.observability, s.governance, credentials, s.plugins, jobs,
		upstreams, mcp,
	}
	if o.HTTP {
		slack := &slackFrontend{server: s}
		s.web = &web{server: s, mcp: mcp, slack: slack, upstreams: upstreams, certificate: certificate}
		if traffic != nil {
			s.console = &consoleFrontend{server: s, traffic: traffic, upstreams: upstreams, credentials: credentials,
				mcp: mcp, slack: slack}
			s.parts = append(s.parts, s.console)
		}
		s.parts = append(s.parts, slack, s.web)
	}
	if o.Stdio {
		s.parts = append(s.parts, &stdio{server: s, mcp: mcp})
	}
	s.parts = append(s.parts, s.reloader)
	return s, nil
}

// NewAgent returns the server of "hako agent run", which runs the tools of managed agents. It is not one of several
// replicas and runs no background jobs. It fails if the configuration is not usable.
func NewAgent(o Options) (*Server, error) {
	s := &Server{Options: o}
	if err := checkAgent(o.Config); err != nil {
		return nil, err
	}
	credentials, err := s.newCommonParts(serveKeys)
	if err != nil {
		return nil, err
	}
	s.parts = []part{
		&logLevel{s.Level}, s.observability, s.governance, credentials, s.plugins,
		&upstreams{server: s, credentials: credentials}, &agentFrontend{server: s}, &metricsServer{server: s},
		s.reloader,
	}
	return s, nil
}

// newCommonParts makes the parts that every server has. otherKeys are configuration keys that only another command
// uses.
func (s *Server) newCommonParts(otherKeys []string) (*credentials, error) {
	s.observability = newObservability(s.Config, s.Build.Version, s.Logger)
	broker, err := NewCredentials(s.Config, s.Logger, s.observability.metrics.CredentialRenewed)
	if err != nil {
		return nil, err
	}
	credentials := &credentials{broker}
	s.governance = &governance{server: s}
	s.plugins = &plugins{server: s, credentials: credentials}
	s.reloader = newReloader(s, otherKeys)
	return credentials, nil
}

// Open starts the parts. If it fails, Close releases those that were started.
func (s *Server) Open(ctx context.Context) error {
	s.Level.Set(LogLevels[s.Config.LogLevel])
	if err := s.Config.AwaitStore(ctx, s.Logger); err != nil {
		return err
	}
	for _, p := range s.parts {
		if err := p.start(ctx); err != nil {
			return err
		}
		s.started = append(s.started, p)
	}
	return nil
}

// Run serves until ctx ends, a part fails, or nothing is left to serve. Then it drains.
func (s *Server) Run(ctx context.Context) error {
	notify(notifyReady)
	defer s.reloader.close() // before the parts that it reconfigures end
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range s.parts {
		if r, ok := p.(runner); ok {
			group.Go(func() error { return r.run(ctx) })
		}
	}
	group.Go(func() error {
		<-ctx.Done()
		s.drain(context.WithoutCancel(ctx))
		return nil
	})
	if err := group.Wait(); !errors.Is(err, errDone) {
		return err
	}
	return nil
}

// drain accepts no more requests and gives those in flight time to answer.
func (s *Server) drain(ctx context.Context) {
	s.draining.Store(true)
	notify(notifyStopping(s.Grace() + CloseTime))
	var errs []error
	for _, p := range s.parts {
		if d, ok := p.(drainer); ok {
			errs = append(errs, d.drain(ctx))
		}
	}
	if err := errors.Join(errs...); err != nil {
		s.Logger.Warn("stopped before all calls had finished", "err", err)
	}
}

// Close stops the parts that were started, the last one first.
func (s *Server) Close() error {
	var errs []error
	for _, p := range slices.Backward(s.started) {
		if p, ok := p.(stopper); ok {
			errs = append(errs, p.stop())
		}
	}
	s.started = nil
	return errors.Join(errs...)
}

const (
	// leastGrace is the least default of shutdown.grace: upstream servers and models need time even where no plugin
	// does.
	leastGrace = 10 * time.Second
	// CloseTime bounds the rest of a shutdown after Grace.
	CloseTime = 10 * time.Second
)

// Grace returns the time that calls in flight have to answer during a shutdown. It may be called at any time.
func (s *Server) Grace() time.Duration {
	if s.Config.ShutdownGrace > 0 {
		return s.Config.ShutdownGrace
	}
	if h := s.plugins.host.Load(); h != nil {
		return max(leastGrace, h.LongestCall())
	}
	return leastGrace
}

// Plugins returns the state of the plugins of an open server.
func (s *Server) Plugins() []host.Status { return s.plugins.host.Load().Plugins() }

// Approvals returns the questions of an open server.
func (s *Server) Approvals() *approval.Queue { return s.governance.Approvals }

// URL is the MCP endpoint of an open server with HTTP, for clients on this machine.
func (s *Server) URL() string { return s.web.http.URL() }

// status lists the problems for an operator, for /readyz.
func (s *Server) status() (lines []string) {
	for _, p := range s.parts {
		if r, ok := p.(reporter); ok {
			lines = append(lines, r.status()...)
		}
	}
	return lines
}

// Problems lists the problems for an operator, in the language "en" or "ja".
func (s *Server) Problems(language string) (list []console.Problem) {
	for _, p := range s.parts {
		if r, ok := p.(reporter); ok {
			list = append(list, r.problems(language)...)
		}
	}
	return list
}

// LogLevels are the values of log.level.
var LogLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// logLevel applies log.level.
type logLevel struct{ level *slog.LevelVar }

func (*logLevel) start(context.Context) error { return nil }

func (*logLevel) keys() []string { return []string{"log.level"} }

func (l *logLevel) prepare(_ context.Context, next *config.Config) (*change, error) {
	return silently(func() { l.level.Set(LogLevels[next.LogLevel]) }), nil
}
