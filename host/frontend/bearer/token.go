// Package bearer manages bearer tokens for MCP clients and the console. A Token is listed in the configuration by its
// hash, or created while hako runs: Issued stores those where all replicas find them, and blocks users of OAuth
// issuers.
package bearer

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/host/identity"
)

// Token is a bearer token without its text, of which there is only the hash.
type Token struct {
	// Name is for people: whose token it is and what for.
	Name string
	// Hash is the digest that New returned with the text.
	Hash string
	// User is the user in policies and the audit log. Empty means Name.
	User string
	// Tenant and Scopes are those of an MCP client's calls.
	Tenant string
	Scopes []string
	// Role is the role in the console. Empty means that the token is for MCP clients.
	Role string
	// Expires is the end of its validity. Zero means never.
	Expires time.Time
}

const (
	// prefix lets people and secret scanners recognise a token.
	prefix     = "hako_"
	hashPrefix = "sha256:"
	secretSize = 32
)

// New returns the text of a new token with 256 random bits, and its hash. A plain SHA-256 is enough for it: there is
// nothing to guess that a slow hash would have to make expensive.
func New() (text, hash string) {
	secret := make([]byte, secretSize)
	rand.Read(secret)
	text = prefix + base64.RawURLEncoding.EncodeToString(secret)
	return text, hashOf(text)
}

// IsToken reports whether a text has the form of a token, valid or not.
func IsToken(text string) bool {
	return strings.HasPrefix(text, prefix) && len(text) == len(prefix)+base64.RawURLEncoding.EncodedLen(secretSize)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// Check returns an error for a missing name, names with invisible characters, or an invalid hash.
func (t *Token) Check() error {
	digits, ok := strings.CutPrefix(t.Hash, hashPrefix)
	hash, err := hex.DecodeString(digits)
	if t.Name == "" {
		return errors.New("a token has no name: say whose it is and what for")
	}
	for _, name := range []string{t.Name, t.User, t.Tenant} {
		if err := identity.Check(name); name != "" && err != nil {
			return fmt.Errorf("token %q: %w: write it without", t.Name, err)
		}
	}
	if !ok || err != nil || len(hash) != sha256.Size {
		return fmt.Errorf("token %q: its hash is not %q and 64 hexadecimal digits: make one with 'hako token new'",
			t.Name, hashPrefix)
	}
	return nil
}

// IsScope reports whether s is a scope-token of RFC 6749, section 3.3.
func IsScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	})
}

// Owner returns the token's user.
func (t *Token) Owner() string {
	if t.User != "" {
		return t.User
	}
	return t.Name
}

// Expired reports whether the token's validity has ended.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// Find returns the token with this text, or nil. Its time does not depend on which one it is, or how much of the text
// is right.
func Find(tokens []Token, text string) *Token {
	given := []byte(hashOf(text))
	var found *Token
	for i := range tokens {
		if subtle.ConstantTimeCompare(given, []byte(strings.ToLower(tokens[i].Hash))) == 1 {
			found = &tokens[i]
		}
	}
	return found
}
