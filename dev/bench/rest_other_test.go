//go:build !unix

package bench

import "testing"

type loadedServer struct{}

func (r *results) rest(*testing.T) *loadedServer { return nil } // there is no /proc

func (r *results) kept(*testing.T, *loadedServer) {}
