package httpbroker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/pdk/abi"
)

// errRequestTime is the cause of a context that ended at the request's own time limit, not at the call's deadline.
var errRequestTime = errors.New("the request's own time limit")

// Causes of errors with abi.CodeInvalid and abi.CodeLimit, for errors.Is.
var (
	ErrMethod        = errors.New("the method is malformed")
	ErrURL           = errors.New("the URL is malformed")
	ErrRequestSize   = errors.New("the request body is too large")
	ErrResponseSize  = errors.New("the response body is too large")
	ErrHeaderSize    = errors.New("the response header is too large")
	ErrManyRedirects = errors.New("too many redirects")
)

// caused is an *abi.Error with its cause, for errors.Is.
type caused struct {
	own   *abi.Error
	cause error
}

func (e *caused) Error() string   { return e.own.Message }
func (e *caused) Unwrap() []error { return []error{e.own, e.cause} }

// explain converts the error of a request to one with an *abi.Error: the exceeded limit, the violated rule, or the
// network failure without addresses.
func explain(ctx context.Context, r *request, err error) error {
	if own := (*abi.Error)(nil); errors.As(err, &own) {
		if masked := r.mask.text(own.Message); masked != own.Message {
			return abi.Errorf(own.Code, "%s", masked)
		}
		return err
	}
	code, text := abi.CodeNetwork, outbound.Reason(err)
	refused := (*outbound.RefusedError)(nil)
	switch ended := ctx.Err(); {
	case errors.As(err, &refused):
		code, text = abi.CodeNotGranted, refused.Error()
	case errors.Is(context.Cause(ctx), errRequestTime):
		code, text, err = abi.CodeTimeout, fmt.Sprintf("no complete response within the request's time limit of %v",
			r.time), ended
	case errors.Is(ended, context.DeadlineExceeded):
		code, text, err = abi.CodeTimeout, "the call's time is up", ended
	case ended != nil:
		code, text, err = abi.CodeCanceled, "the call was canceled", ended
	case headerTooLarge(err):
		code, text = abi.CodeLimit, fmt.Sprintf("the response header is larger than the limit of %d bytes",
			r.headerSize)
		err = ErrHeaderSize
	}
	return &caused{abi.Errorf(code, "%s", r.mask.text(fmt.Sprintf("%s %s: %s", r.method, r.target.shown(), text))), err}
}

// headerTooLarge recognizes net/http's untyped errors for Transport.MaxResponseHeaderBytes. HTTP/2 fails with
// COMPRESSION_ERROR for a far too large header; the only other cause is a corrupted one.
func headerTooLarge(err error) bool {
	text := err.Error()
	return strings.Contains(text, "response headers exceeded") || strings.Contains(text,
		"response header list larger") ||
		strings.Contains(text, "COMPRESSION_ERROR")
}

// permanent reports whether a retry would fail with the same error.
func permanent(err error) bool {
	var (
		own     *abi.Error
		refused *outbound.RefusedError
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
	)
	return errors.As(err, &own) || errors.As(err, &refused) || errors.As(err, &cert) || errors.As(err, &unknown) ||
		errors.As(err, &dns) && dns.IsNotFound || headerTooLarge(err)
}
