package credential

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// mcpServer is an MCP server that requires a token, with its authorization server. Nil members are absent.
type mcpServer struct {
	*httptest.Server
	tokens *authServer
	// challenge is the WWW-Authenticate header; BASE is the server's URL.
	challenge string
	// documents are the metadata of RFC 9728 and RFC 8414, by path.
	documents map[string]string
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
	m := &mcpServer{tokens: newAuthServer(t), status: http.StatusCreated,
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
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(fill(m.documents[r.URL.Path])))
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

// TestDiscoveryPlaces: metadata at another address, metadata for the origin, and a configured client.
func TestDiscoveryPlaces(t *testing.T) {
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
		"no metadata": {func(m *mcpServer) { delete(m.documents, meta) },
			"does not name its authorization server"},
		"metadata of another": {func(m *mcpServer) { m.documents[meta] = `{"resource": "https://other.example/mcp"}` },
			"other.example"},
		"no server": {func(m *mcpServer) { m.documents[meta] = `{"resource": "BASE/mcp"}` },
			"names no authorization server"},
		"a server in the clear": {func(m *mcpServer) {
			m.documents[meta] = `{"resource": "BASE/mcp", "authorization_servers": ["http://as.example"]}`
		}, "does not name its authorization server"},
		"a server that says nothing": {func(m *mcpServer) { delete(m.documents, server) }, "publishes no metadata"},
		"a server by another name": {func(m *mcpServer) {
			m.documents[server] = strings.Replace(aboutServer, "BASE", "https://as.example", 1)
		}, "does not match"},
		"no PKCE": {func(m *mcpServer) { m.documents[server] = strings.Replace(aboutServer, "S256", "plain", 1) },
			"PKCE"},
		"tokens in the clear": {func(m *mcpServer) {
			m.documents[server] = strings.Replace(aboutServer, "BASE/token", "http://as.example/token", 1)
		}, "HTTPS"},
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
