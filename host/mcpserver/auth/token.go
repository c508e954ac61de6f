package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/internal/identity"
)

// Token is a static bearer token as configuration holds it: not itself, only its hash.
type Token struct {
	// Name is for people: whose token it is and what for.
	Name string
	// Hash is what NewToken returned with the token.
	Hash string
	// User and Tenant are whom calls are made for. An empty User means Name.
	User, Tenant string
	// Scopes are what the token may be used for.
	Scopes []string
	// Expires is when it stops being valid; zero means never.
	Expires time.Time
}

const (
	// tokenPrefix lets people and secret scanners recognise a token.
	tokenPrefix = "hako_"
	hashPrefix  = "sha256:"
)

// NewToken returns a new token with 256 random bits, and its hash for Token.Hash. A plain SHA-256 is enough for it:
// there is nothing to guess that a slow hash would have to make expensive.
func NewToken() (token, hash string) {
	secret := make([]byte, 32)
	rand.Read(secret)
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
	sum := sha256.Sum256([]byte(token))
	return token, hashPrefix + hex.EncodeToString(sum[:])
}

type staticToken struct {
	hash     []byte
	identity *Identity
}

func parseTokens(tokens []Token) ([]staticToken, error) {
	var parsed []staticToken
	for _, token := range tokens {
		if token.Name == "" {
			return nil, fmt.Errorf("mcp server: a token has no name: say whose it is and what for")
		}
		hexadecimal, ok := strings.CutPrefix(token.Hash, hashPrefix)
		hash, err := hex.DecodeString(hexadecimal)
		if !ok || err != nil || len(hash) != sha256.Size {
			return nil, fmt.Errorf(
				"mcp server: token %q: its hash is not %q and 64 hexadecimal digits: make one with 'hako token new'",
				token.Name,
				hashPrefix,
			)
		}
		by := &Identity{User: token.User, Tenant: token.Tenant, Token: token.Name, Scopes: slices.Clone(token.Scopes),
			Expires: token.Expires}
		if by.User == "" {
			by.User = token.Name
		}
		for _, name := range []string{by.Token, by.User, by.Tenant} {
			if err := identity.Check(name); name != "" && err != nil {
				return nil, fmt.Errorf("mcp server: token %q: %w: write it without", token.Name, err)
			}
		}
		parsed = append(parsed, staticToken{hash, by})
	}
	return parsed, nil
}

// static finds a static token, in a time that does not depend on which one it is, or how much of it is right.
func (a *Auth) static(token string) (*Identity, bool) {
	sum := sha256.Sum256([]byte(token))
	var found *Identity
	for i := range a.tokens {
		if subtle.ConstantTimeCompare(sum[:], a.tokens[i].hash) == 1 {
			found = a.tokens[i].identity
		}
	}
	return found, found != nil
}
