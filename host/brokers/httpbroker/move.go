package httpbroker

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/grant"
)

// move sends requests under the base URL that a plugin asks for to the base URL that the operator granted instead. The
// moved request is then checked like any other.
type move struct {
	from *rule
	// base is the path of from, percent-encoded and without trailing slash.
	base string
	// to is the granted base URL, without trailing slash.
	to string
}

// newMove returns the move of a rule, or nil without one.
func newMove(g grant.HTTPRule) (*move, error) {
	if g.Asked == "" {
		return nil, nil
	}
	from, err := newRule(grant.HTTPRule{Name: g.Name, URL: g.Asked})
	if err != nil {
		return nil, err
	}
	asked, err := url.Parse(g.Asked)
	if err != nil {
		return nil, err
	}
	return &move{from, strings.TrimSuffix(cleanPath(asked.EscapedPath()), "/"), strings.TrimSuffix(g.URL, "/")}, nil
}

// moved returns the target to which a request for t is sent: t itself, or its counterpart at the server to which the
// operator moved the address. The address that a plugin asks for with the most specific host counts, and then that with
// the longest path.
func (b *Broker) moved(t target) (target, error) {
	var best, asked *rule
	for _, r := range b.rules {
		from := r
		if r.move != nil {
			from = r.move.from
		}
		if from.covers(&t) &&
			(best == nil || cmp.Or(from.host.Compare(asked.host), len(asked.base)-len(from.base)) < 0) {
			best, asked = r, from
		}
	}
	if best == nil || best.move == nil {
		return t, nil
	}
	there := best.move.to + strings.TrimPrefix(t.path, best.move.base)
	if t.query != "" {
		there += "?" + t.query
	}
	next, err := parseTarget(there)
	if err != nil {
		return t, fmt.Errorf("at the address to which the operator moved it: %w", err)
	}
	return next, nil
}

// covers reports whether t is under the rule's URL, however servers interpret its path.
func (r *rule) covers(t *target) bool {
	return r.allowsOrigin(t) && !slices.ContainsFunc(t.readings, func(p string) bool { return !r.under(p) })
}
