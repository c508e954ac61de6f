// Package nativehttp passes the HTTP requests of handlers to the test that called them, in place of a host.
package nativehttp

import (
	"context"
	"io"

	"github.com/hako-run/hako/pdk/abi"
)

// Sender sends a request in place of the host. The caller closes the body.
type Sender func(ctx context.Context, head *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, io.ReadCloser, error)

type key struct{}

// With returns a context whose requests are sent by sender.
func With(ctx context.Context, sender Sender) context.Context {
	return context.WithValue(ctx, key{}, sender)
}

// FromContext returns the sender of ctx, or nil.
func FromContext(ctx context.Context) Sender {
	sender, _ := ctx.Value(key{}).(Sender)
	return sender
}
