package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/host/credential"
)

const (
	// requestTime bounds a request without a streamed response.
	requestTime = 60 * time.Second
	// maxAnswer bounds a response other than a stream, in bytes.
	maxAnswer = 64 << 20
	// maxPages bounds a listing.
	maxPages = 1000
	// eventsPage and sessionsPage are page sizes.
	eventsPage, sessionsPage = 1000, 100
)

// Operations of the API, for the observer.
const (
	opSessions = "sessions"
	opEvents   = "events"
	opStream   = "stream"
	opSend     = "send"
	opAgents   = "agents"
)

// client is a client of the Managed Agents API. It is safe for concurrent use.
type client struct {
	agents   anthropic.BetaAgentService
	sessions anthropic.BetaSessionService
	key      *credential.Secret
	observe  func(operation, result string)

	mu    sync.Mutex
	until time.Time // guarded by mu: the API asked to wait until then
}

func newClient(spec *Spec, proxy *url.URL, observe func(operation, result string)) *client {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithHTTPClient(newHTTPClient(proxy)), option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(),
	}
	if spec.BaseURL != "" {
		options = append(options, option.WithBaseURL(spec.BaseURL))
	}
	if spec.Workspace != "" {
		options = append(options, option.WithHeader("anthropic-workspace-id", spec.Workspace))
	}
	beta := anthropic.NewClient(options...).Beta
	return &client{agents: beta.Agents, sessions: beta.Sessions, key: credential.NewSecret(spec.Key), observe: observe}
}

// newHTTPClient returns the HTTP client for the API. It follows no redirects and ignores the environment's proxies.
func newHTTPClient(proxy *url.URL) *http.Client {
	return &http.Client{Transport: bounded{outbound.NewTransport(proxy)},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects to another address, which the key is not sent to: set agent.baseUrl to that address")
		}}
}

// maxEvent bounds one event of a stream, in bytes. Results may contain images.
const maxEvent = 32 << 20

// bounded bounds the size of responses and of events in streams.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		response.Body = &eventBody{ReadCloser: response.Body}
	} else {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, nil
}

// eventBody ends a stream with an event that does not end: the SDK keeps its lines until then.
type eventBody struct {
	io.ReadCloser
	// size is that of the event so far. blank says that its last line has nothing in it yet.
	size  int
	blank bool
}

func (b *eventBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for _, c := range p[:n] {
		switch {
		case c == '\r':
		case c != '\n':
			b.blank = false
		case b.blank:
			b.size = 0
		default:
			b.blank = true
		}
	}
	if b.size += n; b.size > maxEvent {
		return 0, fmt.Errorf("an event of the stream has more than %d bytes", maxEvent)
	}
	return n, err
}

// do sends a request with the key. If the key is refused and has been replaced, it retries once. The error is an *Error
// or ctx's.
func (c *client) do(ctx context.Context, operation string, send func(option.RequestOption) error) error {
	key, err := c.key.Read(ctx)
	for again := true; ; again = false {
		if err == nil {
			err = c.pause(ctx)
		} else {
			err = &Error{Kind: Auth, Err: err}
		}
		if err == nil {
			err = send(option.WithAPIKey(key))
		}
		err = asError(ctx, err)
		c.note(operation, err)
		var e *Error
		if !again || !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
			return err
		}
		old := key
		c.key.Forget()
		var unread error
		if key, unread = c.key.Read(ctx); unread != nil || key == old {
			return err
		}
		err = nil
	}
}

// maxSpread is the maximum jitter of requests that waited for the rate limit.
const maxSpread = 5 * time.Second

// pause waits as long as the API asked for, with jitter, so that sessions do not all continue at once.
func (c *client) pause(ctx context.Context) error {
	c.mu.Lock()
	until := c.until
	c.mu.Unlock()
	wait := time.Until(until)
	if wait > 0 {
		wait += rand.N(min(wait, maxSpread))
	}
	return sleep(ctx, wait)
}

// note counts a request and records how long the API asked to wait.
func (c *client) note(operation string, err error) {
	result := "ok"
	var e *Error
	switch {
	case errors.As(err, &e):
		result = string(e.Kind)
	case err != nil:
		result = "canceled"
	}
	c.observe(operation, result)
	if e == nil || !e.temporary() || e.RetryAfter == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(e.RetryAfter); until.After(c.until) {
		c.until = until
	}
}

// list reads the events of a session, oldest first, all or those since a time. It passes each to take, or to odd an
// error for an event that cannot be parsed.
func (c *client) list(ctx context.Context, session string, since time.Time, take func(*event), odd func(error)) error {
	params := anthropic.BetaSessionEventListParams{Limit: param.NewOpt[int64](eventsPage),
		Order: anthropic.BetaSessionEventListParamsOrderAsc}
	for _, kind := range eventTypes {
		params.Types = append(params.Types, anthropic.BetaManagedAgentsSessionEventType(kind))
	}
	if !since.IsZero() {
		params.CreatedAtGte = param.NewOpt(since)
	}
	for range maxPages {
		next := ""
		err := c.do(ctx, opEvents, func(key option.RequestOption) error {
			limited, cancel := context.WithTimeout(ctx, requestTime)
			defer cancel()
			page, err := c.sessions.Events.List(limited, session, params, key)
			if err != nil {
				return err
			}
			for i := range page.Data {
				show(page.Data[i].RawJSON(), take, odd)
			}
			next = page.NextPage
			return nil
		})
		if err != nil || next == "" {
			return err
		}
		params.Page = param.NewOpt(next)
	}
	return &Error{Kind: Unavailable, Err: fmt.Errorf("the list of events has more than %d pages", maxPages)}
}

func show(raw string, take func(*event), odd func(error)) {
	e, err := parseEvent(raw)
	if err != nil {
		odd(err)
		return
	}
	take(e)
}

// stream opens the stream of a session's new events. The caller calls read, which passes events to take until the
// stream ends, and then closed.
func (c *client) stream(ctx context.Context, session string) (read func(take func(*event), odd func(error)) error,
	closed func(), err error) {
	err = c.do(ctx, opStream, func(key option.RequestOption) error {
		stream := c.sessions.Events.StreamEvents(ctx, session, anthropic.BetaSessionEventStreamParams{}, key)
		if err := stream.Err(); err != nil {
			return err
		}
		closed = func() { _ = stream.Close() }
		read = func(take func(*event), odd func(error)) error {
			for stream.Next() {
				show(stream.Current().RawJSON(), take, odd)
			}
			return asError(ctx, stream.Err())
		}
		return nil
	})
	return read, closed, err
}

// seen is a session in a listing.
type seen struct {
	id string
	// stamp changes whenever something happens in the session.
	stamp string
	// updated is the time of the last event. idle says that the agent waits for input.
	updated     time.Time
	idle, ended bool
	// belt reads the session's tools.
	belt func() *belt
}

// find lists the sessions of an agent, or of all agents if it is empty, newest first, restricted to the environments if
// there are any. It stops when take returns false.
func (c *client) find(ctx context.Context, agent string, environments []string, take func(seen) bool) error {
	params := anthropic.BetaSessionListParams{Limit: param.NewOpt[int64](sessionsPage)}
	if agent != "" {
		params.AgentID = param.NewOpt(agent)
	}
	for range maxPages {
		next := ""
		err := c.do(ctx, opSessions, func(key option.RequestOption) error {
			limited, cancel := context.WithTimeout(ctx, requestTime)
			defer cancel()
			page, err := c.sessions.List(limited, params, key)
			if err != nil {
				return err
			}
			next = page.NextPage
			for i := range page.Data {
				s := &page.Data[i]
				if !identifier.MatchString(s.ID) || len(environments) > 0 &&
					!slices.Contains(environments, s.EnvironmentID) {
					continue
				}
				if !take(seenOf(s)) {
					next = ""
					break
				}
			}
			return nil
		})
		if err != nil || next == "" {
			return err
		}
		params.Page = param.NewOpt(next)
	}
	return &Error{Kind: Unavailable, Err: fmt.Errorf("the list of sessions has more than %d pages", maxPages)}
}

func seenOf(s *anthropic.BetaManagedAgentsSession) seen {
	return seen{
		id: s.ID, stamp: stampOf(s), updated: s.UpdatedAt, belt: func() *belt { return beltOf(s) },
		idle:  s.Status == anthropic.BetaManagedAgentsSessionStatusIdle,
		ended: s.Status == anthropic.BetaManagedAgentsSessionStatusTerminated,
	}
}

// stampOf combines all fields that an event may change, because it is not documented which of them the API updates.
func stampOf(s *anthropic.BetaManagedAgentsSession) string {
	return fmt.Sprint(s.UpdatedAt.UnixNano(), s.Status, s.Stats.ActiveSeconds, s.Usage.RawJSON())
}

// send answers a call.
func (c *client) send(ctx context.Context, session, call string, a *answer) error {
	event := anthropic.BetaManagedAgentsUserCustomToolResultEventParams{
		CustomToolUseID: call, Type: "user.custom_tool_result", IsError: param.NewOpt(a.IsError), Content: a.blocks(),
	}
	return c.do(ctx, opSend, func(key option.RequestOption) error {
		limited, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		_, err := c.sessions.Events.Send(limited, session, anthropic.BetaSessionEventSendParams{
			Events: []anthropic.BetaManagedAgentsEventParamsUnion{{OfUserCustomToolResult: &event}},
		}, key)
		return err
	})
}
