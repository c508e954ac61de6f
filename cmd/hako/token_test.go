package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/store/drivers"
)

// TestTokenNew: the entry that is printed, put where the text says, lets the token in and no other.
func TestTokenNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := invoke(t, dir, "token", "new", "ci: build", "--user", "robot", "--expires", "2099-12-31")
	o.want(t, exitOK, "http.auth.tokens")
	token := regexp.MustCompile(`hako_\S+`).FindString(o.stderr)
	if token == "" || strings.Contains(o.stdout, token) {
		t.Fatalf("the token belongs on standard error, and only there: %s", o)
	}
	entry := "      " + strings.ReplaceAll(strings.TrimSpace(o.stdout), "\n", "\n      ")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("http:\n  auth:\n    tokens:\n"+entry+"\n"))
	c, err := config.Load(config.Source{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	auth, err := auth.New(*c.HTTP.Authentication(nil))
	if err != nil {
		t.Fatal(err)
	}
	server, err := mcpserver.New(new(catalog.Catalog), nil, &mcpserver.Options{Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for sent, want := range map[string]bool{token: true, token + "x": false} {
		request := httptest.NewRequest(http.MethodGet, "http://localhost"+mcpserver.Path, nil)
		request.Header.Set("Authorization", "Bearer "+sent)
		answer := httptest.NewRecorder()
		server.Handler().ServeHTTP(answer, request)
		if got := answer.Code != http.StatusUnauthorized; got != want {
			t.Errorf("token %q: status %d", sent, answer.Code)
		}
	}
}

// TestTokenNewForConsole: with a role the entry is one of the console's.
func TestTokenNewForConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := invoke(t, dir, "token", "new", "mori-laptop", "--role", "admin", "--user", "mori@example.com")
	o.want(t, exitOK, "console.tokens", "logs in to the console")
	entry := "    " + strings.ReplaceAll(strings.TrimSpace(o.stdout), "\n", "\n    ")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("console:\n  tokens:\n"+entry+"\n"))
	c, err := config.Load(config.Source{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Console.Tokens; len(got) != 1 || got[0].Role != "admin" || got[0].User != "mori@example.com" ||
		strings.Contains(o.stderr, "http.auth") {
		t.Errorf("%+v: %s", got, o)
	}
}

func TestTokenNewFails(t *testing.T) {
	t.Parallel()
	invoke(t, t.TempDir(), "token", "new", "ci", "--role", "root").want(t, exitUsage, `unknown role "root"`)
	invoke(t, t.TempDir(), "token", "new", "ci", "--expires", "soon").want(t, exitUsage, `--expires "soon" is not a date`)
	invoke(t, t.TempDir(), "token", "nwe").want(t, exitUsage, `did you mean "new"?`)
}

// TestIssuedToken: a token that is created while hako serves is accepted until it is revoked, and it is recorded.
func TestIssuedToken(t *testing.T) {
	t.Parallel()
	dir := approved(t, "http: {auth: {required: true}}\n")
	s := serve(t, dir)
	status := func(token string) int {
		t.Helper()
		request := httptest.NewRequest(http.MethodGet, s.base()+mcpserver.Path, nil)
		request.RequestURI = ""
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := httpClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	created := invoke(t, dir, "token", "create", "ci", "--user", "robot", "--expires", "2099-12-31")
	created.want(t, exitOK, "shown only now")
	token := strings.TrimSpace(created.stdout)
	if got := status(token); got != http.StatusMethodNotAllowed { // GET is for sessions
		t.Errorf("with the token: %d", got)
	}
	if got := status("hako_guess"); got != http.StatusUnauthorized {
		t.Errorf("with another: %d", got)
	}
	invoke(t, dir, "token", "create", "ci").want(t, exitUsage, "a token with this name exists")
	invoke(t, dir, "token", "create", "ci\x1b[2J").want(t, exitUsage, "characters that are not visible")
	var console struct {
		Text  string
		Token struct{ Role string }
	}
	asJSON := invoke(t, dir, "token", "create", "mori", "--role", "admin", "--json")
	if err := json.Unmarshal([]byte(asJSON.stdout), &console); err != nil || console.Token.Role != "admin" {
		t.Errorf("%v: %s", err, asJSON)
	}
	if got := status(console.Text); got != http.StatusUnauthorized {
		t.Errorf("with a token for the console: %d", got)
	}
	invoke(t, dir, "token", "list").want(t, exitOK, token[:11], "robot", "console, admin", "2100-01-01")
	if list := invoke(t, dir, "token", "list", "--json"); !strings.Contains(list.stdout, `"state": "valid"`) ||
		strings.Contains(list.stdout, token) {
		t.Errorf("as JSON: %s", list)
	}
	invoke(t, dir, "token", "revoke", "ci").want(t, exitOK, "Revoked ci")
	revoked := time.Now()
	for status(token) != http.StatusUnauthorized {
		if time.Since(revoked) > time.Minute { // bearer.Delay is less, but the machine may have something else to do
			t.Fatal("the revoked token is still accepted")
		}
	}
	invoke(t, dir, "token", "revoke", "ci").want(t, exitUsage, "there is no such token")
	invoke(t, dir, "token", "revoke", "--user", "mori").want(t, exitOK, "Revoked mori")
	invoke(t, dir, "token", "revoke", "--user", "mori").want(t, exitUsage, `"mori" has no token, login or session`)
	invoke(t, dir, "audit", "query", "--type", "operator").want(t, exitOK, "token.create", "token.revoke", "user.revoke")
}

func TestTokenRevokeFails(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"ci", "--user", "mori"}, {"ci", "--tenant", "tokyo"}, {"--tenant", "tokyo"}, {"--user", ""}} {
		invoke(t, t.TempDir(), append([]string{"token", "revoke"}, args...)...).want(t, exitUsage, "a token or login, or --user")
	}
}

// TestRevokeLogin: a login of an MCP client is listed without its secrets, and ends.
func TestRevokeLogin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	invoke(t, dir, "token", "list").want(t, exitOK) // makes the tables
	s, err := drivers.Open(t.Context(), filepath.Join(dir, "hako.store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO oauth_grant VALUES ('NODGF2RRXC6SF4LAZKOYX7DC2A', 'c', 'mori', '',
			'{"name": "Claude"}', 0, 9999999999999); INSERT INTO oauth_token VALUES ('secret', 'NODGF2RRXC6SF4LAZKOYX7DC2A',
			'hako_rt_', 0, 9999999999999)`)
		return err
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	list := invoke(t, dir, "token", "list")
	list.want(t, exitOK, "NODGF2RRXC6SF4LAZKOYX7DC2A", "mori", "Claude")
	if asJSON := invoke(t, dir, "token", "list", "--json"); strings.Contains(asJSON.stdout+list.stdout, "secret") ||
		!strings.Contains(asJSON.stdout, `"client": "Claude"`) {
		t.Errorf("%s%s", list, asJSON)
	}
	invoke(t, dir, "token", "revoke", "NODGF2RRXC6SF4LAZKOYX7DC2A").want(t, exitOK, "Ended the login of mori with Claude")
	invoke(t, dir, "token", "revoke", "NODGF2RRXC6SF4LAZKOYX7DC2A").want(t, exitUsage, "there is no such token")
	invoke(t, dir, "audit", "query", "--type", "operator").want(t, exitOK, "login.end")
}

// TestRevokeOfConfiguredToken: the error says where the token is.
func TestRevokeOfConfiguredToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "hako.yaml"), []byte("http: {auth: {tokens: [{name: ci, hash: 'sha256:"+strings.Repeat("0", 64)+"'}]}}\n"))
	invoke(t, dir, "token", "revoke", "ci").want(t, exitUsage, "is in the configuration", "hako.yaml")
	invoke(t, dir, "token", "list").want(t, exitOK, "http.auth.tokens", "valid")
}
