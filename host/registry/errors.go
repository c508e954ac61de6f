package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/visible"
)

var (
	// ErrNotFound is the error for a tag, a digest or a repository that the registry does not have.
	ErrNotFound = errors.New("the registry does not have it")
	// ErrDenied is the error for credentials that are missing or do not suffice.
	ErrDenied = errors.New("the registry denies it")
	// errDigest is the error for content that is not what its digest says.
	errDigest = errors.New("the registry's response does not match the digest")
)

// maxReason bounds the text of a registry in an error, in bytes.
const maxReason = 500

// query finds the query of a URL in an error: it may hold a signature that opens the registry's store.
var query = lazyregexp.New(`(https?://[^\s"?]*)\?[^\s"]*`)

// Error is an operation that failed at a registry. Its text is one line, whatever the registry sent.
type Error struct {
	// Subject is the reference, or the mirror.
	Subject string
	reason  string
	cause   error
}

func (e *Error) Error() string { return e.Subject + ": " + e.reason }

// Unwrap returns the causes, among them ErrNotFound and ErrDenied.
func (e *Error) Unwrap() error { return e.cause }

// readable returns err as an Error about subject, a request for r. Its text has no secret that was sent.
func (c *Client) readable(subject string, r Reference, err error) error {
	reason, kind := explain(r, err)
	reason = c.mask(query().ReplaceAllString(reason, "$1"))
	return &Error{subject, visible.Line(clip.Marked(reason, maxReason)),
		errors.Join(kind, err)}
}

// explain returns the reason for err and the sentinel that it matches, if any.
func explain(r Reference, err error) (string, error) {
	var response *errcode.ErrorResponse
	var refused *outbound.RefusedError
	var unknown *net.DNSError
	var connection *net.OpError
	var elsewhere *errTokenServer
	switch {
	case errors.As(err, &elsewhere):
		return elsewhere.Error(), ErrDenied
	case errors.As(err, &response):
		return explainResponse(r, response)
	case errors.Is(err, errdef.ErrNotFound), errors.Is(err, ErrNotFound):
		return ErrNotFound.Error(), ErrNotFound
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return "it requires a login: docker login " + r.Registry, ErrDenied
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData),
		strings.Contains(err.Error(), "digest mismatch"): // oras-go has no type for a header that names another digest
		return errDigest.Error(), errDigest
	case errors.As(err, &refused):
		return fmt.Sprintf(
			"%s is at %s address, and only public addresses are reached from here: name the registry in "+
				"registries of the configuration, or use hako plugin add at a terminal", refused.Host,
			refused.Kind), nil
	case errors.As(err, &unknown):
		return "the address of " + unknown.Name + " is not found: check the name of the registry", nil
	case errors.As(err, &connection) && connection.Op == "dial":
		return fmt.Sprintf("%s does not answer (%v): check its name and port, and that the registry is running",
			r.Registry, connection.Err), nil
	case errors.Is(err, context.DeadlineExceeded):
		return "the registry takes too long", nil
	case isInterrupted(err):
		return "the connection ended in the middle, again and again", nil
	}
	return cause.WithoutURL(err).Error(), nil
}

func explainResponse(r Reference, response *errcode.ErrorResponse) (string, error) {
	said := http.StatusText(response.StatusCode)
	if len(response.Errors) > 0 {
		said = response.Errors.Error()
	}
	switch response.StatusCode {
	case http.StatusUnauthorized:
		if at := response.URL; at != nil && !strings.EqualFold(at.Host, r.Registry) {
			said += ", says " + at.Host
		}
		return "it requires a login that the registry accepts: docker login " + r.Registry + " (" + said + ")",
			ErrDenied
	case http.StatusForbidden:
		return "the registry denies it: " + said, ErrDenied
	case http.StatusNotFound:
		return ErrNotFound.Error() + ": " + said, ErrNotFound
	case http.StatusBadRequest:
		if isLoopback(r.Registry) {
			said += ": registries on this machine are reached without TLS; for one with TLS, name its certificate in registries of " +
				"the configuration"
		}
	case http.StatusTooManyRequests:
		return "the registry has had too many requests: try again later (" + said + ")", nil
	}
	return fmt.Sprintf("the registry answers %d: %s", response.StatusCode, said), nil
}
