// Package mcpserver is the MCP frontend: it offers the catalog's tools, resources and prompts to MCP clients over stdio
// and HTTP, and passes every call to the pipeline.
//
// New makes a Server of a catalog, a Pipeline and Options; Handler serves HTTP, ServeStdio one client over stdio. All
// protocol versions share them: those with sessions, up to 2025-11-25, and those without, from 2026-07-28. A tools/call
// over HTTP is read, called and answered here (answerCall). All other messages go to the official SDK, over a
// connection of package transport; the middlewares in receive.go take part in what it does. The head of methods.go
// lists the methods of MCP with the functions that answer them. The packages below: transport decodes requests and
// writes answers, auth decides who may use the endpoint, limits bounds what clients use, sessionstore keeps sessions
// where every replica finds them.
package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/attempts"
)

// Pipeline makes calls. *pipeline.Pipeline and *host.Host implement it; errors are those of pipeline.Pipeline.Call.
// Optional abilities are governor, viewer and updater.
type Pipeline interface {
	Call(ctx context.Context, call *pipeline.Call) (*pipeline.Result, error)
}

// Server offers a catalog to MCP clients. It is safe for concurrent use.
type Server struct {
	options Options
	// live replaces the options that can change: see Reconfigure.
	live        atomic.Pointer[live]
	catalog     *catalog.Catalog
	pipeline    Pipeline
	sdk         *mcp.Server
	catalogSync *catalogSync
	limiter     *limits.Limiter
	// governor and viewer are pipeline if it has these abilities, or nil.
	governor governor
	viewer   viewer
	// failedLogins limits their reports.
	failedLogins *attempts.Limiter
	// subscriptions are the subscriptions to resources.
	subscriptions *subscriptions
	// sessions are the sessions over HTTP. replicas connects them with the store and other replicas.
	sessions *sessionTable
	replicas *replicas
	// info is the name and version of the server, for every result of 2026-07-28. introduction has title, website and
	// icon too.
	info         json.RawMessage
	introduction *mcp.Implementation
	// extended has the names and URIs of Options.Extension.
	extended map[string]bool

	// draining ends when no more requests are accepted, base when requests in flight have to stop.
	draining, base       context.Context
	startDrain, stopBase context.CancelFunc
	unwatch              func()
	// pending are calls that wait for answers between two requests.
	pending pendingCalls
	// stdio are the connections being served over stdio.
	stdio stdioConns
}

// New returns a Server that offers the entries of c, also after changes, and passes calls to p. It fails if an
// option is out of range or an origin or host in it is malformed. Shutdown or Close ends it.
func New(c *catalog.Catalog, p Pipeline, options *Options) (*Server, error) {
	filled, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	first, err := newLive(filled)
	if err != nil {
		return nil, err
	}
	s := &Server{options: filled, catalog: c, pipeline: p, limiter: limits.New(filled.Limits),
		failedLogins: attempts.New()}
	s.governor, _ = p.(governor)
	s.viewer, _ = p.(viewer)
	s.live.Store(first)
	s.draining, s.startDrain = context.WithCancel(context.Background())
	s.base, s.stopBase = context.WithCancel(context.Background())
	s.sessions = newSessionTable(filled.Limits, filled.Sessions)
	implementation := &mcp.Implementation{Name: filled.Name, Version: filled.Version}
	s.introduction = &mcp.Implementation{Name: filled.Name, Title: filled.Title, Version: filled.Version,
		WebsiteURL: filled.Website}
	if filled.Icon != "" {
		s.introduction.Icons = []mcp.Icon{{Source: filled.Icon, MIMEType: "image/svg+xml", Sizes: []string{"any"}}}
	}
	if s.info, err = json.Marshal(implementation); err != nil {
		return nil, err
	}
	s.replicas = newReplicas(s, filled.Sessions)
	s.sdk = mcp.NewServer(implementation, s.sdkOptions())
	s.subscriptions = newSubscriptions(s)
	s.sdk.AddReceivingMiddleware(s.receive, s.subscriptions.receive, s.introduce)
	s.sdk.AddSendingMiddleware(s.subscriptions.send)
	s.catalogSync = newCatalogSync(s)
	if extension := filled.Extension; extension != nil {
		s.extended = map[string]bool{}
		for _, name := range extension.Register(s.sdk) {
			s.extended[name] = true
		}
	}
	s.unwatch = c.Watch(func() { s.catalogSync.sync(); s.subscriptions.rewatch() })
	s.catalogSync.sync()
	s.replicas.start()
	return s, nil
}

func (s *Server) sdkOptions() *mcp.ServerOptions {
	options := &mcp.ServerOptions{
		Logger:            demoted(s.options.Logger),
		PageSize:          s.options.PageSize,
		CompletionHandler: s.complete,
		Capabilities: &mcp.ServerCapabilities{
			Tools:       &mcp.ToolCapabilities{ListChanged: true},
			Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Prompts:     &mcp.PromptCapabilities{ListChanged: true},
			Completions: &mcp.CompletionCapabilities{},
		},
		SetCacheable: s.setCacheable,
		// subscriptions.receive decides.
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
	if s.options.Extension != nil {
		s.options.Extension.Configure(options)
	}
	return options
}

// setCacheable sets the time for which clients may keep a result, and makes a result that may depend on the caller
// private.
func (s *Server) setCacheable(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	_, read := req.(*mcp.ReadResourceRequest)
	if read || s.now().Auth != nil {
		c.CacheScope = "private"
	}
	if !read {
		c.TTLMs = int(max(0, s.now().ListTTL).Milliseconds())
	}
}

// ToolsChanged notifies clients that the list of tools may have changed for them, for reasons that are not in the
// catalog, such as another policy.
func (s *Server) ToolsChanged() { s.catalogSync.touch() }

// Shutdown ends the server gracefully: it accepts no more requests, waits for those in flight, and then ends sessions
// and streams. When ctx ends first, it stops the running requests and returns ctx's error; after a deadline, calls have
// three more seconds to answer that they were stopped. It ends ServeStdio too. Shut the
// http.Server down afterwards: its own Shutdown waits for open streams. Shutdown may be called twice.
func (s *Server) Shutdown(ctx context.Context) error {
	s.startDrain()
	s.unwatch()
	err := cmp.Or(s.limiter.Wait(ctx), s.stdio.wait(ctx))
	s.stopBase()
	if errors.Is(err, context.DeadlineExceeded) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), stoppedTime)
		defer cancel()
		_ = cmp.Or(s.limiter.Wait(ctx), s.stdio.wait(ctx)) // stuck requests are abandoned
	}
	s.replicas.close()
	s.sessions.clear()
	var closing sync.WaitGroup
	for session := range s.sdk.Sessions() {
		closing.Go(func() { session.Close() })
	}
	closing.Go(s.pending.work.Wait)
	closed := make(chan struct{})
	go func() {
		closing.Wait()
		s.subscriptions.close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return err
}

// stoppedTime bounds the time in which calls that a shutdown stops can answer.
const stoppedTime = 3 * time.Second

// Close is Shutdown without waiting.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Shutdown(ctx)
	return nil
}

// logPanic logs a recovered panic. Its cause stays out of the answer, because it may hold anything.
func (s *Server) logPanic(method string, cause any) {
	s.options.Logger.Error("an MCP request failed with an internal error", "method", method,
		"err", fmt.Sprint(cause), "stack", string(debug.Stack()))
}
