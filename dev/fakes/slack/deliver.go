package slack

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

// app is Slack's record of the bot's app.
type app struct {
	token       string // for Socket Mode
	url, secret string // of the Events API
	// conns are the open connections of Socket Mode.
	conns []*conn
}

// conn is one of them. acks are those who wait for an acknowledgement, by envelope. gone is closed when the connection
// is.
type conn struct {
	ws   *websocket.Conn
	mu   sync.Mutex // for writing, and acks
	acks map[string]chan json.RawMessage
	gone chan struct{}
}

// UseSocketMode lets an app connect with an app-level token ("xapp-…"), and delivers events over its connections.
func (s *Server) UseSocketMode(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app.token = token
}

// UseHTTP sends events to the app at url, in requests that are signed with secret.
func (s *Server) UseHTTP(url, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app.url, s.app.secret = url, secret
}

// base is the URL that a request came to, without the method's part.
func base(r *http.Request) string {
	before, _, _ := strings.Cut(r.RequestURI, "/api/")
	return "http://" + r.Host + before
}

// connect answers apps.connections.open.
func (s *Server) connect(r *http.Request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.app.token == "" || fakehttp.Bearer(r) != s.app.token {
		return nil, refuse("invalid_auth")
	}
	return answer{"url": strings.Replace(base(r), "http", "ws", 1) + "/socket/?ticket=one"}, nil
}

// SocketOrigin is the origin that slack-go names when it opens a WebSocket.
const SocketOrigin = "https://api.slack.com"

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// socket is a connection of Socket Mode until it closes.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.Close() }()
	c := &conn{ws: ws, acks: map[string]chan json.RawMessage{}, gone: make(chan struct{})}
	defer close(c.gone)
	if c.write(map[string]any{"type": "hello", "num_connections": 1,
		"connection_info": map[string]string{"app_id": "A0000000000"}}) != nil {
		return
	}
	s.mu.Lock()
	s.app.conns = append(s.app.conns, c)
	s.touch()
	s.mu.Unlock()
	defer s.leave(c)
	for {
		var ack struct {
			Envelope string          `json:"envelope_id"`
			Payload  json.RawMessage `json:"payload"`
		}
		if ws.ReadJSON(&ack) != nil {
			return
		}
		c.mu.Lock()
		if waiting, ok := c.acks[ack.Envelope]; ok {
			delete(c.acks, ack.Envelope)
			waiting <- ack.Payload
		}
		c.mu.Unlock()
	}
}

func (s *Server) leave(gone *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.app.conns {
		if c == gone {
			s.app.conns = append(s.app.conns[:i:i], s.app.conns[i+1:]...)
			return
		}
	}
}

// Connections returns the number of open connections of Socket Mode.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.app.conns)
}

// Disconnect asks every connection to be opened anew, as Slack does every few hours.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.app.conns {
		_ = c.write(map[string]string{"type": "disconnect", "reason": "refresh_requested"})
	}
}

func (c *conn) write(v any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ws.WriteJSON(v)
}

// ErrNoAnswer means that the app did not acknowledge a delivery in time, or is not connected.
var ErrNoAnswer = errors.New("the app did not answer in time")

// ackTime bounds Slack's wait for an acknowledgement (docs.slack.dev/apis/events-api, error handling).
const ackTime = 3 * time.Second

// Kinds of deliveries to an app.
const (
	KindEvent   = "events_api"
	KindAction  = "interactive"
	KindCommand = "slash_commands"
)

// Deliver sends an event to the app and returns its response. It fails with ErrNoAnswer, or with the status of a
// refused request. retry is the number of earlier deliveries.
func (s *Server) Deliver(ctx context.Context, kind string, payload any, retry int) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.AckTime, ackTime))
	defer cancel()
	s.mu.Lock()
	s.serial++
	serial, a := s.serial, s.app
	s.mu.Unlock()
	if a.url != "" {
		return post(ctx, a, kind, payload, retry)
	}
	if len(a.conns) == 0 {
		return nil, ErrNoAnswer
	}
	envelope, c := fmt.Sprintf("envelope-%d", serial), a.conns[serial%len(a.conns)] // any of them
	ack := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.acks[envelope] = ack
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.acks, envelope) // of one that was not acknowledged
	}()
	message := map[string]any{"type": kind, "envelope_id": envelope, "payload": payload,
		"accepts_response_payload": kind != KindEvent}
	if retry > 0 {
		message["retry_attempt"], message["retry_reason"] = retry, "timeout"
	}
	if c.write(message) != nil {
		return nil, ErrNoAnswer
	}
	select {
	case answer := <-ack:
		return answer, nil
	case <-c.gone:
	case <-ctx.Done():
	}
	return nil, ErrNoAnswer
}

// client has a transport of its own: httptest.Server.Close closes the connections of http.DefaultTransport, and an
// event would be delivered twice.
var client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// post is Deliver over HTTP.
func post(ctx context.Context, a app, kind string, payload any, retry int) (json.RawMessage, error) {
	body, contentType, err := encode(kind, payload)
	if err != nil {
		return nil, err
	}
	r, err := Signed(ctx, a.url, contentType, body, a.secret, time.Now())
	if err != nil {
		return nil, err
	}
	if retry > 0 {
		r.Header.Set("X-Slack-Retry-Num", strconv.Itoa(retry))
		r.Header.Set("X-Slack-Retry-Reason", "http_timeout")
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, ErrNoAnswer
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the app answered %s", response.Status)
	}
	return text, err
}

// encode is the body of a request: JSON for an event, a form for the others.
func encode(kind string, payload any) (body []byte, contentType string, err error) {
	body, err = json.Marshal(payload)
	switch kind {
	case KindAction:
		return []byte(url.Values{"payload": {string(body)}}.Encode()), "application/x-www-form-urlencoded", err
	case KindCommand:
		form := url.Values{}
		fields, _ := payload.(map[string]string)
		for name, value := range fields {
			form.Set(name, value)
		}
		return []byte(form.Encode()), "application/x-www-form-urlencoded", err
	}
	return body, "application/json", err
}

// Signed is a request as Slack signs it at a time (docs.slack.dev/authentication/verifying-requests-from-slack).
func Signed(ctx context.Context, url, contentType string, body []byte, secret string, at time.Time) (*http.Request,
	error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", seconds, body)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Slack-Request-Timestamp", seconds)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r, nil
}
