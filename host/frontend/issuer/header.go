package issuer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/strictjson"
)

// MaxToken limits a token, in bytes.
const MaxToken = 32 << 10

// Types of tokens in headers (RFC 7519, section 5.1, and RFC 9068, section 2.1). They are compared case-insensitively,
// with or without "application/".
const (
	TypeJWT         = "jwt"
	TypeAccessToken = "at+jwt"
)

// Check returns an error if a token must be refused whatever its signature: if its header or claims are ambiguous JSON,
// if its type is not among types (a token without a type has the type TypeJWT), or if its header requires unsupported
// features. Keys in the header (jwk, jku, x5u, x5c) are ignored, because keys come from the issuer only.
func Check(token string, types ...string) error {
	if len(token) > MaxToken {
		return fmt.Errorf("the token has more than %d bytes", MaxToken)
	}
	encoded, rest, _ := strings.Cut(token, ".")
	claims, _, _ := strings.Cut(rest, ".")
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return errors.New("the token is not a JWT")
	}
	header, err := members(decoded)
	if err != nil {
		return fmt.Errorf("the token's header is invalid: %w", err)
	}
	payload, err := base64.RawURLEncoding.DecodeString(claims)
	if err == nil {
		_, err = members(payload)
	}
	if err != nil {
		return fmt.Errorf("the token's claims are invalid: %w", err)
	}
	// Parameters for changed signature input (crit, b64), encryption and nested tokens are not used by access and ID
	// tokens.
	for _, name := range []string{"crit", "b64", "cty", "enc", "zip"} {
		if _, ok := header[name]; ok {
			return fmt.Errorf("the token's header has %q, which is not supported", name)
		}
	}
	kind := TypeJWT
	if value, ok := header["typ"]; ok {
		text, isText := value.(string)
		if !isText {
			return errors.New("the token's type is not a string")
		}
		kind = strings.TrimPrefix(strings.ToLower(text), "application/")
	}
	if !slices.Contains(types, kind) {
		return fmt.Errorf("tokens of the type %.40q cannot be used for signing in", kind)
	}
	return nil
}

// members decodes a JSON object.
func members(data []byte) (map[string]any, error) {
	var found map[string]any
	if err := strictjson.Unmarshal(data, &found); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, errors.New("the value is not an object")
	}
	return found, nil
}

// markers are claims of tokens that are not access tokens: ID tokens (OpenID Connect Core 1.0, sections 2 and
// 3.3.2.11), security events and logout tokens (RFC 8417), introspection responses (RFC 9701), DPoP proofs (RFC 9449)
// and request objects (RFC 9101).
var markers = []string{
	"nonce", "at_hash", "c_hash", "s_hash", "events", "token_introspection", "htm", "htu", "ath",
	"response_type", "redirect_uri",
}

// checkIDToken returns an error unless verified claims are those of an ID token, which may have a nonce and hashes.
func checkIDToken(claims map[string]any) error {
	for _, name := range []string{"cnf", "events", "token_introspection", "htm", "htu",
		"response_type", "redirect_uri"} {
		if _, ok := claims[name]; ok {
			return fmt.Errorf("the token has the claim %q, which ID tokens do not have", name)
		}
	}
	return checkKind(claims, map[string][]string{"typ": {"id", TypeJWT}, "token_use": {"id"}})
}

// CheckAccessToken returns an error unless verified claims are those of a bearer access token.
func CheckAccessToken(claims map[string]any) error {
	if _, ok := claims["cnf"]; ok {
		return errors.New("the token is bound to a key (cnf), which is not verified here")
	}
	for _, name := range markers {
		if _, ok := claims[name]; ok {
			return fmt.Errorf("the token has the claim %q, which access tokens do not have", name)
		}
	}
	return checkKind(claims, map[string][]string{"typ": {"bearer", TypeJWT, TypeAccessToken}, "token_use": {"access"}})
}

// checkKind checks the kind of a token if a claim contains it, as in tokens of Keycloak and Cognito.
func checkKind(claims map[string]any, kinds map[string][]string) error {
	for name, wanted := range kinds {
		if text, ok := claims[name].(string); ok && !slices.Contains(wanted, strings.ToLower(text)) {
			return fmt.Errorf("the token's claim %q says that it is another kind of token: %.40q", name, text)
		}
	}
	return nil
}
