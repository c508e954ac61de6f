package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictjson"
)

// Metadata of protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect Discovery 1.0). Both
// are at one of several addresses. An address that answers with anything else, whatever its status, does not end the
// search.

const (
	// maxMetadata bounds a document, in bytes.
	maxMetadata = 1 << 20
	// maxRedirects bounds the redirects of one request for a document.
	maxRedirects = 5
	// maxAuthServers bounds the authorization servers of a resource that are tried.
	maxAuthServers = 5
)

// missing is the error of an address without a document.
type missing struct{ status int }

func (e *missing) Error() string { return fmt.Sprintf("answered with status %d", e.status) }

// fetchMetadata requests a JSON document, whatever its Content-Type, and follows redirects within the origin. Documents
// are requested from public addresses and those of the resource's host: they decide where secrets are sent, and who
// names the addresses is not trusted.
func fetchMetadata[T any](ctx context.Context, c *connection, place string) (*T, error) {
	for range maxRedirects {
		answer, next, err := c.requestMetadata(ctx, place)
		if err != nil {
			return nil, err
		}
		if next == "" {
			document := new(T)
			if err := strictjson.Unmarshal(answer, document); err != nil {
				return nil, fmt.Errorf("its answer is not the JSON object of RFC 8414 or RFC 9728: %w", err)
			}
			return document, nil
		}
		place = next
	}
	return nil, errors.New("it redirects too often")
}

// requestMetadata sends one request. It returns the body, or the address of a redirect.
func (c *connection) requestMetadata(ctx context.Context, place string) (body []byte, redirect string, err error) {
	u, err := url.Parse(place)
	if err != nil || u.User != nil || !address.IsConfidential(u) {
		return nil, "", errors.New("it is not an https URL (http only on a loopback address)")
	}
	if own, _ := url.Parse(c.spec.Resource); address.IsPrivate(u.Hostname()) && u.Hostname() != own.Hostname() {
		return nil, "", errors.New("it is a private address, and not on the host of the MCP server")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.broker.client.Do(request)
	if err != nil {
		return nil, "", cause.WithoutURL(err)
	}
	defer response.Body.Close()
	if to, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		if to.Scheme != u.Scheme || to.Host != u.Host {
			return nil, "", fmt.Errorf("it redirects to another server, %s", clip.Runes(to.Host, 100))
		}
		return nil, to.String(), nil
	}
	if response.StatusCode != http.StatusOK {
		return nil, "", &missing{response.StatusCode}
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, maxMetadata+1))
	if err == nil && len(body) > maxMetadata {
		err = errors.New("its answer is longer than 1 MiB")
	}
	return body, "", err
}

// absentError means that no place has a document.
type absentError struct{ reasons []error }

func (e *absentError) Error() string { return joined(e.reasons) }

// search requests the document from each of the places until check accepts one. The error has the reason for each
// place, except for those without a document if another place has one. It is an *absentError if none has.
func search[T any](ctx context.Context, c *connection, places []string, check func(*T) error) (*T, error) {
	var reasons, absent []error
	for _, place := range places {
		document, err := fetchMetadata[T](ctx, c, place)
		if err == nil {
			err = check(document)
		}
		if err == nil {
			return document, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		reason := fmt.Errorf("%s: %w", clip.Runes(place, 200), err)
		if none, ok := errors.AsType[*missing](err); ok && none.status < http.StatusInternalServerError {
			absent = append(absent, reason)
		} else {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return nil, &absentError{absent}
	}
	return nil, errors.New(joined(reasons))
}

func joined(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// isSameURL compares identifiers. A slash at the end makes no difference: some servers add one to every URL without a
// path, and others name a directory with or without it.
func isSameURL(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// describes reports whether metadata of the resource called name are those of an MCP server at place: of this URL, or of
// a path above it at the same origin.
func describes(name, place string) bool {
	if isSameURL(name, place) {
		return true
	}
	n, err := url.Parse(name)
	p, bad := url.Parse(place)
	return err == nil && bad == nil && n.Scheme == p.Scheme && strings.EqualFold(n.Host, p.Host) && n.User == nil &&
		n.RawQuery == "" && strings.HasPrefix(p.EscapedPath()+"/", strings.TrimSuffix(n.EscapedPath(), "/")+"/")
}

// issuerPlaces returns the addresses of an authorization server's metadata (RFC 8414, section 3; MCP 2025-11-25,
// authorization server metadata discovery).
func issuerPlaces(issuer string) ([]string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not a URL", clip.Runes(issuer, 100))
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimRight(u.EscapedPath(), "/")
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	places := []string{origin + oauth + path, origin + oidc + path}
	if path != "" {
		places = append(places, origin+path+oidc)
	}
	return places, nil
}

// fetchServerMetadata returns the metadata of the first of the issuers that has usable ones.
func (c *connection) fetchServerMetadata(ctx context.Context, issuers []string) (*oauthex.AuthServerMeta, error) {
	var errs []error
	for _, issuer := range issuers[:min(len(issuers), maxAuthServers)] {
		places, err := issuerPlaces(issuer)
		var server *oauthex.AuthServerMeta
		if err == nil {
			server, err = search(ctx, c, places, func(m *oauthex.AuthServerMeta) error {
				if !isSameURL(m.Issuer, issuer) {
					return fmt.Errorf("its issuer %q does not match", clip.Runes(m.Issuer, 100))
				}
				return nil
			})
		}
		if err == nil {
			return server, nil
		}
		errs = append(errs, fmt.Errorf("the authorization server %s publishes no metadata that can be used "+
			"(RFC 8414): %w", clip.Runes(issuer, 100), err))
	}
	return nil, errors.New(joined(errs))
}
