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

	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/visible"
)

const consoleToken = `
  tokens: [{name: mori, role: viewer, hash: "sha256:b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"}]`

func TestConsoleIsSafeWhereItIs(t *testing.T) {
	t.Parallel()
	const auth = "http: {address: '0.0.0.0:8420', auth: {scopes: [a]}}\n"
	for name, test := range map[string]struct {
		file string
		on   bool
		want string
	}{
		"this machine":      {"locale: en", true, ""},
		"this machine, off": {"console: {enabled: false}", false, ""},
		"elsewhere":         {auth, false, ""},
		"elsewhere, on":     {auth + "console: {enabled: true}", true, "nobody has a login"},
		"elsewhere, logins": {auth + "console:" + consoleToken, true, "in the clear"},
		"elsewhere, logins, plain": {auth + "console:\n  url: http://hako.example.com" + consoleToken, true,
			"in the clear"},
		"elsewhere, logins, a proxy": {auth + "console:\n  url: https://hako.example.com" + consoleToken, true, ""},
		"elsewhere, logins, TLS": {"http: {address: '0.0.0.0:8420', tls: {cert: a, key: b}}\nconsole:" +
			consoleToken, true, ""},
		"a path in the URL": {"console: {url: 'https://hako.example.com/console/'}", true,
			"is no address of a site"},
		"a proxy that is a name":      {"http: {trustedProxies: [proxy]}", true, "write an address"},
		"a provider without a client": {"console: {oidc: {issuer: 'https://sso.example.com', roles: {admin: {users: [a]}}}}", true, "the client ID is missing"},
		"an address of its own":       {auth + "console: {address: '127.0.0.1:8421'}", true, ""},
		"an address of its own, open": {"console: {address: ':8421', enabled: true}", true, "nobody has a login"},
	} {
		file := filepath.Join(t.TempDir(), "hako.yaml")
		if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{File: file})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if on := consoleOn(c); on != test.on {
			t.Errorf("%s: the console is on: %t", name, on)
		}
		if err := checkConsole(c); test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestConsoleConfiguration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, want string }{
		"a token itself": {"console: {tokens: [{name: a, role: admin, hash: hunter2}]}",
			"make one with 'hako token new'"},
		"unknown role":   {"console: {oidc: {roles: {root: [a]}}}", `the role "root" does not exist`},
		"a secret":       {"console: {oidc: {clientSecret: hunter2}}", "must say where the secret is"},
		"unknown key":    {"console: {tokns: []}", `did you mean "tokens"?`},
		"unknown member": {"console: {tokens: [{name: a, token: b}]}", "token"},
	} {
		file := filepath.Join(t.TempDir(), "hako.yaml")
		if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(config.Source{File: file}); err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

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
	if _, body := c.do("POST", "tools/probe_echo/call", `{"arguments":{"text":"tried"}}`); !strings.Contains(body, `"text":"tried"`) {
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
					stderr: &screen{visible.NewWriter(log), true}}
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
