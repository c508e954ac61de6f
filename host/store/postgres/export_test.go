package postgres

import "github.com/hako-run/hako/host/store"

// ErrPooled is errPooled.
var ErrPooled = errPooled

// HasLockConn reports whether the connection of the locks of a store is open.
func HasLockConn(s *store.Store) bool { return s.Engine().(*engine).locks.conn != nil }
