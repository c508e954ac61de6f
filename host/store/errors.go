package store

import "errors"

// Causes of errors.
var (
	// ErrFull: the disk has no room, or the process may not write more. Nothing was changed.
	ErrFull = errors.New("the disk is full")
	// ErrLocked: another process writes, or holds the lock, for longer than the wait.
	ErrLocked = errors.New("another process holds it")
	// ErrReadOnly: the directory or the database cannot be written.
	ErrReadOnly = errors.New("it cannot be written")
	// ErrCorrupt: the database is damaged or none.
	ErrCorrupt = errors.New("the file is damaged, or is no database")
	// ErrNewer: the store holds what a newer hako made.
	ErrNewer = errors.New("a newer hako made it")
	// ErrUnreachable: the database does not answer, or not in time, or lets nobody in. Connections are made anew when it does.
	ErrUnreachable = errors.New("the database cannot be reached")
	// ErrPooled: a pooler before the database gives one session to several clients in turn, so that locks hold for nobody and news of changes
	// reaches no one.
	ErrPooled = errors.New("a pooler gives one session to several clients in turn")
	// ErrLockLost is the cause for which the context of a lock ends that another process may have by now.
	ErrLockLost = errors.New("the connection that held the lock is lost")
)

// remedies are what to do about the causes that have one.
var remedies = map[error]string{
	ErrFull:     "free some space and try again; nothing was changed",
	ErrLocked:   "try again, and look which process has it open if that stays so",
	ErrReadOnly: "give this user write permission, or name another directory with store",
	ErrCorrupt:  "restore it from a backup, or move it away to start anew",
}
