// Package pdksql gives a plugin its database: one SQLite database per tenant, with the tables of the manifest's
// migrations.
//
//	open, err := pdksql.Select[Task](ctx, `SELECT id, title FROM task WHERE done = ?`, false)
//
// Select and Query read rows, Exec changes them, Transaction groups statements. Pass values as parameters, never in the
// text of the statement. A parameter may be nil, a bool (0 or 1), an integer, a float, a string, a []byte, a
// json.RawMessage (text), an encoding.TextMarshaler such as time.Time (text), a pointer to one of them (nil is NULL),
// or of a type derived from one.
//
// Errors of the database are *abi.Error with these codes: abi.CodeConflict for a constraint; abi.CodeBusy if another
// call locks the database; abi.CodeLimit for the quota or a bound on rows, bytes or memory; abi.CodeTimeout and
// abi.CodeCanceled if the call has ended; abi.CodeInvalid for a wrong statement or value.
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

// Query runs a statement and returns its rows, for example of a SELECT or of an INSERT ... RETURNING. Exceeding the
// host's bounds on rows or bytes is an error with abi.CodeLimit: page with LIMIT.
func Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	result, err := run(ctx, hostQuery, query, args)
	if err != nil {
		return nil, err
	}
	return &Rows{result.Columns, result.Rows}, nil
}

// Result describes the changes of a statement. Changes is the number of rows that an INSERT, UPDATE or DELETE changed;
// LastInsertID is the rowid of the last row that this call inserted, or 0.
type Result struct {
	Changes, LastInsertID int64
}

// Exec runs a statement that changes data. It drops rows.
func Exec(ctx context.Context, query string, args ...any) (Result, error) {
	result, err := run(ctx, hostExec, query, args)
	if err != nil {
		return Result{}, err
	}
	return Result{result.Changes, result.LastInsertID}, nil
}

// Transaction runs f in a write transaction and commits it. No other call writes meanwhile, so what f has read stays
// valid until it writes. An error or a panic of f rolls back. Transactions cannot be nested.
func Transaction(ctx context.Context, f func(ctx context.Context) error) error {
	return transaction(ctx, true, f)
}

// ReadTransaction runs f in a read transaction: all its queries see the same state of the database, while other calls
// may write.
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
			// If this fails, the host rolls back, at the latest when the call ends.
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

// run sends a statement and returns the error of its result as an error.
func run(
	ctx context.Context, send func(context.Context, *abi.SQLStatement) (*abi.SQLResult, error), query string,
	args []any,
) (*abi.SQLResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, contextError(err)
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

// contextError returns the error for a context that has ended.
func contextError(err error) *abi.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &abi.Error{Code: abi.CodeTimeout, Message: "the call's time is up"}
	}
	return &abi.Error{Code: abi.CodeCanceled, Message: "the call was canceled"}
}
