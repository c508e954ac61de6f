package store

import "errors"

// Causes of errors, for errors.Is.
var (
	// ErrFull means that the disk is full or a size limit of the process was reached. Nothing was changed.
	ErrFull = errors.New("the disk is full")
	// ErrLocked means that another process writes or holds the lock, and waiting timed out.
	ErrLocked = errors.New("another process holds the lock")
	// ErrReadOnly means that the directory or the database is not writable.
	ErrReadOnly = errors.New("it cannot be written")
	// ErrCorrupt means that the file is damaged or not a database.
	ErrCorrupt = errors.New("the file is damaged, or is not a database")
	// ErrNewer means that a newer version of hako has migrated the store.
	ErrNewer = errors.New("a newer hako created it")
	// ErrUnprepared means that a store that was opened for reading alone lacks tables that this
	// version of hako needs.
	ErrUnprepared = errors.New("it has not been prepared for this hako yet: hako serve does that")
	// ErrUnreachable means that the database does not answer in time or refuses connections. The store reconnects by
	// itself.
	ErrUnreachable = errors.New("the database cannot be reached")
	// ErrLockLost is the cause of a lock's context after the lock was lost. Another process may hold it now.
	ErrLockLost = errors.New("the connection that held the lock is lost")
)
