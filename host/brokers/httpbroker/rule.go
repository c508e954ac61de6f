package httpbroker

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/glob"
	"github.com/hako-run/hako/pdk/abi"
)

// rule is a parsed grant.HTTPRule. Its URL is normalized like those of requests.
type rule struct {
	name, scheme, port string

	host    outbound.Host
	private bool

	credential  string // the name of the credential; empty: none
	placeholder string // the configuration key whose placeholder the credential replaces; empty: a header is added

	base    string // decoded path without trailing slash
	globs   []string
	methods []string

	retries int
	trace   bool          // send the trace context
	limiter *rate.Limiter // nil: no limit

	move *move // nil: nothing is moved here

	dialer    *outbound.Dialer
	transport http.RoundTripper
}

func newRule(g grant.HTTPRule) (*rule, error) {
	u, err := url.Parse(g.URL)
	if err != nil {
		return nil, err
	}
	if err := checkForm(u); err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("url %q has a query or fragment: rules end with the path", g.URL)
	}
	r := &rule{name: g.Name, scheme: u.Scheme, private: g.Private, methods: g.Methods, credential: g.Credential,
		placeholder: g.Placeholder}
	if r.host, err = outbound.ParseHost(u.Hostname()); err != nil {
		return nil, err
	}
	if r.port, err = canonicalPort(u); err != nil {
		return nil, err
	}
	if r.move, err = newMove(g); err != nil {
		return nil, err
	}
	if err := r.setPaths(u, g.Paths); err != nil {
		return nil, err
	}
	if _, exact := r.host.Exact(); r.credential != "" && !exact && !strings.Contains(r.host.Domain(), ".") {
		return nil, fmt.Errorf("url %q: the credential %s can be sent to one host or the hosts of one domain: name "+
			"them instead of %q", g.URL, r.credential, u.Hostname())
	}
	return r, r.checkMethods()
}

func (r *rule) setPaths(u *url.URL, globs []string) error {
	all, err := readings(cleanPath(u.EscapedPath()))
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return fmt.Errorf("url %q: encoded slashes and percent signs are not possible in the path of a rule", u)
	}
	r.base = strings.TrimSuffix(all[0], "/")
	for _, pattern := range globs {
		if !glob.Valid(pattern) {
			return fmt.Errorf("path %q is not a valid glob, or has more than four groups in braces", pattern)
		}
		r.globs = append(r.globs, strings.TrimPrefix(pattern, "/"))
	}
	return nil
}

func (r *rule) checkMethods() error {
	if len(r.methods) == 0 {
		r.methods = []string{http.MethodGet, http.MethodHead}
	}
	for _, m := range r.methods {
		if !httpguts.ValidHeaderFieldName(m) || m != strings.ToUpper(m) {
			return fmt.Errorf("method %q is not an HTTP method in upper case", m)
		}
		if m == http.MethodConnect || m == http.MethodTrace {
			return fmt.Errorf("method %s cannot be granted", m)
		}
	}
	return nil
}

func (r *rule) allows(method string, t *target) bool {
	return r.allowsOrigin(t) && slices.Contains(r.methods, method) &&
		!slices.ContainsFunc(t.readings, func(p string) bool {
			return !r.allowsPath(p)
		})
}

func (r *rule) allowsOrigin(t *target) bool {
	return r.scheme == t.scheme && r.port == t.port && r.host.Matches(t.host)
}

// allowsPath reports whether a decoded path is under the rule's base and matches one of its globs.
func (r *rule) allowsPath(p string) bool {
	if !r.under(p) {
		return false
	}
	if len(r.globs) == 0 {
		return true
	}
	rest := strings.TrimPrefix(p[len(r.base):], "/")
	return slices.ContainsFunc(r.globs, func(pattern string) bool { return glob.Match(pattern, rest) })
}

// under reports whether a decoded path is under the rule's base.
func (r *rule) under(p string) bool {
	rest, ok := strings.CutPrefix(p, r.base)
	return ok && (rest == "" || rest[0] == '/')
}

// String returns the rule for messages.
func (r *rule) String() string {
	t := target{scheme: r.scheme, host: r.host.String(), port: r.port, path: r.base}
	paths := "/**"
	if len(r.globs) > 0 {
		paths = "/{" + strings.Join(r.globs, ",") + "}"
	}
	return strings.Join(r.methods, "|") + " " + t.shown() + paths
}

// findRule returns the rule for a request, or an error for the guest.
func (b *Broker) findRule(plugin, method string, t *target) (*rule, error) {
	for _, r := range b.rules {
		if r.allows(method, t) {
			return r, nil
		}
	}
	granted := make([]string, len(b.rules))
	for i, r := range b.rules {
		granted[i] = r.String()
	}
	return nil, abi.Errorf(abi.CodeNotGranted, "plugin %s has no grant for %s %s (granted: %s): ask for it in the "+
		"manifest's "+
		"permissions.http and have the plugin approved", plugin, method, t.shown(),
		cmp.Or(strings.Join(granted, ", "), "nothing"))
}

// wait waits until the rule's rate limit allows a request.
func (r *rule) wait(ctx context.Context) error {
	if r.limiter == nil {
		return nil
	}
	err := r.limiter.Wait(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return abi.Errorf(abi.CodeLimit, "the rate limit of rule %s, %g requests a second, leaves no room in the time left",
		r.name, float64(r.limiter.Limit()))
}
