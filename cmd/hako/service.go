package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/mcpserver/auth"
	"github.com/hako-run/hako/internal/config"
)

// service is a host with its frontends, and all that "hako serve" has beside them. web, slack and console are nil where
// there is no HTTP.
type service struct {
	config *config.Config
	flags  serveFlags
	auth   *auth.Auth
	cert   *certificate

	watched     *observation
	credentials *credential.Broker
	government  *government
	replica     *replica
	traffic     *console.Traffic
	host        *host.Host
	serving     atomic.Pointer[host.Host] // host, once it is open
	upstreams   *upstreamFollower

	frontend *mcpserver.Server
	web      *web
	slack    *slackFrontends
	console  *consoleFrontend

	reloader *reloader
	// hangups are orders to read the configuration again.
	hangups <-chan os.Signal
	level   *slog.LevelVar
	logger  *slog.Logger

	// closers give back what was opened, in its order.
	closers []func() error
}

// atClose has f called by close, before what was opened earlier is closed.
func (s *service) atClose(f func() error) { s.closers = append(s.closers, f) }

// atEnd is atClose for what cannot fail.
func (s *service) atEnd(f func()) { s.atClose(func() error { f(); return nil }) }

// close gives everything back, the last thing first.
func (s *service) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// check finds what is wrong with the configuration before anything is opened.
func (s *service) check() (err error) {
	if s.auth, s.cert, err = checkHTTP(s.config); err != nil {
		return err
	}
	return checkConsole(s.config)
}

// openGovernment opens what calls go through.
func (s *service) openGovernment(ctx context.Context) (err error) {
	if s.watched, err = observe(ctx, s.config, s.logger); err != nil {
		return err
	}
	s.atEnd(s.watched.close)
	if s.credentials, err = newCredentials(s.config, s.logger, s.watched.numbers.CredentialRenewed); err != nil {
		return err
	}
	if s.government, err = govern(ctx, s.config, s.logger); err != nil {
		return err
	}
	s.atClose(s.government.close)
	s.reloader = newReloader(s.flags, s.config, s.government.record, s.logger)
	return nil
}

// openReplica makes this process one of the replicas over its store, which do some jobs one for all.
func (s *service) openReplica(ctx context.Context) (err error) {
	jobs := append(s.government.retention(s.reloader.config), renewing(s.credentials))
	if s.replica, err = s.government.join(ctx, s.reloader.config, s.logger, jobs...); err != nil {
		return err
	}
	s.atEnd(s.replica.leave)
	return nil
}

// openHost opens the host, with options that change may change.
func (s *service) openHost(ctx context.Context, a *app, change func(*host.Options)) (err error) {
	s.host, err = a.openHost(ctx, s.config, s.logger, func(o *host.Options) {
		o.Credentials, o.Changed = s.credentials, s.government.pluginChanged
		s.watched.apply(o)
		s.government.apply(o)
		if change != nil {
			change(o)
		}
	})
	if err != nil {
		return err
	}
	s.serving.Store(s.host)
	s.atClose(s.host.Close)
	if err := s.government.started(s.host.Plugins()); err != nil {
		return err
	}
	s.atEnd(s.government.stopped)
	s.watched.show(s.host, s.credentials, s.government, s.reloader)
	return nil
}

// openFrontends connects the upstream servers and opens the frontends. What comes in waits until untilDone.
func (s *service) openFrontends(ctx context.Context) error {
	stopUpstreams, err := s.connectUpstreams(ctx, s.config, s.credentials, s.watched.numbers)
	if err != nil {
		return err
	}
	s.atEnd(stopUpstreams)
	s.atEnd(s.government.approvals.Watch(nil, s.government.waits))
	warnUnknown(s.config, s.host.Plugins(), s.logger)
	change := func(o *mcpserver.Options) {
		s.watched.frontend(o)
		s.replica.frontend(o)
		o.Now, o.LoginFailed = s.government.store.Time, s.government.loginFailed
	}
	if s.frontend, err = newFrontend(s.config, s.host, s.auth, change, s.logger); err != nil {
		return err
	}
	s.atEnd(func() { _ = s.frontend.Close() }) // untilDone has said what is to be said
	s.watched.showFrontend(s.frontend)
	s.atEnd(s.government.policy.Watch(s.frontend.ToolsChanged))
	if !s.flags.http { // a process that a client has started is for that client
		return nil
	}
	return s.openHTTP(ctx)
}

// openHTTP opens the frontends that are reached over HTTP, and the bot in Slack.
func (s *service) openHTTP(ctx context.Context) (err error) {
	s.slack, err = newSlackFrontends(ctx, s.config, func(ctx context.Context, c *config.Config) (*slackFrontend,
		error) {
		return newSlackFrontend(ctx, c, s.host, s.government, s.watched, s.logger)
	})
	if err != nil {
		return err
	}
	s.atClose(s.slack.close)
	if s.console, err = s.newConsole(ctx, s.config, s.government, s.credentials, s.traffic); err != nil {
		return err
	}
	handler := s.console.handle(s.config, s.slack.handle(s.frontend.Handler()))
	if s.web, err = listen(s.config, s.cert, handler, s.watched.handler(), s.state, s.logger); err != nil {
		return err
	}
	s.atEnd(s.web.close)
	return s.console.listen(s.web, s.config, s.cert, s.logger)
}

// parts are what of the service takes up another configuration, in the order in which it does.
func (s *service) parts() []part {
	list := []part{
		logPart(s.level), tracesPart(s.watched), credentialsPart(s.credentials), pluginsPart(s.host, s.logger),
		upstreamsPart(s.upstreams), approvalsPart(s.government),
		frontendPart(s.frontend),
	}
	if s.cert != nil {
		list = append(list, tlsPart(s.cert))
	}
	if s.console != nil {
		list = append(list, consolePart(s.console))
	}
	if s.slack != nil {
		list = append(list, slackPart(s.slack))
	}
	return list
}

// state says what an operator should look at, for those who look after the process.
func (s *service) state() []string {
	return slices.Concat(s.government.state(), s.reloader.state(), s.cert.state())
}

// extension is nil but in a build with the tag conformance, whose MCP server has the fixtures of the conformance suite.
var extension *mcpserver.Extension

// newFrontend makes the MCP server, with options that change may change. It is an error if the configuration holds what
// it does not take.
func newFrontend(c *config.Config, h *host.Host, by *auth.Auth, change func(*mcpserver.Options),
	logger *slog.Logger) (*mcpserver.Server, error) {
	options := frontendOptions(c, by)
	options.Extension, options.Logger = extension, logger
	if change != nil {
		change(options)
	}
	frontend, err := mcpserver.New(h.Catalog(), h, options)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return frontend, nil
}

// icon is a box, as clients show it. Base64 makes the data URI one without spaces and quotes, which strict clients
// refuse.
var icon = "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(
	`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#c8102e" stroke-width="2" stroke-linejoin="round">`+
		`<path d="M3 7.5 12 3l9 4.5v9L12 21l-9-4.5zM3 7.5l9 4.5 9-4.5M12 12v9"/></svg>`))

// frontendOptions are what c says of the MCP server.
func frontendOptions(c *config.Config, by *auth.Auth) *mcpserver.Options {
	return &mcpserver.Options{
		Title: "hako", Version: thisBuild().Version, Website: "https://github.com/hako-run/hako", Icon: icon,
		Instructions: c.MCP.Instructions, Overview: true, Language: c.Locale,
		PageSize: c.MCP.PageSize, ListTTL: c.MCP.ListTTL, Limits: c.MCP.Limits,
		Origins: c.HTTP.Origins, Hosts: c.HTTP.Hosts, TrustedProxies: c.HTTP.TrustedProxies, Auth: by,
	}
}

// untilDone serves at all frontends and watches the plugins until ctx ends or one of the frontends does, and then
// drains.
func (s *service) untilDone(ctx context.Context, in io.Reader, out io.Writer) error {
	notify(notifyReady)
	defer s.reloader.close() // before what it reconfigures
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.host.Watch(ctx) })
	s.web.serve(group)
	group.Go(func() error { return s.slack.run(ctx) })
	group.Go(func() error { return s.console.run(ctx) })
	group.Go(func() error { return s.reloader.follow(ctx, s.hangups) })
	if s.flags.stdio {
		group.Go(func() error {
			defer stop() // the client has gone
			return s.frontend.ServeStdio(ctx, in, out)
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		s.drain(context.WithoutCancel(ctx))
		return nil
	})
	return group.Wait()
}

// sendTime is how long the last answers may take to be sent.
const sendTime = 3 * time.Second

// drain takes no more requests and gives those in flight time to answer.
func (s *service) drain(ctx context.Context) {
	grace := s.grace()
	draining, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	notify(notifyStopping(grace + closeTime))
	s.web.drain()
	err := s.frontend.Shutdown(draining)
	// What the frontend has answered last is still to be sent.
	sending, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := errors.Join(err, s.web.shutdown(sending)); err != nil {
		s.logger.Warn("stopped before all calls had answered", "err", err)
	}
}
