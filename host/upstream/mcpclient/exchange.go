package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	methodDiscover  = "server/discover"
	methodListen    = "subscriptions/listen"
	methodCancelled = "notifications/cancelled"

	// probeTime bounds the wait for the response to the first request of the newest version, which older servers may
	// leave unanswered.
	probeTime = 5 * time.Second
)

// exchange is one request to the server, from its sending to its response. It is in the context of the request.
type exchange struct {
	method string
	// token marks the questions on the stream of the request.
	token string
	// id is its id, once it is sent over HTTP.
	id atomic.Int64
	// resumes counts the attempts to resume its stream since the last event with an id.
	resumes atomic.Int32
	// sent reports whether the request has left, received whether a response has arrived. begin is its beginning.
	sent, received atomic.Bool
	begin          atomic.Pointer[string]
	// lost reports whether the server has refused the request because it does not know the session.
	lost atomic.Bool
	// status is the status of HTTP if the request failed, otherwise zero.
	status atomic.Int32
}

type exchangeKey struct{}

// exchangeOf returns the exchange of a request, or nil.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// receive records the arrival of a response with this result.
func (x *exchange) receive(result []byte) {
	begin := excerpt(result)
	x.begin.Store(&begin)
	x.received.Store(true)
}

// tokenKey is the key of the token for the questions on the streams of a call.
type tokenKey struct{}

// errSessionLost is the error of a request that the server has not served, because it does not know the session or
// because the session had ended before.
var errSessionLost = fmt.Errorf("the request was not served: %w", mcp.ErrSessionMissing)

// statusError is the error of a request that the server refused with a status of HTTP.
type statusError struct {
	status int
	// err has the text for the caller. It is a *jsonrpc.Error with codeStatus, or the server's own.
	err error
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

// sending is the middleware of all requests to the server: it bounds the probe for the newest version, and tells the
// errors apart, which the SDK reports in the same way: that the server refused the request, that its response is not
// valid, that the session is lost and that the transport failed.
func (x *session) sending(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		token, _ := ctx.Value(tokenKey{}).(string)
		e := &exchange{method: method, token: token}
		ctx = context.WithValue(ctx, exchangeKey{}, e)
		if method == methodDiscover {
			probe, cancel := context.WithTimeout(ctx, x.probeTime)
			defer cancel()
			result, err := next(probe, method, req)
			x.silent = err != nil && probe.Err() != nil
			return result, err
		}
		result, err := next(ctx, method, req)
		if ctx.Err() == nil {
			err = e.explain(err)
		}
		return result, err
	}
}

// explain returns the error of the request by its cause.
func (x *exchange) explain(err error) error {
	if err == nil {
		return nil
	}
	status := int(x.status.Load())
	switch {
	case x.lost.Load(), errors.Is(err, mcp.ErrSessionMissing) && !x.sent.Load():
		return errSessionLost
	case errors.Is(err, mcp.ErrSessionMissing):
		return errMidway
	case status != 0:
		return &statusError{status, err}
	case x.received.Load() && answered(err) == nil:
		return &answerError{fmt.Errorf("its result does not have the form of MCP: %s", *x.begin.Load())}
	}
	return err
}
