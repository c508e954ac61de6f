package wasi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// httpCodes are the cases of wasi:http/types.error-code.
var httpCodes = []string{
	"DNS-timeout", "DNS-error", "destination-not-found", "destination-unavailable", "destination-IP-prohibited",
	"destination-IP-unroutable", "connection-refused", "connection-terminated", "connection-timeout",
	"connection-read-timeout", "connection-write-timeout", "connection-limit-reached", "TLS-protocol-error",
	"TLS-certificate-error", "TLS-alert-received", "HTTP-request-denied", "HTTP-request-length-required",
	"HTTP-request-body-size", "HTTP-request-method-invalid", "HTTP-request-URI-invalid", "HTTP-request-URI-too-long",
	"HTTP-request-header-section-size", "HTTP-request-header-size", "HTTP-request-trailer-section-size",
	"HTTP-request-trailer-size", "HTTP-response-incomplete", "HTTP-response-header-section-size",
	"HTTP-response-header-size", "HTTP-response-body-size", "HTTP-response-trailer-section-size",
	"HTTP-response-trailer-size", "HTTP-response-transfer-coding", "HTTP-response-content-coding",
	"HTTP-response-timeout", "HTTP-upgrade-failed", "HTTP-protocol-error", "loop-detected", "configuration-error",
	"internal-error",
}

// sizeError is the error of a request body with the wrong size.
type sizeError struct {
	text string
	size int64
}

func (e *sizeError) Error() string { return e.text }

// httpError returns the error-code for an error of a request. Only internal-error has a text, so that of others is
// logged.
func (h *host) httpError(c caller, err error) component.Case {
	name, payload := httpCode(err)
	if name == "internal-error" {
		payload = component.Some(strings.ToValidUTF8(err.Error(), "\uFFFD"))
	} else {
		h.warn(c.ctx, err.Error())
	}
	return component.Case{Number: uint32(slices.Index(httpCodes, name)), Value: payload}
}

// httpCode returns the name and the payload of an error-code.
func httpCode(err error) (string, any) {
	var own *abi.Error
	var size *sizeError
	switch {
	case errors.As(err, &size):
		return "HTTP-request-body-size", component.Some(uint64(size.size))
	case errors.Is(err, httpbroker.ErrMethod):
		return "HTTP-request-method-invalid", nil
	case errors.Is(err, httpbroker.ErrURL):
		return "HTTP-request-URI-invalid", nil
	case errors.Is(err, httpbroker.ErrRequestSize):
		return "HTTP-request-body-size", component.None
	case errors.Is(err, httpbroker.ErrResponseSize):
		return "HTTP-response-body-size", component.None
	case errors.Is(err, httpbroker.ErrHeaderSize):
		return "HTTP-response-header-section-size", component.None
	case errors.Is(err, httpbroker.ErrManyRedirects):
		return "loop-detected", nil
	case errors.As(err, new(*outbound.RefusedError)):
		return "destination-IP-prohibited", nil
	case !errors.As(err, &own):
		return "internal-error", nil
	}
	switch own.Code {
	case abi.CodeNotGranted:
		return "HTTP-request-denied", nil
	case abi.CodeLimit, abi.CodeBusy:
		return "connection-limit-reached", nil
	case abi.CodeTimeout:
		return "HTTP-response-timeout", nil
	case abi.CodeCredential:
		return "configuration-error", nil
	case abi.CodeNetwork:
		return networkCode(err)
	}
	return "internal-error", nil
}

// networkCode returns the error-code for a failure of the network.
func networkCode(err error) (string, any) {
	var dns *net.DNSError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &dns) && dns.IsTimeout:
		return "DNS-timeout", nil
	case errors.As(err, &dns):
		return "DNS-error", []any{component.None, component.None}
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection-refused", nil
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "destination-IP-unroutable", nil
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.UnknownAuthorityError)),
		errors.As(err, new(x509.HostnameError)):
		return "TLS-certificate-error", nil
	case errors.As(err, &alert):
		return "TLS-alert-received", []any{component.Some(uint64(alert)), component.Some(alert.Error())}
	case errors.As(err, &record):
		return "TLS-protocol-error", nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "HTTP-response-incomplete", nil
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection-terminated", nil
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "connection-timeout", nil
	}
	return "internal-error", nil
}
