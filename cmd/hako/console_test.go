package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/internal/visible"
)

// consoleClient is a browser of somebody at this machine.
type consoleClient struct {
	t    *testing.T
	http *http.Client
	base string
	csrf string
}

func newConsoleClient(t *testing.T, base string) *consoleClient {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &consoleClient{t: t, http: &http.Client{Jar: jar, Transport: httpClient.Transport},
		base: base + "/console/api/"}
}

func (c *consoleClient) do(method, path, body string) (int, string) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Hako-CSRF", c.csrf)
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// login logs in with a link, and returns the status.
func (c *consoleClient) login(link string) int {
	c.t.Helper()
	_, secret, _ := strings.Cut(link, "#link=")
	status, body := c.do("POST", "login", `{"link":"`+secret+`"}`)
	var session struct{ CSRF string }
	_ = json.Unmarshal([]byte(body), &session)
	c.csrf = session.CSRF
	return status
}

// under asks for the console under another name.
func (c *consoleClient) under(t *testing.T, host string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", c.base+"session", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	response, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// add adds text to the end of a file.
func add(t *testing.T, path, text string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, append(before, text...))
}

var consoleAt = regexp.MustCompile(`The console is at (\S+)\n`)

func TestServeConsole(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	s := serveWith(t, nil, true, dir)
	link := consoleAt.FindStringSubmatch(s.stderr.String())
	if link == nil || !strings.HasPrefix(link[1], s.base()+"/console/#link=") {
		t.Fatalf("the greeting has no link:\n%s", s.stderr)
	}
	c := newConsoleClient(t, s.base())
	if status := c.login(link[1]); status != http.StatusOK {
		t.Fatalf("log in: %d", status)
	}
	if status := newConsoleClient(t, s.base()).login(link[1]); status != http.StatusUnauthorized {
		t.Errorf("log in with the link again: %d", status)
	}
	s.rpc(t, "", "tools/call", "probe_echo", `"name":"probe_echo","arguments":{"text":"seen"},`)
	for path, want := range map[string]string{
		"overview": `"lastMinute":1`, "plugins/probe": `"state":"active"`, "tools/probe_echo": `"inputSchema"`,
		"series/top":            `"tool":"probe_echo"`,
		"configuration":         `"key":"console.sessions.idle","value":"1h0m0s"`,
		"audit?tool=probe_echo": `"frontend":"mcp-http"`, "replicas": `"items":[`,
	} {
		if status, body := c.do("GET", path, ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.400s, want %s", path, status, body, want)
		}
	}
	if _, body := c.do("POST", "tools/probe_echo/call", `{"arguments":{"text":"tried"}}`); !strings.Contains(
		body,
		`"text":"tried"`,
	) {
		t.Errorf("a tool that is tried: %s", body)
	}
	if status := c.under(t, "hako.internal"); status != http.StatusForbidden {
		t.Errorf("under a name that is not configured: %d", status)
	}
	add(t, filepath.Join(dir, "hako.yaml"), "http: {hosts: [hako.internal]}\n")
	if status, body := c.do("POST", "configuration/reload", `{}`); status != http.StatusOK {
		t.Errorf("reload: %d %s", status, body)
	}
	if status := c.under(t, "hako.internal"); status != http.StatusOK {
		t.Errorf("under a name that was configured since: %d", status)
	}
	if status, body := c.do("POST", "plugins/probe/revoke", `{}`); status != http.StatusOK ||
		!strings.Contains(body, `"state":"revoked"`) {
		t.Errorf("revoke: %d %.400s", status, body)
	}
	printed := invoke(t, dir, "console")
	printed.want(t, exitOK, "http://127.0.0.1:8420/console/#link=")
	if status := newConsoleClient(t, s.base()).login(strings.TrimSpace(printed.stdout)); status != http.StatusOK {
		t.Errorf("log in with the link of hako console: %d", status)
	}
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}

// TestHostileLoginLink: whoever reads the log of hako later finds no login in it.
func TestHostileLoginLink(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			dir := approved(t, "log: {format: "+format+", level: debug}\n")
			if format == "text" {
				s := serve(t, dir)
				if log := s.stderr.String(); strings.Contains(log, "link=") ||
					!strings.Contains(log, "hako console prints a link") {
					t.Errorf("the log has %s", log)
				}
				return
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			log := new(watched)
			done := make(chan int, 1)
			go func() {
				a := &app{stdin: strings.NewReader(""), stdout: io.Discard,
					stderr: &terminal.Screen{Writer: visible.NewWriter(log), Terminal: true}}
				done <- a.run(ctx, []string{"-C", dir, "serve", "--http", "127.0.0.1:0"})
			}()
			<-log.await(`"msg":"serving"`)
			cancel()
			if <-done; strings.Contains(log.String(), "link=") {
				t.Errorf("the log has %s", log)
			}
		})
	}
}

// TestAdminAlwaysGetsIn: the link of 'hako console' lets an admin in at this machine, whatever logins are configured.
func TestAdminAlwaysGetsIn(t *testing.T) {
	t.Parallel()
	dir := approved(t, `console:
  url: https://hako.example.com
  tokens:
    - {name: lost, hash: "sha256:`+strings.Repeat("0", 64)+`", role: viewer}
  oidc:
    issuer: https://sso.example.com
    clientId: hako
    clientSecret: {env: NO_SUCH_SECRET}
    roles: {viewer: {users: [aki@example.com]}}
`)
	s := serve(t, dir)
	printed := invoke(t, dir, "console", "--http", strings.TrimPrefix(s.base(), "http://"))
	printed.want(t, exitOK, s.base()+"/console/#link=", "Other people log in at https://hako.example.com/console/")
	c := newConsoleClient(t, s.base())
	if status := c.login(strings.TrimSpace(printed.stdout)); status != http.StatusOK {
		t.Fatalf("log in: %d", status)
	}
	if status, body := c.do("GET", "session", ""); !strings.Contains(body, `"role":"admin","via":"link"`) {
		t.Errorf("the session: %d %s", status, body)
	}
}
