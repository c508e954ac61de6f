package slackbot

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/retry"
)

// Bounds of requests to Slack.
const (
	// requestTime bounds a request, without the wait for the rate limit.
	requestTime = 30 * time.Second
	// limitRetries bounds the retries of a rate-limited request.
	limitRetries = 5
	// limitWait is used if Retry-After is missing; mostLimitWait bounds it.
	limitWait, mostLimitWait = time.Second, 10 * time.Minute
	// maxAnswer bounds a response of the Web API, in bytes.
	maxAnswer = 16 << 20
)

// client sends requests to Slack for one workspace. It obeys the rate limits, which each method has for itself
// (docs.slack.dev/apis/web-api/rate-limits), and counts requests. It repeats only rate-limited requests, because most
// are not idempotent.
type client struct {
	http     *http.Client
	observer Observer
	// refused is called when Slack refuses the bot's token.
	refused func()

	mu    sync.Mutex // guards until
	until map[string]time.Time
}

func (b *Bot) client(refused func()) *client {
	return &client{
		http:     &http.Client{Transport: outbound.NewTransport(b.options.Proxy), Timeout: requestTime},
		observer: b.options.Observer, refused: refused,
		until: map[string]time.Time{},
	}
}

// Do sends a request.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	method := methodName(r)
	if err := markHidden(r, method); err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		if err := c.pause(r, method); err != nil {
			return nil, err
		}
		response, err := c.http.Do(r)
		if err != nil {
			c.observer.SlackRequest(method, "network")
			return nil, err
		}
		if response.StatusCode != http.StatusTooManyRequests {
			return c.count(method, response)
		}
		c.observer.SlackRateLimited(method)
		c.putOff(method, response)
		if attempt == limitRetries || !rewind(r) {
			c.observer.SlackRequest(method, "rate_limited")
			return response, nil
		}
		_ = response.Body.Close()
	}
}

// methodName returns the name of the Web API's method, or "file".
func methodName(r *http.Request) string {
	name := path.Base(r.URL.Path)
	if _, ok := methods[name]; ok {
		return name
	}
	return "file"
}

// methods are the methods that the bot uses, for metrics.
var methods = map[string]struct{}{
	"auth.test": {}, "apps.connections.open": {}, "users.info": {}, "usergroups.list": {}, "conversations.replies": {},
	"conversations.open": {}, "conversations.info": {},
	"chat.postMessage": {}, "chat.update": {}, "chat.postEphemeral": {}, "views.open": {}, "chat.startStream": {},
	"chat.appendStream": {}, "chat.stopStream": {},
	"agents.sessions.setStatus": {}, "files.getUploadURLExternal": {}, "files.completeUploadExternal": {},
}

// pause waits until the rate limit allows the method.
func (c *client) pause(r *http.Request, method string) error {
	c.mu.Lock()
	wait := time.Until(c.until[method])
	c.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return retry.Wait(r.Context(), wait)
}

// putOff records when the rate limit allows the method again.
func (c *client) putOff(method string, response *http.Response) {
	wait := limitWait
	if after := retry.After(response.Header, time.Now()); after > 0 {
		wait = min(after, mostLimitWait)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until[method] = time.Now().Add(wait)
}

// rewind prepares r for a retry. It reports false if the body cannot be read again.
func rewind(r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	r.Body = body
	return err == nil
}

// count records the result of a request.
func (c *client) count(method string, response *http.Response) (*http.Response, error) {
	if method == "file" || response.StatusCode != http.StatusOK {
		c.observer.SlackRequest(method, resultOf(response.StatusCode))
		return response, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		c.observer.SlackRequest(method, "network")
		return nil, err
	}
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	result := "ok"
	if json.Unmarshal(body, &answer) != nil || !answer.OK {
		result = "refused"
	}
	if slices.Contains(authErrors, answer.Error) {
		result = "auth"
		if method != "apps.connections.open" { // uses the app's token
			c.refused()
		}
	}
	c.observer.SlackRequest(method, result)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func resultOf(status int) string {
	switch {
	case status == http.StatusOK:
		return "ok"
	case status >= 500:
		return "server"
	}
	return "refused"
}
