package mcpserver

import (
	"context"
	"net/http"
	"net/netip"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/internal/identity"
	"github.com/hako-run/hako/host/mcpserver/auth"
	"github.com/hako-run/hako/host/mcpserver/transport"
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
func (over *exchange) owner() string {
	if over.identity == nil {
		return ""
	}
	return over.identity.Key()
}

// sessionOwner is the key of the user and the endpoint to which a session is bound.
func (over *exchange) sessionOwner() string {
	if over.toolset == "" {
		return over.owner()
	}
	return identity.Key(over.owner(), over.toolset)
}

// clientKey identifies a client for the limits. An IPv6 client is its /64 network, all of whose addresses it may have.
func clientKey(over *exchange) string {
	if over.identity != nil {
		return "user " + over.identity.Key()
	}
	if address, err := netip.ParseAddr(over.address); err == nil && address.Is6() && !address.Is4In6() {
		network, _ := address.WithZone("").Prefix(64) // it has that many bits
		return "address " + network.String()
	}
	return "address " + over.address
}

// exchangeKey is the key of the exchange in the values that the SDK passes with a message.
const exchangeKey = "exchange"

// extra accompanies a message to the SDK: exchangeOf finds the exchange in it.
func (over *exchange) extra(header http.Header) *mcp.RequestExtra {
	return &mcp.RequestExtra{
		TokenInfo: &sdkauth.TokenInfo{UserID: over.owner(), Extra: map[string]any{exchangeKey: over}}, Header: header,
		CloseSSEStream: func(args mcp.CloseSSEStreamArgs) {
			if over.stream != nil && !transport.IsSessionless(header) {
				over.stream.CloseForResumption(args.RetryAfter)
			}
		},
	}
}

// exchangeOf returns the exchange of a message, or nil on stdio.
func exchangeOf(extra *mcp.RequestExtra) *exchange {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	over, _ := extra.TokenInfo.Extra[exchangeKey].(*exchange)
	return over
}

// bound returns a context that also ends with the server, and with the HTTP request if its client has left for good.
// over is nil on stdio.
func (s *Server) bound(ctx context.Context, over *exchange) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stopBase := context.AfterFunc(s.base, cancel)
	if over == nil || over.gone == nil {
		return ctx, func() { stopBase(); cancel() }
	}
	stopGone := context.AfterFunc(over.gone, cancel)
	return ctx, func() { stopBase(); stopGone(); cancel() }
}
