package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/hako-run/hako/pdk/abi"
)

var errBusy = abi.Errorf(abi.CodeBusy, "other users have locked the database for longer than %v: try again", busyWait)

var errReadOnly = abi.Errorf(abi.CodeInternal,
	"the host may not write to the database: the operator has to grant permission")

var errUnreachable = abi.Errorf(abi.CodeBusy, "the storage of the database is unreachable, and the last write may "+
	"or may not be committed: try again")

var errConflict = abi.Errorf(abi.CodeBusy, "another process wrote to the database meanwhile, so nothing was "+
	"changed: try again")

// contextError returns the error of a call whose context has ended.
func contextError(ctx context.Context) *abi.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return abi.Errorf(abi.CodeTimeout, "the call's time is up")
	}
	return abi.Errorf(abi.CodeCanceled, "the call was canceled")
}

// explain converts the error of a statement to an error for the plugin. It reports fault if err must also be reported
// to the operator. c may be nil.
func (db *DB) explain(ctx context.Context, c *conn, err error, sql string) (public *abi.Error, fault bool) {
	var (
		own     *abi.Error
		stopped *panicError
		code    sqlite3.ExtendedErrorCode
	)
	underlying := cause(c, err)
	switch {
	case errors.As(err, &own):
		return own, false
	case errors.As(err, &stopped) && stopped.outOfMemory():
		return abi.Errorf(abi.CodeLimit, "the statement needs more than the available %d MiB of memory", maxMemory>>20),
			false
	case ctx.Err() != nil:
		return contextError(ctx), false
	case errors.Is(underlying, ErrChanged):
		return errConflict, false
	case errors.Is(underlying, errPageStore):
		return errUnreachable, true
	case errors.As(err, &code):
		if known := db.explainCode(c, code, err, sql); known != nil {
			return known, false
		}
	}
	switch sqlite3.ErrorCode(code) {
	case sqlite3.CORRUPT, sqlite3.NOTADB:
		return abi.Errorf(abi.CodeInternal, "the database is damaged: the operator can restore a backup"), true
	case sqlite3.READONLY, sqlite3.CANTOPEN, sqlite3.PERM:
		return errReadOnly, true
	}
	return abi.Errorf(abi.CodeInternal, "the database cannot be used: the host's log has the reason"), true
}

// publicError returns the result of explain, or a *Fault that contains it. Nil stays nil.
func (db *DB) publicError(ctx context.Context, c *conn, err error) error {
	if err == nil {
		return nil
	}
	public, fault := db.explain(ctx, c, err, "")
	if !fault {
		return public
	}
	return db.fault(public, cause(c, err))
}

// cause returns err, or the underlying error of the connection's file system if there is one. c may be nil.
func cause(c *conn, err error) error {
	if c != nil && c.running == nil && errors.Is(c.files.failure, errPageStore) {
		return c.files.failure
	}
	return err
}

// Fault is a failure of the host, for the operator. Public is the error for the plugin and its callers.
type Fault struct {
	Path   string
	Err    error
	Public *abi.Error
}

func (f *Fault) Error() string { return fmt.Sprintf("database %s: %v", f.Path, f.Err) }
func (f *Fault) Unwrap() error { return f.Err }

func (db *DB) fault(public *abi.Error, err error) *Fault { return &Fault{db.options.Path, err, public} }

// explain converts an error and reports faults to the session's function. Nil stays nil.
func (s *Session) explain(ctx context.Context, c *conn, err error, sql string) *abi.Error {
	if err == nil {
		return nil
	}
	public, fault := s.db.explain(ctx, c, err, sql)
	if fault {
		s.fault(s.db.fault(public, cause(c, err)))
	}
	return public
}

// maxMessage limits the text of SQLite in errors, in bytes.
const maxMessage = 1000

// explainCode returns an error that the plugin or its caller can act on, or nil.
func (db *DB) explainCode(c *conn, code sqlite3.ExtendedErrorCode, err error, sql string) *abi.Error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), code.Error()), ": ")
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], "\ufffd") // the text of a trigger may be invalid
	switch sqlite3.ErrorCode(code) {
	case sqlite3.CONSTRAINT:
		return abi.Errorf(abi.CodeConflict, "%s", text)
	case sqlite3.BUSY, sqlite3.LOCKED:
		return errBusy
	case sqlite3.TOOBIG:
		return abi.Errorf(abi.CodeLimit, "a value, or the statement, is larger than %d bytes", MaxBytes)
	case sqlite3.AUTH:
		if text == "" { // SQLite does not always name the refused operation
			text = verb(sql) + " is not possible here"
		}
		return abi.Errorf(abi.CodeNotGranted,
			"a statement may use the tables of its own database, and nothing else: %s",
			text)
	case sqlite3.FULL:
		return db.explainFull(c)
	case sqlite3.ERROR, sqlite3.MISMATCH, sqlite3.RANGE, sqlite3.SCHEMA:
		return abi.Errorf(abi.CodeInvalid, "%s%s", text, errorPosition(err, sql))
	}
	return nil
}

// verb returns the first word of a statement, or "this" if it does not start with a word.
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

// explainFull returns the error for the limit that was reached.
func (db *DB) explainFull(c *conn) *abi.Error {
	switch {
	case c == nil || c.files.failure == nil:
		return abi.Errorf(abi.CodeLimit,
			"the database has reached its quota of %d bytes: delete something, or ask the "+
				"operator for more", db.options.Quota)
	case errors.Is(c.files.failure, errTemporary):
		return abi.Errorf(abi.CodeLimit, "the statement sorts or groups more data than the quota of %d bytes allows: "+
			"split it", db.options.Quota)
	case errors.Is(c.files.failure, errLog):
		return abi.Errorf(abi.CodeBusy,
			"the write-ahead log is full, because a long read prevents its checkpoint: try "+
				"again")
	}
	return abi.Errorf(abi.CodeLimit, "the host's disk is full")
}

// errorPosition describes the position of the error in the statement, if SQLite reports it.
func errorPosition(err error, sql string) string {
	var detailed *sqlite3.Error
	if !errors.As(err, &detailed) || detailed.SQL() == "" || !strings.HasSuffix(sql, detailed.SQL()) {
		return ""
	}
	before := sql[:len(sql)-len(detailed.SQL())]
	line := strings.Count(before, "\n")
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return fmt.Sprintf(", at line %d, column %d", line+1, column+1)
}
