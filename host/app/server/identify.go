package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/claim"
	"github.com/hako-run/hako/internal/clip"
)

// maxToken bounds a token that is read, in bytes.
const maxToken = 64 << 10

// Identify reads a token for MCP over HTTP, verifies it as a running server would, and returns whom it speaks for. An
// error explains why the server refuses the token; it never holds the token.
func Identify(ctx context.Context, c *config.Config, s *store.Store, in io.Reader) (*auth.Identity, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxToken+1))
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > maxToken || strings.ContainsAny(token, " \t\r\n") {
		return nil, fmt.Errorf("standard input has no token: one line of at most %d KiB is expected, and nothing else",
			maxToken>>10)
	}
	issued, err := bearer.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	var own *authserver.Server
	if options := c.HTTP.AuthorizationServer(); options != nil {
		options.Store = s
		if own, err = authserver.New(ctx, *options); err != nil {
			return nil, fmt.Errorf("configuration: http.auth.proxy: %w", err)
		}
		defer own.Close()
	}
	verifier, err := authenticator(c, own, authResources{issued: issued, now: s.Time})
	switch {
	case err != nil:
		return nil, err
	case verifier == nil:
		return nil, errors.New("the server requires no token: http.auth has none")
	}
	by, err := verifier.Verify(ctx, token)
	switch {
	case errors.Is(err, auth.ErrUnavailable):
		return nil, fmt.Errorf("the token is not verified: %w; ask again when the issuer and the store answer", err)
	case err != nil:
		return nil, fmt.Errorf("the server refuses this token: %w%s", err, mismatch(c, token, s.Time()))
	}
	return by, nil
}

// maxClaim bounds the bytes of a claim in an error.
const maxClaim = 200

// mismatch returns which unverified claims of a JWT do not fit the configuration. It is empty if all of them
// do or the token is not a JWT.
func mismatch(c *config.Config, token string, now time.Time) string {
	var claims struct {
		Issuer   string  `json:"iss"`
		Audience any     `json:"aud"`
		Expires  float64 `json:"exp"`
	}
	if !auth.UnverifiedClaims(token, &claims) {
		return ""
	}
	var found []string
	if !slices.ContainsFunc(c.HTTP.OAuth.Issuers, func(i auth.Issuer) bool { return i.URL == claims.Issuer }) {
		found = append(found,
			fmt.Sprintf("the issuer %q is not in http.auth.oauth.issuers", clip.Bytes(claims.Issuer, maxClaim)))
	}
	want := c.HTTP.OAuth.Audience
	if want == "" {
		want = c.HTTP.OAuth.Resource
	}
	if !claim.Has(claims.Audience, want) {
		found = append(found, fmt.Sprintf("its audience is not %q", want))
	}
	if expires := time.Unix(int64(claims.Expires), 0); claims.Expires != 0 && !now.Before(expires) {
		found = append(found, "it expired at "+expires.UTC().Format(time.RFC3339))
	}
	if len(found) == 0 {
		return ""
	}
	return " (according to its text: " + strings.Join(found, "; ") + ")"
}
