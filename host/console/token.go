package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/internal/identity"
)

// Token is a token for the console. The configuration has only its hash.
type Token struct {
	// Name is the owner's name. It is also the user if User is empty.
	Name string
	// Hash is "sha256:" and 64 hexadecimal digits, as printed by 'hako token new'.
	Hash string
	Role Role
	// User is the user in policies and the audit log.
	User string
	// Expires is the end of its validity. Zero means never.
	Expires time.Time
}

const hashPrefix = "sha256:"

// Check returns an error for a missing name, an invalid hash or an unknown role.
func (t *Token) Check() error {
	digits, ok := strings.CutPrefix(t.Hash, hashPrefix)
	hash, err := hex.DecodeString(digits)
	switch {
	case t.Name == "":
		return errors.New("a token has no name: say whose it is")
	case identity.Check(t.Name) != nil:
		return fmt.Errorf("token %q: %w: write it without", t.Name, identity.Check(t.Name))
	case t.User != "" && identity.Check(t.User) != nil:
		return fmt.Errorf("token %q: its user: %w: write it without", t.Name, identity.Check(t.User))
	case !ok || err != nil || len(hash) != sha256.Size:
		return fmt.Errorf("token %q: its hash is not %q and 64 hexadecimal digits: make one with 'hako token new'",
			t.Name, hashPrefix)
	case !slices.Contains(Roles, t.Role):
		return fmt.Errorf("token %q: the role %q does not exist: there are viewer, approver and admin", t.Name, t.Role)
	}
	return nil
}

// user returns the token's user.
func (t *Token) user() string {
	if t.User != "" {
		return t.User
	}
	return t.Name
}

// find returns the token with the text, or nil if there is none or it has expired. Its time does not depend on the
// tokens' contents.
func find(tokens []Token, text string, now time.Time) *Token {
	sum := sha256.Sum256([]byte(text))
	given := []byte(hashPrefix + hex.EncodeToString(sum[:]))
	var found *Token
	for i := range tokens {
		if subtle.ConstantTimeCompare(given, []byte(strings.ToLower(tokens[i].Hash))) == 1 {
			found = &tokens[i]
		}
	}
	if found != nil && found.expired(now) {
		return nil
	}
	return found
}

func (t *Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }
