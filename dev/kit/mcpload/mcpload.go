// Package mcpload is a client of MCP over HTTP for load generators. It sends prepared messages and reads each response
// to its end, so that what is measured is mostly the server. A Client opens a session if its protocol version has them,
// and calls tools with bodies that can be used again.
package mcpload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Protocol versions.
const (
	WithSessions = "2025-11-25"
	Sessionless  = "2026-07-28"
)

// Client sends messages in one protocol version. After Open it is safe for concurrent use.
type Client struct {
	HTTP *http.Client
	// URL is the MCP endpoint.
	URL string
	// Version is a protocol version. Those before Sessionless have sessions.
	Version string
	session string
}

func (c *Client) hasSessions() bool { return c.Version < Sessionless }

// Open opens a session. It does nothing in versions without sessions.
func (c *Client) Open(ctx context.Context) error {
	if !c.hasSessions() {
		return nil
	}
	header, _, err := c.Post(ctx, "initialize", "", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize",`+
		`"params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`, c.Version))
	if err != nil {
		return err
	}
	c.session = header.Get("Mcp-Session-Id")
	_, _, err = c.Post(ctx, "notifications/initialized", "",
		[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	return err
}

// End ends the session.
func (c *Client) End(ctx context.Context) error {
	_, _, err := c.send(ctx, http.MethodDelete, "", "", nil)
	return err
}

// Body returns the message that calls a tool with arguments in JSON.
func (c *Client) Body(tool, arguments string) []byte {
	meta := ""
	if !c.hasSessions() {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + c.Version + `",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}},`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s"name":%q,"arguments":%s}}`,
		meta, tool, arguments)
}

// Call sends the Body of a tool. It fails if the response does not contain want.
func (c *Client) Call(ctx context.Context, tool string, body []byte, want string) error {
	_, data, err := c.Post(ctx, "tools/call", tool, body)
	if err == nil && !strings.Contains(string(data), want) {
		err = fmt.Errorf("the answer has no %q: %.300s", want, data)
	}
	return err
}

// Post sends a message. tool is empty for methods other than tools/call. It fails if the status is not of class 2xx.
func (c *Client) Post(ctx context.Context, method, tool string, body []byte) (http.Header, []byte, error) {
	return c.send(ctx, http.MethodPost, method, tool, body)
}

func (c *Client) send(ctx context.Context, verb, method, tool string, body []byte) (http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, verb, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" || !c.hasSessions() {
		request.Header.Set("Mcp-Protocol-Version", c.Version)
	}
	if c.session != "" {
		request.Header.Set("Mcp-Session-Id", c.session)
	}
	if !c.hasSessions() {
		request.Header.Set("Mcp-Method", method)
		request.Header.Set("Mcp-Name", tool)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, data)
	}
	return response.Header, data, err
}
