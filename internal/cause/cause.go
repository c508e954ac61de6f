// Package cause shortens errors whose text repeats a path or holds a URL.
//
// WithoutPath removes the operation and path from an error of package os, for messages that name the path already.
// WithoutURL removes the URL from an error of net/http, because a URL may hold a secret.
package cause

import (
	"errors"
	"io/fs"
	"net/url"
)

// WithoutPath returns the cause of a *fs.PathError in err, without the path, or err if there is none.
func WithoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// WithoutURL returns the cause of a *url.Error in err, without the address, or err if there is none.
func WithoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
