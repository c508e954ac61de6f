package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/eventstream"
	"github.com/hako-run/hako/internal/retry"
)

// Where the API is, and which version of it this package knows (platform.claude.com/docs/en/managed-agents).
const (
	apiAddress = "https://api.anthropic.com"
	apiVersion = "2026-10-21"
	apiBeta    = "managed-agents-2026-04-01"
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
	http      *http.Client
	address   string
	workspace string // or empty
	key       *secret.Secret
	observe   func(operation, result string)

	mu    sync.Mutex
	until time.Time // guarded by mu: the API asked to wait until then
}

func newClient(spec *Spec, proxy *url.URL, observe func(operation, result string)) *client {
	return &client{http: newHTTPClient(proxy), address: strings.TrimSuffix(cmp.Or(spec.BaseURL, apiAddress), "/"),
		workspace: spec.Workspace, key: secret.New(spec.Key), observe: observe}
}

// newHTTPClient returns the HTTP client for the API. It follows no redirects and ignores the environment's proxies.
func newHTTPClient(proxy *url.URL) *http.Client {
	return &http.Client{Transport: bounded{outbound.NewTransport(proxy)},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errRedirect
		}}
}

// maxEvent bounds one event of a stream, in bytes. Results may contain images.
const maxEvent = 32 << 20

// bounded bounds the size of responses and of events in streams.
type bounded struct{ next *http.Transport }

// CloseIdleConnections is for http.Client's method of this name.
func (b bounded) CloseIdleConnections() { b.next.CloseIdleConnections() }

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

// eventBody ends a stream with an event that does not end: its lines are kept until then.
type eventBody struct {
	io.ReadCloser
	// size is the size of the event so far. blank reports that its last line is empty so far.
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
func (c *client) do(ctx context.Context, operation string, send func(key string) error) error {
	key, err := c.key.Read(ctx)
	for again := true; ; again = false {
		if err == nil {
			err = c.pause(ctx)
		} else {
			err = &Error{Kind: Auth, Err: err}
		}
		if err == nil {
			err = send(key)
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
	return retry.Wait(ctx, wait)
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

// open sends a request, with body as JSON unless it is nil. The caller closes the response, which is a success.
func (c *client) open(ctx context.Context, key, method, path string, query url.Values, body any) (*http.Response,
	error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, content)
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = query.Encode()
	for name, value := range map[string]string{"Authorization": "Bearer " + key, "Anthropic-Version": apiVersion,
		"Anthropic-Beta": apiBeta, "Anthropic-Workspace-Id": c.workspace, "User-Agent": "hako"} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil || response.StatusCode < 300 {
		return response, err
	}
	defer response.Body.Close()
	failure, _ := io.ReadAll(response.Body) // a partial body may do
	return nil, &apiError{response.StatusCode, response.Header, failure}
}

// request sends a request, with body as JSON unless it is nil, and parses the response. A member of an unexpected type is
// an error: skipped, it would look like a missing one, and an archived agent or an ended session would look like a
// usable one.
func (c *client) request(ctx context.Context, operation, method, path string, query url.Values, body,
	result any) error {
	return c.do(ctx, operation, func(key string) error {
		limited, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		response, err := c.open(limited, key, method, path, query, body)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		return decode(data, result)
	})
}

// page is a page of a listing.
type page[T any] struct {
	Data     []T    `json:"data"`
	NextPage string `json:"next_page"`
}

// pages requests the pages of a listing until take returns false.
func pages[T any](ctx context.Context, c *client, operation, path string, query url.Values,
	take func([]T) bool) error {
	for range maxPages {
		var p page[T]
		if err := c.request(ctx, operation, http.MethodGet, path, query, nil, &p); err != nil {
			return err
		}
		if !take(p.Data) || p.NextPage == "" {
			return nil
		}
		query.Set("page", p.NextPage)
	}
	return &Error{Kind: Unavailable, Err: fmt.Errorf("the list of %s has more than %d pages", operation, maxPages)}
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// list reads the events of a session, oldest first, all or those since a time. It passes each to take, or to odd an
// error for an event that cannot be parsed.
func (c *client) list(ctx context.Context, session string, since time.Time, take func(*event), odd func(error)) error {
	query := url.Values{"limit": {strconv.Itoa(eventsPage)}, "order": {"asc"}, "types[]": eventTypes}
	if !since.IsZero() {
		query.Set("created_at[gte]", since.Format(time.RFC3339))
	}
	return pages(ctx, c, opEvents, sessionPath(session)+"/events", query, func(events []json.RawMessage) bool {
		for _, raw := range events {
			show(string(raw), take, odd)
		}
		return true
	})
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
	err = c.do(ctx, opStream, func(key string) error {
		response, err := c.open(ctx, key, http.MethodGet, sessionPath(session)+"/events/stream", nil, nil)
		if err != nil {
			return err
		}
		closed = func() { _ = response.Body.Close() }
		read = func(take func(*event), odd func(error)) error {
			for data, err := range eventstream.Events(response.Body, maxEvent) {
				if errors.Is(err, eventstream.ErrUnended) {
					break // the event is listed when the stream is opened again
				}
				if err == nil {
					err = streamedError(data)
				}
				if err != nil {
					return asError(ctx, err)
				}
				show(string(data), take, odd)
			}
			return asError(ctx, nil)
		}
		return nil
	})
	return read, closed, err
}

// listedSession is a session in a listing.
type listedSession struct {
	id string
	// stamp changes whenever something happens in the session.
	stamp string
	// updated is the time of the last event. idle reports whether the agent waits for input.
	updated     time.Time
	idle, ended bool
	// tools reads the session's tools.
	tools func() *sessionTools
}

// sessionObject is a session as the API has it.
type sessionObject struct {
	ID            string    `json:"id"`
	EnvironmentID string    `json:"environment_id"`
	Status        string    `json:"status"`
	UpdatedAt     time.Time `json:"updated_at"`
	Stats         struct {
		ActiveSeconds float64 `json:"active_seconds"`
	} `json:"stats"`
	Usage json.RawMessage `json:"usage"`
	Agent struct {
		ID      string            `json:"id"`
		Version int64             `json:"version"`
		Tools   []json.RawMessage `json:"tools"`
	} `json:"agent"`
}

// find lists the sessions of an agent, or of all agents if it is empty, newest first, restricted to the environments if
// there are any. It stops when take returns false.
func (c *client) find(ctx context.Context, agent string, environments []string, take func(listedSession) bool) error {
	query := url.Values{"limit": {strconv.Itoa(sessionsPage)}}
	if agent != "" {
		query.Set("agent_id", agent)
	}
	var unreadable error
	err := pages(ctx, c, opSessions, "/v1/sessions", query, func(sessions []json.RawMessage) bool {
		for _, raw := range sessions {
			s := new(sessionObject)
			if err := decode(raw, s); err != nil {
				unreadable = &Error{Kind: Unavailable, Err: err} // the other sessions are served
				continue
			}
			if !identifier().MatchString(s.ID) || len(environments) > 0 &&
				!slices.Contains(environments, s.EnvironmentID) {
				continue
			}
			if !take(listedSessionOf(s)) {
				return false
			}
		}
		return true
	})
	return cmp.Or(err, unreadable)
}

func listedSessionOf(s *sessionObject) listedSession {
	return listedSession{id: s.ID, stamp: stampOf(s), updated: s.UpdatedAt, idle: s.Status == "idle",
		ended: s.Status == "terminated", tools: func() *sessionTools { return sessionToolsOf(s) }}
}

// stampOf combines all fields that an event may change, because it is not documented which of them the API updates.
func stampOf(s *sessionObject) string {
	return fmt.Sprint(s.UpdatedAt.UnixNano(), s.Status, s.Stats.ActiveSeconds, string(s.Usage))
}

// send answers a call.
func (c *client) send(ctx context.Context, session, call string, a *answer) error {
	type resultEvent struct {
		Type    string  `json:"type"`
		Call    string  `json:"custom_tool_use_id"`
		IsError bool    `json:"is_error"`
		Content []block `json:"content"`
	}
	events := map[string][]resultEvent{"events": {{typeResult, call, a.IsError, a.blocks()}}}
	return c.request(ctx, opSend, http.MethodPost, sessionPath(session)+"/events", nil, events, new(json.RawMessage))
}
