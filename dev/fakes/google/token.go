package google

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

const (
	// wellKnown is the token endpoint's own address, always a valid audience.
	wellKnown = "https://oauth2.googleapis.com/token"
	// tokenLife is the validity of an access token, and the longest validity of an assertion.
	tokenLife = time.Hour
	// skew is by how much clocks may differ.
	skew = 5 * time.Minute
)

// sheetScopes are those that give access to spreadsheets, the ones for writing first.
var sheetScopes = []string{
	"https://www.googleapis.com/auth/spreadsheets", "https://www.googleapis.com/auth/drive",
	"https://www.googleapis.com/auth/drive.file",
	"https://www.googleapis.com/auth/spreadsheets.readonly", "https://www.googleapis.com/auth/drive.readonly",
}

// account is a service account.
type account struct {
	key      *rsa.PublicKey
	tokenURI string
	keyID    string
}

type accessToken struct {
	email   string
	scopes  []string
	expires time.Time
}

// privateKey is made once per process: it takes some tenths of a second.
var privateKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// AddServiceAccount adds a service account and returns its key file, as the Google Cloud console gives it out. tokenURI
// is where this server's /token is for its clients, and the audience that their assertions have.
func (s *Server) AddServiceAccount(email, tokenURI string) ([]byte, error) {
	key, err := privateKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.accounts[email] = &account{&key.PublicKey, tokenURI, "fake-key-1"}
	s.mu.Unlock()
	project, _, _ := strings.Cut(email[strings.Index(email, "@")+1:], ".")
	return json.MarshalIndent(map[string]string{
		"type": "service_account", "project_id": project, "private_key_id": "fake-key-1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": email, "client_id": "100000000000000000001", "token_uri": tokenURI,
		"auth_uri": "https://accounts.google.com/o/oauth2/auth", "universe_domain": "googleapis.com",
	}, "", "  ")
}

// Token returns an access token for the account with this address, without an assertion. Without scopes it is for
// spreadsheets.
func (s *Server) Token(email string, scopes ...string) string {
	if len(scopes) == 0 {
		scopes = sheetScopes[:1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issue(email, scopes)
}

// ExpireTokens makes every access token that was given out invalid.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// issue needs mu.
func (s *Server) issue(email string, scopes []string) string {
	token := "ya29.fake-" + rand.Text()
	s.tokens[token] = &accessToken{email, scopes, s.now().Add(tokenLife)}
	return token
}

func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != "POST" || r.ParseForm() != nil {
		tokenError(w, "invalid_request", "Use POST with a form.")
		return
	}
	if kind := r.PostForm.Get("grant_type"); kind != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		tokenError(w, "unsupported_grant_type", "Invalid grant_type: "+kind)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, problem := s.verify(r.PostForm.Get("assertion"))
	if problem != "" {
		tokenError(w, "invalid_grant", problem)
		return
	}
	scopes := strings.Fields(c.Scope)
	if len(scopes) == 0 || slices.ContainsFunc(scopes,
		func(scope string) bool { return !strings.HasPrefix(scope, "https://www.googleapis.com/auth/") }) {
		tokenError(w, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
		return
	}
	reply(w, http.StatusOK, map[string]any{"access_token": s.issue(c.Issuer, scopes),
		"expires_in": int(tokenLife/time.Second) - 1, "token_type": "Bearer"})
}

// tokenError answers as RFC 6749, section 5.2 has it.
func tokenError(w http.ResponseWriter, code, description string) {
	reply(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": description})
}

type claims struct {
	Issuer   string `json:"iss"`
	Scope    string `json:"scope"`
	Audience string `json:"aud"`
	Issued   int64  `json:"iat"`
	Expires  int64  `json:"exp"`
}

// verify checks a JSON Web Token that a service account has signed, and says what is wrong with it. It needs mu.
func (s *Server) verify(assertion string) (c *claims, problem string) {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return nil, "Invalid JWT: it does not have three parts."
	}
	var header struct {
		Algorithm string `json:"alg"`
		Type      string `json:"typ"`
		KeyID     string `json:"kid"`
	}
	c = new(claims)
	if err := errors.Join(decodePart(parts[0], &header), decodePart(parts[1], c)); err != nil {
		return nil, "Invalid JWT: " + err.Error()
	}
	if header.Algorithm != "RS256" || header.Type != "" && header.Type != "JWT" {
		return nil, "Invalid JWT: the algorithm is not RS256."
	}
	a := s.accounts[c.Issuer]
	if a == nil {
		return nil, "Invalid grant: account not found"
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || header.KeyID != "" && header.KeyID != a.keyID ||
		rsa.VerifyPKCS1v15(a.key, crypto.SHA256, digest[:], signature) != nil {
		return nil, "Invalid JWT Signature."
	}
	return c, c.check(s.now(), a.tokenURI)
}

func (c *claims) check(now time.Time, tokenURI string) (problem string) {
	issued, expires := time.Unix(c.Issued, 0), time.Unix(c.Expires, 0)
	switch {
	case c.Audience != wellKnown && c.Audience != tokenURI:
		return "Invalid JWT: the audience is not this token endpoint."
	case expires.Sub(issued) > tokenLife || !expires.After(issued) || issued.After(now.Add(skew)) ||
		expires.Before(now.Add(-skew)):
		return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
	}
	return ""
}

func decodePart(part string, into any) error {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// authorize returns the spreadsheet if the request's token lets it do what it asks for. It needs mu.
func (s *Server) authorize(r *http.Request, id string) (*spreadsheet, *apiError) {
	token := s.tokens[fakehttp.Bearer(r)]
	writes := r.Method != "GET"
	switch {
	case token == nil || !s.now().Before(token.expires):
		return nil, &apiError{401, "Request had invalid authentication credentials.", "UNAUTHENTICATED", nil}
	case !token.covers(writes):
		return nil, &apiError{403, "Request had insufficient authentication scopes.", "PERMISSION_DENIED",
			[]any{map[string]string{
				"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
				"domain": "googleapis.com",
			}}}
	}
	d := s.spreadsheets[id]
	if d == nil {
		return nil, &apiError{404, "Requested entity was not found.", "NOT_FOUND", nil}
	}
	if role := d.shared[token.email]; role == "" || writes && role != "writer" {
		return nil, &apiError{403, "The caller does not have permission", "PERMISSION_DENIED", nil}
	}
	return d, nil
}

func (t *accessToken) covers(writes bool) bool {
	return slices.ContainsFunc(t.scopes, func(scope string) bool {
		i := slices.Index(sheetScopes, scope)
		return i >= 0 && (!writes || i < 3)
	})
}
