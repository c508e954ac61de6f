// Package nativesql ties the databases of package pdksqltest to the tests that pdksql runs in, outside of Wasm.
package nativesql

import (
	"context"
	"strings"
	"sync"

	"github.com/hako-run/hako/pdk/abi"
)

// Session is one call's side of a database, what hako:sql/1 is for a guest.
type Session interface {
	Query(ctx context.Context, s *abi.SQLStatement) *abi.SQLResult
	Exec(ctx context.Context, s *abi.SQLStatement) *abi.SQLResult
	Begin(ctx context.Context, write bool) *abi.Error
	Commit(ctx context.Context) *abi.Error
	Rollback(ctx context.Context) *abi.Error
	Close() error
}

var (
	mu      sync.Mutex
	openers = map[string]func() Session{} // by the test's name
)

// Register makes open the source of sessions for a test and its subtests; nil takes it back.
func Register(test string, open func() Session) {
	mu.Lock()
	defer mu.Unlock()
	if open == nil {
		delete(openers, test)
		return
	}
	openers[test] = open
}

type key struct{}

// Start returns a context for one call under a test, with a session if the test or one that it is part of has a database. end ends the
// session.
func Start(ctx context.Context, test string) (_ context.Context, end func() error) {
	open := opener(test)
	if open == nil {
		return ctx, func() error { return nil }
	}
	s := open()
	return context.WithValue(ctx, key{}, s), s.Close
}

func opener(test string) func() Session {
	mu.Lock()
	defer mu.Unlock()
	for {
		if open := openers[test]; open != nil {
			return open
		}
		slash := strings.LastIndexByte(test, '/')
		if slash < 0 {
			return nil
		}
		test = test[:slash]
	}
}

// FromContext returns the session of the call whose context this is, or nil.
func FromContext(ctx context.Context) Session {
	s, _ := ctx.Value(key{}).(Session)
	return s
}
