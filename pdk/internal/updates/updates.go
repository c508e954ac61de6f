// Package updates passes notifications about changed resources and progress to the test that called a handler, in place
// of a host.
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

type progressKey struct{}

// WithProgress returns a context in which Progress calls report.
func WithProgress(ctx context.Context, report func(progress, total float64, message string)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports progress to the function in ctx, if any.
func Progress(ctx context.Context, progress, total float64, message string) {
	if report, ok := ctx.Value(progressKey{}).(func(progress, total float64, message string)); ok {
		report(progress, total, message)
	}
}
