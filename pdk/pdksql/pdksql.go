// Package pdksql is a plugin's database: a SQLite database of its own for each tenant, with the tables that the manifest's
// migrations made.
//
//	open, err := pdksql.Select[Task](ctx, `SELECT id, title FROM task WHERE done = ?`, false)
//
// Values go in as parameters, never as part of the statement's text. A parameter may be nil, a bool (0 or 1), an integer, a float, a
// string, a []byte, a json.RawMessage (text), an encoding.TextMarshaler such as time.Time (text), a pointer to one of them (nil is
// NULL), or of a type derived from one of them.
//
// Errors of the database are *abi.Error. Codes that a plugin may want to tell apart: abi.CodeConflict, a constraint forbids the
// change; abi.CodeBusy, another call holds the database; abi.CodeLimit, the quota or a bound on rows, bytes or memory;
// abi.CodeTimeout and abi.CodeCanceled, the call is over; abi.CodeInvalid, the statement or a value is wrong.
package pdksql

import (
	"context"
	"errors"

	"github.com/hako-run/hako/pdk/abi"
)

// Rows are the rows of a query. A value is nil, an int64, a float64, a string or a []byte.
type Rows struct {
	Columns []string
	Values  [][]any
}

// Query runs one statement and returns its rows, for example of a SELECT or of an INSERT ... RETURNING. More rows or bytes than the
// host allows in one answer are an error with abi.CodeLimit: page with LIMIT.
func Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	result, err := run(ctx, hostQuery, query, args)
	if err != nil {
		return nil, err
	}
	return &Rows{result.Columns, result.Rows}, nil
}

// Result tells what a statement changed. Changes is how many rows an INSERT, UPDATE or DELETE touched; LastInsertID is the rowid of the
// last row that this call inserted, 0 if it inserted none.
type Result struct {
	Changes, LastInsertID int64
}

// Exec runs one statement that changes something. Rows that it gives are dropped.
func Exec(ctx context.Context, query string, args ...any) (Result, error) {
	result, err := run(ctx, hostExec, query, args)
	if err != nil {
		return Result{}, err
	}
	return Result{result.Changes, result.LastInsertID}, nil
}

// Transaction runs f in a transaction that may write, and commits it. No other call writes between its start and its end, so what f
// has read still holds when it writes. An error or a panic of f undoes what it did. A transaction cannot begin within another.
func Transaction(ctx context.Context, f func(ctx context.Context) error) error {
	return transaction(ctx, true, f)
}

// ReadTransaction runs f in a transaction that only reads: all its queries see the database at one moment, while others write.
func ReadTransaction(ctx context.Context, f func(ctx context.Context) error) error {
	return transaction(ctx, false, f)
}

func transaction(ctx context.Context, write bool, f func(ctx context.Context) error) (err error) {
	if err := hostBegin(ctx, write); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			// The host rolls back by itself where this fails, at the latest when the call ends.
			_ = hostRollback(ctx)
		}
	}()
	if err := f(ctx); err != nil {
		return err
	}
	if err := hostCommit(ctx); err != nil {
		return err
	}
	committed = true
	return nil
}

// run sends a statement and turns the answer's error into one.
func run(ctx context.Context, send func(context.Context, *abi.SQLStatement) (*abi.SQLResult, error), query string, args []any) (*abi.SQLResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended(err)
	}
	values, err := parameters(args)
	if err != nil {
		return nil, err
	}
	result, err := send(ctx, &abi.SQLStatement{SQL: query, Args: values})
	if err != nil {
		return nil, err
	}
	if result.Error != nil {
		return nil, result.Error
	}
	return result, nil
}

// ended says why nothing is sent any more.
func ended(err error) *abi.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &abi.Error{Code: abi.CodeTimeout, Message: "the call's time is up"}
	}
	return &abi.Error{Code: abi.CodeCanceled, Message: "the call was canceled"}
}
