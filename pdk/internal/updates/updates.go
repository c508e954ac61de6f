// Package updates takes what handlers say of changed resources to the test that called them, where there is no host.
package updates

import "context"

type key struct{}

// With returns a context in which Tell calls told.
func With(ctx context.Context, told func(uri string)) context.Context {
	return context.WithValue(ctx, key{}, told)
}

// Tell tells whoever is named in ctx that the resource with this URI has changed.
func Tell(ctx context.Context, uri string) {
	if told, ok := ctx.Value(key{}).(func(string)); ok {
		told(uri)
	}
}
