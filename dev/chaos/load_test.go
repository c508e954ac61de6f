//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	withSessions    = "2025-11-25"
	withoutSessions = "2026-07-28"
)

// call is one tools/call and what became of it.
type call struct {
	kind, trace string
	// title is the text that the call writes, if it does.
	title string
	// answered reports whether an answer came, failed that it was an error of the tool or the protocol.
	answered, failed bool
	text             string
	at               time.Time
}

// book keeps the calls.
type book struct {
	mu    sync.Mutex // guards what follows
	calls []*call
	// lost are sessions that were not found any more.
	lost []string
	// resumed are streams that went on elsewhere.
	resumed int
}

func (b *book) add(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
}

// client is a small MCP client: what it does not know for certain it does not do, such as to send a call twice.
type client struct {
	book    *book
	url     string
	version string
	session string
	// token is empty where nobody needs one.
	token  string
	http   *http.Client
	serial int
}

func newClient(b *book, url, version string) *client {
	// Connections are kept: nginx chooses a replica for each request all the same.
	return &client{book: b, url: url + "/mcp", version: version, http: &http.Client{Timeout: 30 * time.Second}}
}

// open opens a session, however often it takes.
func (c *client) open(ctx context.Context) {
	for c.version == withSessions && c.session == "" && ctx.Err() == nil {
		response, err := c.post(ctx, "initialize", map[string]any{
			"protocolVersion": withSessions, "capabilities": map[string]any{"elicitation": map[string]any{}},
			"clientInfo": map[string]string{"name": "chaos", "version": "1"},
		}, nil)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				c.session = response.Header.Get("Mcp-Session-Id")
			}
		}
		if c.session == "" {
			pause(ctx, 100*time.Millisecond)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// post sends a request. meta goes into its _meta.
func (c *client) post(ctx context.Context, method string, params map[string]any, meta map[string]any) (*http.Response,
	error) {
	c.serial++
	if meta == nil {
		meta = map[string]any{}
	}
	if c.version == withoutSessions {
		meta["io.modelcontextprotocol/protocolVersion"] = c.version
		meta["io.modelcontextprotocol/clientInfo"] = map[string]string{"name": "chaos", "version": "1"}
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{"elicitation": map[string]any{}}
	}
	params["_meta"] = meta
	headers := map[string]string{}
	if c.version == withoutSessions {
		headers["Mcp-Method"] = method
		if name, ok := params["name"].(string); ok {
			headers["Mcp-Name"] = name
		}
	}
	return c.send(ctx, http.MethodPost, map[string]any{"jsonrpc": "2.0", "id": c.serial, "method": method,
		"params": params}, headers)
}

func (c *client) send(ctx context.Context, method string, message any, headers map[string]string) (*http.Response,
	error) {
	var body io.Reader
	if message != nil {
		data, err := json.Marshal(message)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", c.version)
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	return c.http.Do(r)
}

// answer is a JSON-RPC message to the client.
type answer struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Error  json.RawMessage `json:"error"`
	Result struct {
		IsError bool                       `json:"isError"`
		Content []struct{ Text string }    `json:"content"`
		State   string                     `json:"requestState"`
		Inputs  map[string]json.RawMessage `json:"inputRequests"`
	} `json:"result"`
}

var errNoAnswer = errors.New("no answer")

// call calls a tool once, says yes to what the host asks, and keeps what came of it.
func (c *client) call(ctx context.Context, kind, tool string, arguments map[string]any, title string) *call {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	record := &call{kind: kind, trace: hex.EncodeToString(id), title: title, at: time.Now()}
	c.book.add(record)
	params := map[string]any{"name": tool, "arguments": arguments}
	got, err := c.ask(ctx, record, params)
	if err == nil && got.Result.State != "" {
		params["requestState"] = got.Result.State
		params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept",
			"content": map[string]any{"approve": true}}}
		got, err = c.ask(ctx, record, params)
	}
	if err != nil {
		record.text = err.Error()
		return record
	}
	record.answered = true
	record.failed = got.Error != nil || got.Result.IsError
	record.text = string(got.Error)
	for _, block := range got.Result.Content {
		record.text += block.Text
	}
	return record
}

func (c *client) ask(ctx context.Context, record *call, params map[string]any) (*answer, error) {
	// Half of the calls want to hear of progress, and so take the long way.
	meta := map[string]any{"traceparent": "00-" + record.trace + "-00f067aa0ba902b7-01"}
	if c.serial%2 == 0 && c.version == withSessions {
		meta["progressToken"] = c.serial
	}
	response, err := c.post(ctx, "tools/call", params, meta)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound && c.session != "" {
		c.book.mu.Lock()
		c.book.lost = append(c.book.lost, c.session)
		c.book.mu.Unlock()
	}
	got, last, err := c.read(ctx, response)
	if err != nil && last != "" {
		return c.resume(ctx, last)
	}
	return got, err
}

// resume goes on with a stream that was cut off.
func (c *client) resume(ctx context.Context, last string) (*answer, error) {
	for range 100 {
		response, err := c.send(ctx, http.MethodGet, nil, map[string]string{"Last-Event-ID": last})
		if err != nil {
			pause(ctx, 100*time.Millisecond)
			continue
		}
		got, next, err := c.read(ctx, response)
		_ = response.Body.Close()
		if err == nil {
			c.book.mu.Lock()
			c.book.resumed++
			c.book.mu.Unlock()
			return got, nil
		}
		if response.StatusCode == http.StatusBadRequest {
			return nil, fmt.Errorf("%w: the stream is not kept", errNoAnswer)
		}
		if next != "" {
			last = next
		}
		pause(ctx, 100*time.Millisecond)
	}
	return nil, errNoAnswer
}

// read reads a response up to the answer. last is the ID of the last event.
func (c *client) read(ctx context.Context, response *http.Response) (got *answer, last string, err error) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		data, err := io.ReadAll(response.Body)
		got = new(answer)
		if err != nil || json.Unmarshal(data, got) != nil || got.ID == nil {
			return nil, "", fmt.Errorf("%w: %s", errNoAnswer, response.Status)
		}
		return got, "", nil
	}
	scan := bufio.NewScanner(response.Body)
	scan.Buffer(nil, 4<<20)
	for scan.Scan() {
		if id, ok := strings.CutPrefix(scan.Text(), "id: "); ok {
			last = id
		}
		data, ok := strings.CutPrefix(scan.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		got := new(answer)
		if err := json.Unmarshal([]byte(data), got); err != nil {
			continue
		}
		switch {
		case got.Method == "":
			return got, last, nil
		case got.Method == "elicitation/create":
			c.agree(ctx, got.ID)
		}
	}
	return nil, last, fmt.Errorf("%w: the stream was cut off", errNoAnswer)
}

// agree says yes to a form.
func (c *client) agree(ctx context.Context, id any) {
	message := map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"action": "accept",
		"content": map[string]any{"approve": true}}}
	for range 20 {
		response, err := c.send(ctx, http.MethodPost, message, nil)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusAccepted {
				return
			}
		}
		pause(ctx, 100*time.Millisecond)
	}
}
