package mcpserver

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/host/identity"
)

// exchange is one HTTP request with its response, for the calls that it causes.
type exchange struct {
	identity *auth.Identity
	// under are the options that let the request in.
	under *live
	// toolset is the name in the path; empty without one.
	toolset string
	// address is the client's address, requestID the ID of its message. They are for records.
	address, requestID string
	// gone ends when the client has left and cannot fetch the answer any more. Nil never ends.
	gone context.Context
	// conn is the connection that receives its messages, stream the one for the answers.
	conn   *transport.Conn
	stream *transport.Stream
}

// owner is the key of the user who sends the request, empty without authentication.
func (x *exchange) owner() string {
	if x.identity == nil {
		return ""
	}
	return x.identity.Key()
}

// sessionOwner is the key of the user and the endpoint to which a session is bound.
func (x *exchange) sessionOwner() string {
	if x.toolset == "" {
		return x.owner()
	}
	return identity.Key(x.owner(), x.toolset)
}

// clientKey identifies a client for the limits. An IPv6 client is its /64 network, all of whose addresses it may have.
func clientKey(x *exchange) string {
	if x.identity != nil {
		return "user " + x.identity.Key()
	}
	if address, err := netip.ParseAddr(x.address); err == nil && address.Is6() && !address.Is4In6() {
		network, _ := address.WithZone("").Prefix(64) // it has that many bits
		return "address " + network.String()
	}
	return "address " + x.address
}

// exchangeKey is the key of the exchange in the values that the SDK passes with a message.
const exchangeKey = "exchange"

// extra accompanies a message to the SDK: exchangeOf finds the exchange in it.
func (x *exchange) extra(header http.Header) *mcp.RequestExtra {
	return &mcp.RequestExtra{
		TokenInfo: &sdkauth.TokenInfo{UserID: x.owner(), Extra: map[string]any{exchangeKey: x}}, Header: header,
		CloseSSEStream: func(args mcp.CloseSSEStreamArgs) {
			if x.stream != nil && !transport.IsSessionless(header) {
				x.stream.CloseForResumption(args.RetryAfter)
			}
		},
	}
}

// exchangeOf returns the exchange of a message, or nil on stdio.
func exchangeOf(extra *mcp.RequestExtra) *exchange {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	x, _ := extra.TokenInfo.Extra[exchangeKey].(*exchange)
	return x
}

// bound returns a context that also ends with the server, and with the HTTP request if its client has left for good.
// x is nil on stdio.
func (s *Server) bound(ctx context.Context, x *exchange) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stopBase := context.AfterFunc(s.base, cancel)
	if x == nil || x.gone == nil {
		return ctx, func() { stopBase(); cancel() }
	}
	stopGone := context.AfterFunc(x.gone, cancel)
	return ctx, func() { stopBase(); stopGone(); cancel() }
}

// whileValid ends a stream when the token that opened it expires or is revoked, or the rules for access change.
func (x *exchange) whileValid(r *http.Request) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stops := []func() bool{context.AfterFunc(x.under.authorized, cancel)}
	if x.identity != nil && x.identity.Revoked != nil {
		stops = append(stops, context.AfterFunc(x.identity.Revoked, cancel))
	}
	if x.identity != nil && !x.identity.Expires.IsZero() && x.under.Auth != nil {
		expiry := time.AfterFunc(x.identity.Expires.Sub(x.under.Auth.Now()), cancel)
		stops = append(stops, expiry.Stop)
	}
	return r.WithContext(ctx), func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
