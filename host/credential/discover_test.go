package credential

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// mcpServer is an MCP server that requires a token, with its authorization server. Nil members are absent.
type mcpServer struct {
	*httptest.Server
	tokens *authServer
	// challenge is the WWW-Authenticate header; BASE is the server's URL.
	challenge string
	// documents are the metadata of RFC 9728 and RFC 8414, by path: JSON of this media type, or a status and an address.
	documents map[string]string
	mediaType string
	// registered is the last registration request.
	registered map[string]any
	// registration is the registration response, with its status.
	registration string
	status       int
	// asked is the query of the last authorization request.
	asked url.Values
	// issuer, if set, is sent with the code.
	issuer string
}

const (
	aboutMCP    = `{"resource": "BASE/mcp", "authorization_servers": ["BASE"], "scopes_supported": ["read"]}`
	aboutServer = `{"issuer": "BASE", "authorization_endpoint": "BASE/authorize", "token_endpoint": "BASE/token", "registration_endpoint": "BASE/register",
		"response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], "scopes_supported": ["read", "offline_access"]}`
)

func newMCPServer(t *testing.T) *mcpServer {
	m := &mcpServer{tokens: newAuthServer(t), status: http.StatusCreated, mediaType: "application/json",
		registration: `{"client_id": "client", "client_secret": "client-secret", "redirect_uris": ["http://127.0.0.1/callback"]}`}
	m.documents = map[string]string{"/.well-known/oauth-protected-resource/mcp": aboutMCP,
		"/.well-known/oauth-authorization-server": aboutServer}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *mcpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fill := func(text string) string { return strings.ReplaceAll(text, "BASE", m.URL) }
	switch {
	case m.documents[r.URL.Path] != "":
		m.document(w, fill(m.documents[r.URL.Path]))
	case r.URL.Path == "/mcp":
		if m.challenge != "" {
			w.Header().Set("WWW-Authenticate", fill(m.challenge))
		}
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/register":
		_ = json.NewDecoder(r.Body).Decode(&m.registered)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(m.status)
		_, _ = w.Write([]byte(m.registration))
	case r.URL.Path == "/authorize":
		m.asked = r.URL.Query()
		if m.issuer != "" {
			http.Redirect(w, r, m.asked.Get("redirect_uri")+"?"+url.Values{"code": {"code"},
				"state": {m.asked.Get("state")}, "iss": {m.issuer}}.Encode(), http.StatusFound)
			return
		}
		m.tokens.authorize(w, r)
	case r.URL.Path == "/token":
		m.tokens.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

// document answers with a document, or with a status and the address of a redirect.
func (m *mcpServer) document(w http.ResponseWriter, text string) {
	status, to, _ := strings.Cut(text, " ")
	if code, err := strconv.Atoi(status); err == nil {
		w.Header().Set("Location", to)
		w.WriteHeader(code)
		return
	}
	w.Header().Set("Content-Type", m.mediaType)
	_, _ = w.Write([]byte(text))
}

func (m *mcpServer) broker(t *testing.T, change func(*Spec)) (*Broker, string) {
	t.Helper()
	spec := Spec{Provider: MCP, Resource: m.URL + "/mcp"}
	if change != nil {
		change(&spec)
	}
	dir := t.TempDir()
	return newBroker(t, options(dir, spec)), dir
}

// TestDiscovery: a credential for an MCP server needs only its URL, and is renewed at the discovered authorization
// server.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	m := newMCPServer(t)
	b, dir := m.broker(t, nil)
	if _, err := b.Connect(t.Context(), "", "freee", func(url string) { browse(t, url) }); err != nil {
		t.Fatal(err)
	}
	if m.asked.Get("resource") != m.URL+"/mcp" || m.asked.Get("code_challenge_method") != "S256" ||
		m.asked.Get("scope") != "read offline_access" {
		t.Errorf("asked for %v", m.asked)
	}
	if form := m.tokens.posts[0]; form.Get("resource") != m.URL+"/mcp" || form.Get("code_verifier") == "" {
		t.Errorf("the code was traded in with %v", form)
	}
	if m.registered["token_endpoint_auth_method"] != "none" || m.registered["application_type"] != "native" {
		t.Errorf("registered %v", m.registered)
	}
	checkEncrypted(t, dir)
	other := newBroker(t, b.options) // which knows only the stored data
	first, err := other.Credential(t.Context(), "", "freee")
	if err != nil {
		t.Fatal(err)
	}
	c := connectionOf(t, other)
	r, err := c.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fresh, err := c.renewed(t.Context(), r); err != nil || "Bearer "+fresh.AccessToken == first.Value {
		t.Errorf("renewed %+v, %v", fresh, err)
	}
	if form := m.tokens.posts[len(m.tokens.posts)-1]; form.Get("grant_type") != "refresh_token" ||
		form.Get("resource") != m.URL+"/mcp" || form.Get("client_id") != "client" {
		t.Errorf("renewed with %v", form)
	}
}

func connectionOf(t *testing.T, b *Broker) *connection {
	t.Helper()
	c, err := b.connection("", "freee")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDiscoveryPlaces: the metadata are found where servers have them, under the names that they use.
func TestDiscoveryPlaces(t *testing.T) {
	t.Parallel()
	const resource, server = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
	const openID = "/.well-known/openid-configuration"
	about := func(issuer string) string { return strings.Replace(aboutServer, `"BASE"`, `"`+issuer+`"`, 1) }
	names := func(resource, issuer string) string {
		return `{"resource": "` + resource + `", "authorization_servers": ["` + issuer + `"], "bearer_methods_supported": ["header"]}`
	}
	for name, test := range map[string]struct {
		documents map[string]string
		want      string // the resource that tokens are for
	}{
		// FastMCP 1.x, whose URLs are pydantic's: one without a path gets a slash.
		"slashes at the end of origins": {map[string]string{resource + "/mcp": names("BASE/mcp", "BASE/"),
			server: about("BASE/")}, "BASE/mcp"},
		"a resource that is the origin": {map[string]string{resource: names("BASE/", "BASE/"), server: about("BASE/")},
			"BASE/"},
		"a slash that only the resource has": {map[string]string{resource + "/mcp": names("BASE/mcp/", "BASE"),
			server: about("BASE")}, "BASE/mcp/"},
		"a slash that only the issuer has": {map[string]string{resource + "/mcp": names("BASE/mcp", "BASE"),
			server: about("BASE/")}, "BASE/mcp"},
		"an issuer with a path": {map[string]string{resource + "/mcp": names("BASE/mcp", "BASE/tenant/"),
			server + "/tenant": about("BASE/tenant")}, "BASE/mcp"},
		"OpenID below an issuer, and errors before it": {map[string]string{resource + "/mcp": names("BASE/mcp", "BASE/tenant"),
			server + "/tenant": "500", openID + "/tenant": "403", "/tenant" + openID: about("BASE/tenant")}, "BASE/mcp"},
		"errors at the first address": {map[string]string{resource + "/mcp": "500", resource: names("BASE/mcp", "BASE"),
			server: "502", openID: about("BASE")}, "BASE/mcp"},
		"another document at the first address": {map[string]string{resource + "/mcp": "<html>", resource: names("BASE", "BASE"),
			server: about("https://other.example"), openID: about("BASE")}, "BASE"},
		"redirects": {map[string]string{resource + "/mcp": "307 BASE" + resource + "/mcp/",
			resource + "/mcp/": names("BASE/mcp", "BASE"), server: "301 /moved", "/moved": about("BASE")}, "BASE/mcp"},
		"a second authorization server": {map[string]string{resource + "/mcp": `{"resource": "BASE/mcp",
			"authorization_servers": ["BASE/none", "BASE"]}`, server: about("BASE")}, "BASE/mcp"},
		"none for the resource": {map[string]string{server: about("BASE/")}, "BASE/mcp"}, // MCP 2025-03-26
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMCPServer(t)
			m.documents = test.documents
			for _, m.mediaType = range []string{"application/json", "text/plain; charset=utf-8"} {
				b, _ := m.broker(t, nil)
				consent, err := b.Consent(t.Context(), "", "freee", "")
				if err != nil {
					t.Fatal(err)
				}
				asked, _ := url.Parse(consent.URL)
				want := strings.ReplaceAll(test.want, "BASE", m.URL)
				if got := asked.Query().Get("resource"); asked.Path != "/authorize" || got != want {
					t.Errorf("asks for %s, want %s", consent.URL, want)
				}
			}
		})
	}
}

// TestDiscoveryByChallenge: metadata at another address, metadata for the origin, and a configured client.
func TestDiscoveryByChallenge(t *testing.T) {
	t.Parallel()
	m := newMCPServer(t)
	m.challenge = `Bearer resource_metadata="BASE/elsewhere", scope="write"`
	m.documents["/elsewhere"] = `{"resource": "BASE", "authorization_servers": ["BASE"]}`
	delete(m.documents, "/.well-known/oauth-protected-resource/mcp")
	b, _ := m.broker(t, func(s *Spec) { s.ClientID, s.ClientSecret = "client", command("echo", "client-secret") })
	if _, err := b.Connect(t.Context(), "", "freee", func(url string) { browse(t, url) }); err != nil {
		t.Fatal(err)
	}
	if m.registered != nil || m.asked.Get("scope") != "write offline_access" || m.asked.Get("resource") != m.URL {
		t.Errorf("registered %v, asked for %v", m.registered, m.asked)
	}
}

func TestDiscoveryFails(t *testing.T) {
	t.Parallel()
	const meta, server = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"
	for name, test := range map[string]struct {
		change func(*mcpServer)
		want   string
	}{
		"no metadata": {func(m *mcpServer) { clear(m.documents) },
			"does not name its authorization server"},
		"metadata of another": {func(m *mcpServer) { m.documents[meta] = `{"resource": "https://other.example/mcp"}` },
			"other.example"},
		"no server": {func(m *mcpServer) { m.documents[meta] = `{"resource": "BASE/mcp"}` },
			"names no authorization server"},
		"a server in the clear": {func(m *mcpServer) {
			m.documents[meta] = `{"resource": "BASE/mcp", "authorization_servers": ["http://as.example"]}`
		}, "the authorization server http://as.example publishes no metadata that can be used (RFC 8414): " +
			"http://as.example/.well-known/oauth-authorization-server: it is not an https URL"},
		"a server in the private network": {func(m *mcpServer) {
			m.documents[meta] = `{"resource": "BASE/mcp", "authorization_servers": ["https://10.0.0.1"]}`
		}, "private address"},
		"a server that says nothing": {func(m *mcpServer) { delete(m.documents, server) },
			"/.well-known/oauth-authorization-server: answered with status 404; "},
		"a server that is broken": {func(m *mcpServer) { m.documents[server] = "500" },
			"/.well-known/oauth-authorization-server: answered with status 500: use the provider oauth2"},
		"metadata that lead to another server": {func(m *mcpServer) {
			m.documents[server] = "307 https://as.example/"
		}, "it redirects to another server, as.example"},
		"metadata that lead in a circle": {func(m *mcpServer) { m.documents[server] = "307 BASE" + server },
			"it redirects too often"},
		"a server by another name": {func(m *mcpServer) {
			m.documents[server] = strings.Replace(aboutServer, "BASE", "https://as.example", 1)
		}, "does not match"},
		"no PKCE": {func(m *mcpServer) { m.documents[server] = strings.Replace(aboutServer, "S256", "plain", 1) },
			"PKCE"},
		"tokens in the clear": {func(m *mcpServer) {
			m.documents[server] = strings.Replace(aboutServer, "BASE/token", "http://as.example/token", 1)
		}, "not an https URL"},
		"no registration": {func(m *mcpServer) {
			m.documents[server] = strings.Replace(aboutServer, `"registration_endpoint": "BASE/register",`, "", 1)
		}, "set credentials.freee.clientId"},
		"registration refused": {func(m *mcpServer) {
			m.status, m.registration = 400, `{"error": "invalid_redirect_uri", "error_description": "no loopback here"}`
		}, "no loopback here: register it by hand"},
		"registration broken": {func(m *mcpServer) { m.registration = `{"client_secret": "leaked-secret"}` },
			"register it by hand"},
		"an answer of another server": {func(m *mcpServer) { m.issuer = "https://evil.example" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMCPServer(t)
			test.change(m)
			b, _ := m.broker(t, nil)
			consent, err := b.Consent(t.Context(), "", "freee", "")
			if m.issuer != "" && err == nil {
				client := &http.Client{Transport: web.Transport, CheckRedirect: func(*http.Request,
					[]*http.Request) error {
					return http.ErrUseLastResponse
				}}
				response, failed := client.Get(consent.URL)
				if failed != nil {
					t.Fatal(failed)
				}
				if _, err = consent.Exchange(t.Context(), response.Header.Get("Location")); err == nil ||
					len(m.tokens.posts) > 0 {
					t.Errorf("error %v, sent %v", err, m.tokens.posts)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "leaked") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
