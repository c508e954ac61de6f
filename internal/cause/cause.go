// Package cause takes away from errors what the reader knows already, or must not see because it may hold a secret.
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
