package store

import (
	"net/url"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// IsURL reports whether where, the location of a store, is the URL of a PostgreSQL database and not a directory.
func IsURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// password matches URLs that contain a password, including URLs that are invalid because of it.
var password = lazyregexp.New(`:[^@]*@|(?i)password`)

// Redacted returns the URL of a database without its password. If the position of the password is unclear, only the
// scheme is left.
func Redacted(where string) string {
	scheme, rest, _ := strings.Cut(where, "://")
	if !password().MatchString(rest) {
		return where
	}
	u, err := url.Parse(where)
	if err != nil {
		u = new(url.URL)
	}
	if _, plain := u.User.Password(); !plain || password().MatchString(u.RawQuery) {
		return scheme + "://(not shown: it may contain a password)"
	}
	return u.Redacted()
}
