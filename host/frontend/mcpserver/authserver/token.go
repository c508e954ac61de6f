package authserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
)

// Grant types.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
)

// token serves the token endpoint (OAuth 2.1, section 3.2) for public clients.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	address, now := s.proxies.Address(r), s.options.Now()
	succeeded, wait := s.failures.Begin(address, now)
	if wait > 0 {
		refuseTooMany(w, wait)
		return
	}
	var secret, kind string
	switch form.Get("grant_type") {
	case grantCode:
		secret, kind = form.Get("code"), kindCode
	case grantRefresh:
		secret, kind = form.Get("refresh_token"), kindRefresh
	default:
		writeError(w, http.StatusBadRequest, "unsupported_grant_type",
			"The grant types are authorization_code and refresh_token.")
		return
	}
	if !s.isForResource(form["resource"]) {
		writeError(w, http.StatusBadRequest, "invalid_target", "The resource is not hako.")
		return
	}
	t, from, err := s.grants.redeem(r.Context(), secret, kind, now, func(g *grant) bool {
		return g.client == form.Get("client_id") && s.accepts(g) && (kind == kindRefresh ||
			g.Redirect == form.Get("redirect_uri") && verifies(form.Get("code_verifier"), g.Challenge))
	})
	switch {
	case errors.Is(err, errReplayed):
		s.options.Record(Event{Action: Revoked, Address: address, User: from.User, Tenant: from.Tenant,
			Client: from.Client, Err: err})
		fallthrough
	case errors.Is(err, errToken):
		writeError(w, http.StatusBadRequest, "invalid_grant",
			"The code or refresh token is not valid, was used before, or belongs to another client.")
		return
	case err != nil:
		s.unavailable(w, err)
		return
	}
	succeeded()
	writeJSON(w, http.StatusOK, struct {
		Access  string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int64  `json:"expires_in"`
		Refresh string `json:"refresh_token"`
		Scope   string `json:"scope,omitempty"`
	}{t.access, "Bearer", int64(t.expires / time.Second), t.refresh, strings.Join(from.Scopes, " ")})
}

// verifies reports whether a PKCE verifier matches an S256 challenge (RFC 7636, section 4.6).
func verifies(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// accepts reports whether a grant is for the resource and from the provider that are configured now.
func (s *Server) accepts(g *grant) bool {
	return g.Resource == s.options.Resource && g.Issuer == s.options.Provider.Issuer
}

// form reads the form of a request. No parameter but the resource may be repeated.
func (s *Server) form(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	if r.ParseForm() != nil {
		writeError(w, http.StatusBadRequest, "invalid_request", "The body is not a form, or too large.")
		return nil, false
	}
	for name, values := range r.PostForm {
		if len(values) > 1 && name != "resource" {
			writeError(w, http.StatusBadRequest, "invalid_request", "A parameter is repeated.")
			return nil, false
		}
	}
	if r.PostForm.Has("client_secret") || r.Header.Get("Authorization") != "" {
		writeError(w, http.StatusUnauthorized, "invalid_client",
			"Clients have no secrets here: send client_id in the body (token_endpoint_auth_method none).")
		return nil, false
	}
	return r.PostForm, true
}

// revoke serves the revocation of tokens (RFC 7009). It ends the login with all of its tokens.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	form, ok := s.form(w, r)
	if !ok {
		return
	}
	address := s.proxies.Address(r)
	succeeded, wait := s.failures.Begin(address, s.options.Now())
	if wait > 0 {
		refuseTooMany(w, wait)
		return
	}
	ended, err := s.grants.revoke(r.Context(), form.Get("token"), form.Get("client_id"))
	if err != nil {
		s.unavailable(w, err)
		return
	}
	if ended != nil {
		succeeded()
		s.options.Record(Event{Action: Revoked, Address: address, User: ended.User, Tenant: ended.Tenant,
			Client: ended.Client})
	}
	w.WriteHeader(http.StatusOK)
}

// Owns reports whether a token has the form of this server's access tokens, refresh tokens or codes.
func (s *Server) Owns(token string) bool {
	return slices.ContainsFunc([]string{kindAccess, kindRefresh, kindCode}, func(kind string) bool {
		return strings.HasPrefix(token, kind)
	})
}

// Verify returns the identity of an access token, or nil if it is not valid. An error means that the store cannot be
// read.
func (s *Server) Verify(ctx context.Context, token string) (*auth.Identity, error) {
	return s.grants.verify(ctx, token, s.options.Now(), func(g *grant) *auth.Identity {
		if !s.accepts(g) {
			return nil
		}
		return &auth.Identity{User: g.User, Tenant: g.Tenant, Groups: g.Groups, Scopes: g.Scopes,
			Expires: g.tokenExpires, Issuer: g.Issuer}
	})
}

var _ auth.AuthorizationServer = (*Server)(nil)

// writeError writes the error of RFC 6749, section 5.2.
func writeError(w http.ResponseWriter, status int, code, description string) {
	writeJSON(w, status, map[string]string{"error": code, "error_description": description})
}

func refuseTooMany(w http.ResponseWriter, wait time.Duration) {
	retryAfter(w, wait)
	writeError(w, http.StatusTooManyRequests, "temporarily_unavailable", "Too many requests: try again later.")
}

// unavailable responds that the store cannot be used, and logs why.
func (s *Server) unavailable(w http.ResponseWriter, err error) {
	s.options.Logger.Error("the store of logins cannot be used", "err", err)
	writeError(w, http.StatusServiceUnavailable, "temporarily_unavailable", "Try again later.")
}
