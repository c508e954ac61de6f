package store

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Causes of errors.
var (
	// ErrFull: the disk has no room, or the process may not write more. Nothing was changed.
	ErrFull = errors.New("the disk is full")
	// ErrLocked: another process writes, or holds the lock, for longer than the wait.
	ErrLocked = errors.New("another process holds it")
	// ErrReadOnly: the directory or the database cannot be written.
	ErrReadOnly = errors.New("it cannot be written")
	// ErrCorrupt: the file is damaged or no database.
	ErrCorrupt = errors.New("the file is damaged, or is no database")
	// ErrNewer: the store holds what a newer hako made.
	ErrNewer = errors.New("a newer hako made it")
)

// remedies are what to do about the causes that have one.
var remedies = map[error]string{
	ErrFull:     "free some space and try again; nothing was changed",
	ErrLocked:   "try again, and look which process has it open if that stays so",
	ErrReadOnly: "give this user write permission, or name another directory with store",
	ErrCorrupt:  "restore it from a backup, or move it away to start anew",
}

// causes are SQLite's primary result codes (sqlite.org/rescode.html) that have one of the causes above.
var causes = map[sqlite3.ErrorCode]error{
	sqlite3.FULL:     ErrFull,
	sqlite3.BUSY:     ErrLocked,
	sqlite3.LOCKED:   ErrLocked,
	sqlite3.READONLY: ErrReadOnly,
	sqlite3.CANTOPEN: ErrReadOnly,
	sqlite3.CORRUPT:  ErrCorrupt,
	sqlite3.NOTADB:   ErrCorrupt,
}

// explain names the store, the cause and the remedy where err is SQLite's. Another error, such as one of a transaction's own, stays
// as it is.
func (s *Store) explain(err error) error {
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		return err
	}
	cause := causes[sqlite3.ErrorCode(code)]
	if code == sqlite3.IOERR_WRITE {
		cause = ErrFull // beyond a quota or a limit on the size of files, as far as SQLite tells
	}
	if cause == nil {
		return fmt.Errorf("store %s: %w", s.path(), err)
	}
	return fmt.Errorf("store %s: %w (%w): %s", s.path(), cause, err, remedies[cause])
}
