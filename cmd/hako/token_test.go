package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/internal/config"
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
	auth, err := c.HTTP.Authenticator(nil)
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
	invoke(t, t.TempDir(), "token", "new", "ci", "--role", "root").want(t, exitUsage, `--role "root" does not exist`)
	invoke(t, t.TempDir(), "token", "new", "ci", "--expires", "soon").want(t, exitUsage, `--expires "soon" is no date`)
	invoke(t, t.TempDir(), "token", "nwe").want(t, exitUsage, `did you mean "new"?`)
}
