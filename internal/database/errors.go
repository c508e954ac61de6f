package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/hako-run/hako/pdk/abi"
)

func failf(code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

var errBusy = failf(abi.CodeBusy, "others have used the database for longer than %v: try again", busyWait)

var errReadOnly = failf(abi.CodeInternal, "the host may not write the database: the operator has to give it permission")

var errUnreachable = failf(abi.CodeBusy, "the place where the database lies cannot be reached now, and it is not certain whether the last write is in it: try again")

var errOvertaken = failf(abi.CodeBusy, "another process has written to the database meanwhile, so nothing was changed: try again")

// ended says why a call goes no further.
func ended(ctx context.Context) *abi.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failf(abi.CodeTimeout, "the call's time is up")
	}
	return failf(abi.CodeCanceled, "the call was canceled")
}

// explain turns what ended a statement into what its plugin is told. It reports a fault if that is not all there is to say: then the
// operator has to learn of err. c may be nil.
func (db *DB) explain(ctx context.Context, c *conn, err error, sql string) (told *abi.Error, fault bool) {
	var (
		own     *abi.Error
		stopped *panicError
		code    sqlite3.ExtendedErrorCode
	)
	place := cause(c, err)
	switch {
	case errors.As(err, &own):
		return own, false
	case errors.As(err, &stopped) && stopped.outOfMemory():
		return failf(abi.CodeLimit, "the statement needs more than the %d MiB of memory that there are", maxMemory>>20), false
	case ctx.Err() != nil:
		return ended(ctx), false
	case errors.Is(place, ErrChanged):
		return errOvertaken, false
	case errors.Is(place, errPlace):
		return errUnreachable, true
	case errors.As(err, &code):
		if known := db.known(c, code, err, sql); known != nil {
			return known, false
		}
	}
	switch sqlite3.ErrorCode(code) {
	case sqlite3.CORRUPT, sqlite3.NOTADB:
		return failf(abi.CodeInternal, "the database is damaged: the operator can restore a backup"), true
	case sqlite3.READONLY, sqlite3.CANTOPEN, sqlite3.PERM:
		return errReadOnly, true
	}
	return failf(abi.CodeInternal, "the database cannot be used: the host's log says why"), true
}

// told is explain for whoever passes errors on: what a plugin may be told, or the fault itself. Nil stays nil.
func (db *DB) told(ctx context.Context, c *conn, err error, sql string) error {
	if err == nil {
		return nil
	}
	told, fault := db.explain(ctx, c, err, sql)
	if !fault {
		return told
	}
	return db.fault(told, cause(c, err))
}

// cause is err, or what the place of the database said where SQLite only knows that something did. c may be nil.
func cause(c *conn, err error) error {
	if c != nil && c.running == nil && errors.Is(c.files.full, errPlace) {
		return c.files.full
	}
	return err
}

// Fault is a failure of the host's, for the operator. Told is what the plugin and its callers may know of it.
type Fault struct {
	Path string
	Err  error
	Told *abi.Error
}

func (f *Fault) Error() string { return fmt.Sprintf("database %s: %v", f.Path, f.Err) }
func (f *Fault) Unwrap() error { return f.Err }

func (db *DB) fault(told *abi.Error, err error) *Fault { return &Fault{db.options.Path, err, told} }

// explain is the database's, and tells the operator of faults. Nil stays nil.
func (s *Session) explain(ctx context.Context, c *conn, err error, sql string) *abi.Error {
	if err == nil {
		return nil
	}
	told, fault := s.db.explain(ctx, c, err, sql)
	if fault {
		s.fault(s.db.fault(told, cause(c, err)))
	}
	return told
}

// maxMessage is how much of SQLite's words is passed on, in bytes.
const maxMessage = 1000

// known explains what a plugin or its caller can act on; nil for what only the operator can.
func (db *DB) known(c *conn, code sqlite3.ExtendedErrorCode, err error, sql string) *abi.Error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), code.Error()), ": ")
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], "\ufffd") // a trigger may say anything
	switch sqlite3.ErrorCode(code) {
	case sqlite3.CONSTRAINT:
		return failf(abi.CodeConflict, "%s", text)
	case sqlite3.BUSY, sqlite3.LOCKED:
		return errBusy
	case sqlite3.TOOBIG:
		return failf(abi.CodeLimit, "a value, or the statement, is larger than %d bytes", MaxBytes)
	case sqlite3.AUTH:
		if text == "" { // SQLite names what it refuses only in some cases
			text = verb(sql) + " is not possible here"
		}
		return failf(abi.CodeNotGranted, "a statement may use the tables of its own database, and nothing else: %s", text)
	case sqlite3.FULL:
		return db.full(c)
	case sqlite3.ERROR, sqlite3.MISMATCH, sqlite3.RANGE, sqlite3.SCHEMA:
		return failf(abi.CodeInvalid, "%s%s", text, place(err, sql))
	}
	return nil
}

// verb is the first word of a statement, or "this" where it does not begin with one.
func verb(sql string) string {
	word := strings.TrimSpace(sql)
	end := strings.IndexFunc(word, func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' })
	if end >= 0 {
		word = word[:end]
	}
	if word == "" || len(word) > 20 {
		return "this"
	}
	return strings.ToUpper(word)
}

// full explains which room was used up.
func (db *DB) full(c *conn) *abi.Error {
	switch {
	case c == nil || c.files.full == nil:
		return failf(abi.CodeLimit, "the database has reached its quota of %d bytes: delete something, or ask the operator for more", db.options.Quota)
	case errors.Is(c.files.full, errTemporary):
		return failf(abi.CodeLimit, "the statement sorts or groups more at once than the quota of %d bytes allows: do it in parts", db.options.Quota)
	case errors.Is(c.files.full, errLog):
		return failf(abi.CodeBusy, "what was written cannot be put in its place while somebody has been reading for long: try again")
	}
	return failf(abi.CodeLimit, "the host's disk is full")
}

// place says where in the statement SQLite found the error, if it says.
func place(err error, sql string) string {
	var detailed *sqlite3.Error
	if !errors.As(err, &detailed) || detailed.SQL() == "" || !strings.HasSuffix(sql, detailed.SQL()) {
		return ""
	}
	before := sql[:len(sql)-len(detailed.SQL())]
	line := strings.Count(before, "\n")
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return fmt.Sprintf(", at line %d, column %d", line+1, column+1)
}
