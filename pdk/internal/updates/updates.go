// Package updates passes notifications about changed resources to the test that called a handler, in place of a host.
package updates

import "context"

type key struct{}

// With returns a context in which Notify calls updated.
func With(ctx context.Context, updated func(uri string)) context.Context {
	return context.WithValue(ctx, key{}, updated)
}

// Notify reports to the function in ctx, if any, that the resource with this URI has changed.
func Notify(ctx context.Context, uri string) {
	if updated, ok := ctx.Value(key{}).(func(string)); ok {
		updated(uri)
	}
}
