package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	// legacyVersion is used with servers that do not understand the first request of the newest version.
	legacyVersion = "2025-11-25"
	// maxPages and maxListed bound a server's list: its pages and their entries.
	maxPages, maxListed = 64, 4096
	// listTime bounds requesting the list of tools, otherListTime each other list. maxListBytes is the size of lists after which no more pages are requested.
	listTime, otherListTime = 30 * time.Second, 10 * time.Second
	maxListBytes            = 16 << 20
	// endGrace bounds the wait for the end of a program that has closed its output. On a busy machine the end may be
	// late.
	endGrace = 5 * time.Second
	// frameSlack is added to twice the largest result to bound a message, in bytes: JSON escapes text, and base64 is
	// longer than data.
	frameSlack = 1 << 20
)

// session is a connection to a server.
type session struct {
	sdk *mcp.ClientSession
	// conn is the connection of sdk.
	conn mcp.Connection
	// program is nil for a server over HTTP, remote for a program.
	program *process
	remote  *remote
	// watching counts the goroutine of watch.
	watching sync.WaitGroup
	// ctx ends with the session.
	ctx context.Context
	end context.CancelCauseFunc
	// subscribed are the resources with a subscription at the server. Only refreshUntilEnd uses it.
	subscribed map[string]bool
	// requests are the open ones of a program. They are not used over HTTP, where each request has a stream.
	requests requests
	// probeTime bounds the probe for the newest version; silent reports whether it was left unanswered.
	probeTime time.Duration
	silent    bool
	// changed signals list_changed. One pending signal stands for all.
	changed chan struct{}

	// meter counts what the server sent.
	meter  meter
	tokens atomic.Int64
	mu     sync.Mutex
	// reports receive the progress of calls, by token.
	reports map[string]chan abi.Progress
	// calls are running. past were canceled a short time ago.
	calls map[*ongoing]bool
	past  []past
}

// held keeps the connection that a transport makes, which the SDK does not close in all cases.
type held struct {
	mcp.Transport
	conn mcp.Connection
}

func (h *held) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := h.Transport.Connect(ctx)
	h.conn = conn
	return conn, err
}

// connect connects to the server and negotiates a version. If the server has not answered the probe for the newest one
// within probe, silent is true and connect tries the older one. The session ends with life, or when it is closed or
// breaks.
func (s *server) connect(life context.Context, version string, probe time.Duration) (_ *session, silent bool,
	err error) {
	x := &session{probeTime: probe, subscribed: map[string]bool{}, changed: make(chan struct{}, 1),
		reports: map[string]chan abi.Progress{}, calls: map[*ongoing]bool{}}
	x.ctx, x.end = context.WithCancelCause(life)
	ctx, cancel := context.WithTimeoutCause(x.ctx, s.startTimeout(),
		fmt.Errorf("%w within %v: raise startTimeout if it needs longer", errSilent, s.startTimeout()))
	defer cancel()
	transport := new(held)
	defer func() {
		if err != nil {
			err = connectError(ctx, x, err)
			x.conn = transport.conn
			x.close(err)
		}
	}()
	if transport.Transport, err = s.transport(ctx, x); err != nil {
		return nil, false, err
	}
	x.sdk, err = x.client(s).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, x.silent, err
	}
	x.conn = transport.conn
	x.watching.Go(x.watch)
	return x, x.silent, nil
}

// connectError returns the cause of a failed connection.
func connectError(ctx context.Context, x *session, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	if x.program == nil {
		return cause.WithoutURL(err)
	}
	wait := 100 * time.Millisecond // the program may be about to end
	if errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF) {
		wait = endGrace
	}
	select {
	case <-x.program.done:
		return ended(x.program)
	case <-time.After(wait):
		return cause.WithoutURL(err)
	}
}

// ended describes how a program ended, with the last line of its standard error.
func ended(p *process) error {
	if p.err != nil {
		if last := p.lastLine.Load(); last != nil {
			return fmt.Errorf("%w: %w: %s", errEnded, p.err, excerpt([]byte(*last)))
		}
		return fmt.Errorf("%w: %w: it wrote nothing to its standard error", errEnded, p.err)
	}
	return fmt.Errorf("%w: it must keep running and speak MCP on its standard input and output", errEnded)
}

func (s *server) transport(ctx context.Context, x *session) (mcp.Transport, error) {
	most := int(2*s.bounds.Load().limits.Output) + frameSlack
	limiter := newMessageLimiter()
	if s.spec.URL != "" {
		r, endpoint, err := newRemote(ctx, &s.spec, s.env, &s.options)
		if err != nil {
			return nil, err
		}
		x.remote = r
		r.ctx, r.most, r.meter, r.limiter, r.noise = x.ctx, most, &x.meter, limiter, s.noise
		return &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: r.client(),
			MaxEventSize: 2*most + frameSlack}, nil
	}
	var err error
	s.lastLine.Store(nil)
	if x.program, err = startProcess(ctx, &s.spec, s.env, s.options.Dir, s.stderr); err != nil {
		return nil, err
	}
	x.program.lastLine = &s.lastLine
	in := inbound{requests: &x.requests, noise: s.noise}
	return &programTransport{x.program, &lineReader{newStream(x.ctx, x.program.stdout, most, limiter, &x.meter, in)},
		&x.requests}, nil
}

// client returns an MCP client whose only capability is elicitation, if the operator allows it. The SDK declines other
// requests of the server.
func (x *session) client(s *server) *mcp.Client {
	able := &mcp.ClientCapabilities{}
	if s.spec.Elicitation != ElicitationDecline {
		able.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{},
			URL: &mcp.URLElicitationCapabilities{}}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "hako", Version: s.options.Version}, &mcp.ClientOptions{
		Capabilities:               able,
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { x.change() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { x.change() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { x.change() },
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			if req.Params != nil {
				s.watches.notify(req.Params.URI)
			}
		},
		//lint:ignore SA1019 servers of versions before 2026-07-28 still log this way
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			s.logFromServer("log", "%s: %v", req.Params.Level, req.Params.Data)
		},
		ProgressNotificationHandler: func(_ context.Context,
			req *mcp.ProgressNotificationClientRequest) {
			x.progress(req.Params)
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		Logger:         slog.New(slog.DiscardHandler), // it would log what servers send
	})
	client.AddSendingMiddleware(x.sending)
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			asked, ok := req.(*mcp.ElicitRequest)
			switch {
			case ok && able.Elicitation != nil:
				return s.requested(ctx, x, asked.Params)
			case ok, method == "sampling/createMessage", method == "roots/list":
				s.logFromServer("declined", "%s", method)
			}
			return next(ctx, method, req)
		}
	})
	return client
}

// change requests a refresh of the lists.
func (x *session) change() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// watch ends the session when its connection breaks or its program ends.
func (x *session) watch() {
	broken := make(chan error, 1)
	go func() { broken <- x.sdk.Wait() }()
	var done chan struct{}
	if x.program != nil {
		done = x.program.done
	}
	select {
	case err := <-broken:
		if err = cause.WithoutURL(err); err == nil {
			err = errors.New("it closed the connection")
		}
		x.end(err)
	case <-done:
		x.end(ended(x.program))
	case <-x.ctx.Done():
	}
}

// close ends the session and its program, and waits for both. watch must not call it.
func (x *session) close(cause error) {
	x.end(cause)
	if x.conn != nil {
		_ = x.conn.Close() // fails calls in flight
	}
	if x.sdk != nil {
		_ = x.sdk.Close()
	}
	if x.remote != nil {
		x.remote.base.CloseIdleConnections()
	}
	if x.program != nil {
		x.program.stop()
	}
	x.watching.Wait()
}

// list requests all lists of the server. Lists that fail do not cost the others: they are in listing.failed. There is an
// error if the session is over, or if there is nothing to offer because of it.
func (x *session) list(ctx context.Context) (*listing, error) {
	bytes, values := x.meter.bytes.Load(), x.meter.values.Load()
	l := &listing{enough: func() bool {
		return x.meter.bytes.Load()-bytes > maxListBytes || x.meter.values.Load()-values > maxValues
	}}
	capabilities := x.sdk.InitializeResult().Capabilities
	if capabilities == nil {
		return l, nil
	}
	var cut [len(listKinds)]bool
	var errs [len(listKinds)]error
	var group sync.WaitGroup
	request := func(kind int, wanted bool, limit time.Duration, pages func(context.Context) (bool, error)) {
		if !wanted {
			return
		}
		group.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not arrive within %v", limit))
			defer cancel()
			if cut[kind], errs[kind] = pages(ctx); errs[kind] != nil && ctx.Err() != nil {
				errs[kind] = context.Cause(ctx)
			}
		})
	}
	request(0, capabilities.Tools != nil, listTime, func(ctx context.Context) (cut bool, err error) {
		l.tools, cut, err = pages(l, func(cursor string) ([]*mcp.Tool, string, error) {
			r, err := x.sdk.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Tools, r.NextCursor, nil
		})
		return cut, err
	})
	request(1, capabilities.Prompts != nil, otherListTime, func(ctx context.Context) (cut bool, err error) {
		l.prompts, cut, err = pages(l, func(cursor string) ([]*mcp.Prompt, string, error) {
			r, err := x.sdk.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Prompts, r.NextCursor, nil
		})
		return cut, err
	})
	request(2, capabilities.Resources != nil, otherListTime, func(ctx context.Context) (cut bool, err error) {
		l.resources, cut, err = pages(l, func(cursor string) ([]*mcp.Resource, string, error) {
			r, err := x.sdk.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Resources, r.NextCursor, nil
		})
		return cut, err
	})
	request(3, capabilities.Resources != nil, otherListTime, func(ctx context.Context) (cut bool, err error) {
		l.templates, cut, err = pages(l, func(cursor string) ([]*mcp.ResourceTemplate, string, error) {
			r, err := x.sdk.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
			if isNotFound(err) { // servers with resources may lack templates
				return nil, "", nil
			}
			if err != nil {
				return nil, "", err
			}
			return r.ResourceTemplates, r.NextCursor, nil
		})
		return cut, err
	})
	group.Wait()
	for i, kind := range listKinds {
		if cut[i] {
			l.cut = append(l.cut, kind)
		}
		if errs[i] != nil {
			l.failed = append(l.failed, failedList{kind, oneLineOf(cause.WithoutURL(errs[i]).Error())})
			errs[i] = fmt.Errorf("list %s: %w", kind, cause.WithoutURL(errs[i]))
		}
	}
	err := cmp.Or(errs[:]...)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case slices.ContainsFunc(errs[:], isOver), err != nil && l.empty() && (errs[0] != nil || capabilities.Tools == nil):
		return nil, err
	}
	return l, nil
}

// isOver reports whether a request failed because the session is over.
func isOver(err error) bool {
	return errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, errMidway) ||
		errors.Is(err, io.EOF)
}

// listKinds are the names of the lists.
var listKinds = [...]string{"tools", "prompts", "resources", "resource templates"}

// pages collects the valid entries of a list's pages, within the bounds. cut reports whether there are more.
func pages[T any](l *listing, page func(cursor string) ([]*T, string, error)) (all []*T, cut bool, err error) {
	cursor := ""
	for range maxPages {
		items, next, err := page(cursor)
		if err != nil {
			return nil, false, err
		}
		for _, item := range items {
			if item != nil && len(all) < maxListed {
				all = append(all, item)
			}
		}
		if next == "" {
			return all, false, nil
		}
		if cursor = next; len(all) == maxListed || l.enough() {
			break
		}
	}
	return all, true, nil
}

// progress forwards a report to its call. It drops a report that cannot be delivered at once.
func (x *session) progress(p *mcp.ProgressNotificationParams) {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if reports, ok := x.reports[token]; ok {
		select {
		case reports <- abi.Progress{Progress: p.Progress, Total: p.Total,
			Message: clip.Runes(visible.Clean(p.Message), maxDescription)}:
		default:
		}
	}
}

// expect returns a token for the progress of a call and the channel of its reports. forget ends the delivery.
func (x *session) expect() (token string, reports <-chan abi.Progress, forget func()) {
	token = "hako-" + strconv.FormatInt(x.tokens.Add(1), 10)
	taken := make(chan abi.Progress, 8)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reports[token] = taken
	return token, taken, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.reports, token)
	}
}

// noise logs what a program writes instead of messages.
func (s *server) noise(line []byte) {
	s.logFromServer("no message", "%s", line[:min(len(line), maxLogLine)])
}

// oneLineOf returns text from a server for a log line.
func oneLineOf(text string) string {
	return clip.Runes(oneLine(visible.Clean(text[:min(len(text), 4*maxLogLine)])), maxLogLine)
}

// lineWriter calls line for each line written to it. It drops the rest of a long line.
type lineWriter struct {
	line func(string)
	// pace bounds the bytes, also of lines that are not logged. Faster writers wait.
	pace *rate.Limiter
	rest bytes.Buffer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for left := n; left > 0; left -= w.pace.Burst() {
		_ = w.pace.WaitN(context.Background(), min(left, w.pace.Burst()))
	}
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if room := maxLogLine - w.rest.Len(); room > 0 {
			w.rest.Write(line[:min(len(line), room)])
		}
		if !whole {
			return n, nil
		}
		w.line(w.rest.String())
		w.rest.Reset()
		p = rest
	}
}
