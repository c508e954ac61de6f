package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/abi"
)

var (
	// errSilent is the error of a server that did not answer in time.
	errSilent = errors.New("it did not respond")
	// errEnded is the error of a server whose program has ended.
	errEnded = errors.New("the program has exited")
	// errClosed is the error after Upstreams.Close.
	errClosed = errors.New("the upstream servers are closed")
)

// limitError is the error of a call that a limit ended. It wraps a *limit.Error, so that metrics sort it as those of
// plugins.
type limitError struct{ limit *limit.Error }

func newLimitError(server, name, value string) *limitError {
	return &limitError{&limit.Error{Plugin: server, Limit: name, Value: value}}
}

func (e *limitError) Error() string {
	l := e.limit
	switch l.Limit {
	case limit.Time:
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
		return abi.Errorf(abi.CodeInternal, "upstream server %s sent an invalid response: %v", s.spec.Name, bad)
	case wire == nil:
		s.logger.Warn("a call to an upstream server failed", "method", method, "err", cause.WithoutURL(err))
		return &abi.Error{Code: abi.CodeNetwork, Message: s.failed(err)}
	}
	switch wire.Code {
	case codeTooLarge:
		return newLimitError(s.spec.Name, limit.Output, limit.Bytes(s.bounds.Load().limits.Output))
	case codeTooMuch:
		return newLimitError(s.spec.Name, limit.Output, "")
	case codeTwice:
		return abi.Errorf(abi.CodeInternal,
			"upstream server %s sent an invalid response: an object in it has a duplicate key", s.spec.Name)
	}
	failure := abi.Errorf(abi.CodeInternal, "upstream server %s: %s", s.spec.Name,
		clip.Runes(oneLine(visible.Clean(wire.Message)), maxLogLine))
	if wire.Code == codeResourceNotFound || wire.Code == jsonrpc.CodeInvalidParams && method != abi.CallTool {
		failure.Code = abi.CodeNotFound
	}
	return failure
}

// failed explains why the transport failed.
func (s *server) failed(err error) string {
	text := err.Error()
	why := "it could not be reached, or the connection broke: it is unknown whether the call had an effect"
	for _, known := range []string{
		"Unauthorized", "Forbidden", "Not Found", "Too Many Requests", "Internal Server Error", "Bad Gateway",
		"Service Unavailable",
		"Gateway Timeout", "request terminated without response",
	} {
		if strings.HasSuffix(text, known) {
			why = strings.ToLower(known)
		}
	}
	return fmt.Sprintf("upstream server %s failed: %s. The host's log has the details", s.spec.Name, why)
}
