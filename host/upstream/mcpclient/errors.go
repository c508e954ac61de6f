package mcpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/pdk/abi"
)

var (
	// errSilent is the error of a server that did not answer in time.
	errSilent = errors.New("it did not respond")
	// errEnded is the error of a server whose program has ended.
	errEnded = errors.New("the program has exited")
	// errMidway is the error of a request that the server had received when it ended the session.
	errMidway = errors.New("the server ended the session in the middle of the request")
	// errClosed is the error after Upstreams.Close.
	errClosed = errors.New("the upstream servers are closed")
)

// limitError is the error of a call that a limit ended. It wraps a *limit.Error, so that metrics sort it as those of
// plugins.
type limitError struct {
	limit *limit.Error
	// odd is the beginning of a response that belonged to no request while the call waited, or empty.
	odd string
}

func newLimitError(server, name, value string) *limitError {
	return &limitError{limit: &limit.Error{Plugin: server, Limit: name, Value: value}}
}

func (e *limitError) Error() string {
	l := e.limit
	switch l.Limit {
	case limit.Time:
		if e.odd != "" {
			return fmt.Sprintf("upstream server %s sent no response to the call within %s: it is unknown whether the "+
				"call had an effect. It sent a response that belongs to no request: %s", l.Plugin, l.Value, e.odd)
		}
		return fmt.Sprintf("upstream server %s did not respond within %s: it is unknown whether the call had an "+
			"effect. Raise limits.time of the server if it needs longer", l.Plugin, l.Value)
	case limit.Input:
		return fmt.Sprintf("the arguments for upstream server %s are larger than %s: make them smaller, or raise its limits.input", l.Plugin, l.Value)
	}
	if l.Value == "" {
		return fmt.Sprintf("the response of upstream server %s has more than %d blocks or %d values: ask for less",
			l.Plugin, maxItems, maxValues)
	}
	return fmt.Sprintf("the response of upstream server %s is larger than %s: ask for less, or raise its limits.output",
		l.Plugin, l.Value)
}

func (e *limitError) Unwrap() error { return e.limit }

// answered returns the server's error response, or nil if the transport failed. The SDK reports both by one type.
func answered(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code == -32005 && wire.Message == "rejected by transport" {
		return nil
	}
	return wire
}

// isNotFound reports whether the server does not know the method.
func isNotFound(err error) bool {
	wire := answered(err)
	return wire != nil && wire.Code == jsonrpc.CodeMethodNotFound
}

// callError returns the error that the caller of a failed call receives.
func (s *server) callError(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var away *unreachable
	var bad *answerError
	wire := answered(err)
	switch {
	case errors.As(err, &away):
		return &abi.Error{Code: away.code, Message: away.text}
	case errors.As(err, &bad):
		return s.invalidResponse(bad.Error())
	case wire == nil:
		s.logger.Warn("a call to an upstream server failed", "method", method, "err", cause.WithoutURL(err))
		why, sent := broken(err)
		if !sent {
			return abi.Errorf(abi.CodeNetwork, "upstream server %s failed: %s; nothing was called", s.spec.Name, why)
		}
		return abi.Errorf(abi.CodeNetwork, "upstream server %s failed: %s: it is unknown whether the call had an effect",
			s.spec.Name, why)
	}
	text := oneLineOf(wire.Message)
	switch wire.Code {
	case codeTooLarge:
		return newLimitError(s.spec.Name, limit.Output, limit.Bytes(s.bounds.Load().limits.Output))
	case codeTooMuch:
		return newLimitError(s.spec.Name, limit.Output, "")
	case codeTwice, codeInvalid:
		return s.invalidResponse(text)
	case codeStatus:
		return abi.Errorf(abi.CodeNetwork, "upstream server %s failed: %s", s.spec.Name, text)
	}
	if text == "" {
		text = fmt.Sprintf("an error without a message (code %d)", wire.Code)
	}
	failure := abi.Errorf(abi.CodeInternal, "upstream server %s: %s", s.spec.Name, text)
	if wire.Code == codeResourceNotFound || wire.Code == jsonrpc.CodeInvalidParams && method != abi.CallTool {
		failure.Code = abi.CodeNotFound
	}
	return failure
}

// invalidResponse is the error of a call whose response is not valid. why continues a sentence about the response.
func (s *server) invalidResponse(why string) error {
	return abi.Errorf(abi.CodeInternal, "upstream server %s sent an invalid response: %s", s.spec.Name, why)
}

// broken says why the transport failed, without addresses, which may hold secrets. sent reports whether the server may
// have received the request.
func broken(err error) (why string, sent bool) {
	var unusable *abi.Error // of a credential
	var unknown *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var slow net.Error
	switch {
	case errors.As(err, &unusable):
		return unusable.Message, false
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused", false
	case errors.As(err, &unknown):
		return "the name of its host cannot be resolved", false
	case errors.As(err, &untrusted):
		return "its certificate is not trusted: see tls.ca", false
	case errors.Is(err, errRedirect):
		return errRedirect.Error(), false
	case errors.Is(err, errEnded), errors.Is(err, errEndless), errors.Is(err, errMidway):
		return err.Error(), true
	case errors.As(err, &slow) && slow.Timeout():
		return "it did not respond in time", true
	case strings.HasSuffix(err.Error(), "request terminated without response"):
		return "the event stream ended without the response", true
	}
	return "the connection broke", true
}
