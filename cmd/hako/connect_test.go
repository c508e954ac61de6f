package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/freee"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// connectable is a directory whose configuration has credentials of every kind, with a fake of freee.
func connectable(t *testing.T) (dir string) {
	t.Helper()
	server := httptest.NewServer(freee.New(nil))
	t.Cleanup(server.Close)
	dir = t.TempDir()
	put(t, filepath.Join(dir, "client.secret"), []byte("freee-secret\n"))
	put(t, filepath.Join(dir, "kot.token"), []byte("static-secret-token\n"))
	put(t, filepath.Join(dir, "hako.yaml"), fmt.Appendf(nil, `
credentials:
  freee:
    provider: freee
    clientId: freee-client
    clientSecret: {file: client.secret}
    authorizeUrl: %[1]s/public_api/authorize
    tokenUrl: %[1]s/public_api/token
  kot: {token: {file: kot.token}}
`, server.URL))
	return dir
}

// invokeBrowsing runs hako with a browser that consents.
func invokeBrowsing(t *testing.T, dir string, browse func(url string) error, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, browse: browse}
	code := a.run(testwait.Context(t), append([]string{"--directory", dir}, args...))
	return outcome{code, stdout.String(), stderr.String()}
}

func visit(url string) error {
	response, err := httpClient.Get(url)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestConnect(t *testing.T) {
	t.Parallel()
	dir := connectable(t)
	invoke(t, dir, "connect", "status").want(t, exitFailed, "freee", "not connected", "hako connect freee", "kot",
		"ready")
	o := invokeBrowsing(t, dir, visit, "connect", "freee", "--tenant", "acme")
	o.want(t, exitOK, "freee is connected for tenant acme, company_id 1", "created a key that encrypts the connections",
		"Give your consent on this page")
	o = invoke(t, dir, "connect", "status", "--json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list) != 2 {
		t.Fatalf("%v %s", err, o)
	}
	for _, secret := range []string{"access-", "refresh-", "freee-secret", "static-secret"} {
		if strings.Contains(o.stdout+o.stderr, secret) {
			t.Errorf("%q is shown: %s", secret, o)
		}
	}
	if list[0]["tenant"] != "acme" || list[0]["state"] != "ready" || list[0]["expires"] == nil {
		t.Errorf("%v", list)
	}
	invoke(t, dir, "secrets", "rotate").want(t, exitOK, "connections encrypted with the new key", ": 1\n")
	invoke(t, dir, "connect", "status").want(t, exitOK, "acme", "ready")
	invoke(t, dir, "connect", "remove", "freee").want(t, exitUsage, "there is no such connection")
	invoke(t, dir, "connect", "remove", "freee", "--tenant", "acme").want(t, exitOK, "hako has removed the connection")
	if o := invoke(t, dir, "connect", "status"); strings.Contains(o.stdout, "acme") {
		t.Errorf("it is still there: %s", o)
	}
}

func TestConnectWithoutBrowser(t *testing.T) {
	t.Parallel()
	dir := connectable(t)
	in, paste := io.Pipe()
	page, out := io.Pipe()
	var stdout bytes.Buffer
	a := &app{stdin: in, stdout: &stdout, stderr: out}
	done := make(chan int, 1)
	go func() {
		done <- a.run(t.Context(), []string{"--directory", dir, "connect", "freee", "--no-browser"})
		_ = out.Close()
	}()
	text := readUntil(t, page, "sent to: ")
	url := regexp.MustCompile(`http\S+`).FindString(text)
	if !strings.Contains(url, "redirect_uri=urn%3Aietf%3Awg%3Aoauth%3A2.0%3Aoob") {
		t.Fatalf("the URL is %s", url)
	}
	response, err := httpClient.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	shown, err := io.ReadAll(response.Body)
	code := regexp.MustCompile(`code-\w+`).FindString(string(shown))
	if err != nil || code == "" {
		t.Fatalf("%v %s", err, shown)
	}
	go func() { _, _ = io.Copy(io.Discard, page) }()
	if _, err := io.WriteString(paste, code+"\n"); err != nil {
		t.Fatal(err)
	}
	if exit := <-done; exit != exitOK || !strings.Contains(stdout.String(), "freee is connected, company_id") {
		t.Errorf("exit code %d: %s", exit, &stdout)
	}
}

func readUntil(t *testing.T, r io.Reader, end string) string {
	t.Helper()
	var text []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(text), end); text = append(text, one[0]) {
		if _, err := r.Read(one); err != nil {
			t.Fatalf("%v after %s", err, text)
		}
	}
	return string(text)
}

func TestConnectErrors(t *testing.T) {
	t.Parallel()
	dir := connectable(t)
	invoke(t, dir, "connect", "freeee").want(t, exitUsage,
		"the credential freeee is not configured: set credentials.freeee")
	invoke(t, dir, "connect", "kot").want(t, exitUsage, "the credential kot: it needs no consent")
	invoke(t, dir, "connect", "freee", "--device").want(t, exitUsage, "has no deviceUrl")
	invokeWith(t, dir, "\n", "connect", "freee", "--no-browser").want(t, exitUsage, "the pasted text contains no code")
	invokeWith(t, dir, "", "connect", "freee", "--no-browser").want(t, exitUsage, "nothing was pasted")
	deny := func(url string) error { return visit(url + "&deny=1") }
	invokeBrowsing(t, dir, deny, "connect", "freee").want(t, exitUsage, "the consent was not given: access_denied")
	put(t, filepath.Join(dir, "client.secret"), []byte("another-secret"))
	invokeBrowsing(t, dir, visit, "connect", "freee").want(t, exitUsage,
		"the authorization server answered invalid_client")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("credentials: {kot: {token: {env: HAKO_TEST_UNSET}}}\n"))
	invoke(t, dir, "connect", "status").want(t, exitFailed, "unusable", "HAKO_TEST_UNSET")
}

func TestCredentialConfiguration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"credentials: {kot: {token: xoxb-secret}}":                    "must say where the secret is, not what it is",
		"credentials: {kot: {token: {env: A, file: b}}}":              "token needs one of env, file and command",
		"credentials: {Kot: {token: {env: A}}}":                       "the name of a credential must be",
		"credentials: {kot: {provider: free}}":                        `provider "free" does not exist`,
		"credentials: {kot: {tokn: {env: A}}}":                        `unknown key "tokn": did you mean "token"?`,
		"tenants: {acme: {credentials: {kot: {token: {}}}}}":          "tenants.acme.credentials.kot: token needs one of",
		"secrets: {key: {env: A, file: b}}":                           "secrets.key: needs one of env, file and command",
		"credentials: {a: {provider: oauth2, clientId: x}}":           "tokenUrl is missing",
		"credentials: {a: {token: {env: A}, header: Host}}":           `header "Host" cannot carry a credential`,
		"credentials: {a: {token: {env: A}, clientSecret: {env: B}}}": "clientSecret is not used by a static token",
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "hako.yaml"), []byte(text+"\n"))
		o := invoke(t, dir, "connect", "status")
		o.want(t, exitUsage, want)
		if strings.Contains(o.stderr, "xoxb-secret") {
			t.Errorf("a secret in the file is shown: %s", o)
		}
	}
}
