// Package nativesql passes the databases of package pdksqltest to package pdksql in tests outside of Wasm.
package nativesql

import (
	"context"
	"strings"
	"sync"

	"github.com/hako-run/hako/pdk/abi"
)

// Session is the database session of one call, like hako:sql/1 for a guest.
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

// Register sets the function that opens sessions for a test and its subtests; nil removes it.
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

// Start returns a context for one call in a test. It has a session if the test, or one that it is a subtest of, has a
// database. end closes the session.
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

// FromContext returns the session of the call, or nil.
func FromContext(ctx context.Context) Session {
	s, _ := ctx.Value(key{}).(Session)
	return s
}
