package database

import (
	"errors"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/hako-run/hako/pdk/abi"
)

// errMustWrite reports a writing statement on a read-only connection.
var errMustWrite = errors.New("the statement writes")

// execute runs one statement and returns its rows, or if rows is false the number of changes.
func (c *conn) execute(s *abi.SQLStatement, rows bool) (*abi.SQLResult, error) {
	stmt, err := c.prepare(s.SQL)
	if err != nil {
		return nil, err
	}
	defer c.finish(stmt)
	if !c.write && !stmt.ReadOnly() {
		return nil, errMustWrite
	}
	if err := bind(stmt, s.Args); err != nil {
		return nil, err
	}
	if rows {
		return query(stmt)
	}
	before := c.db.TotalChanges()
	for stmt.Step() {
	}
	if err := stmt.Err(); err != nil {
		return nil, err
	}
	result := &abi.SQLResult{LastInsertID: c.db.LastInsertRowID()}
	if c.db.TotalChanges() != before {
		result.Changes = c.db.Changes()
	}
	return result, nil
}

func bind(stmt *sqlite3.Stmt, args []any) error {
	if n := stmt.BindCount(); n != len(args) {
		return abi.Errorf(abi.CodeInvalid, "the statement has %d parameters, but got %d values", n, len(args))
	}
	for i, arg := range args {
		var err error
		switch v := arg.(type) {
		case nil:
			err = stmt.BindNull(i + 1)
		case int64:
			err = stmt.BindInt64(i+1, v)
		case float64:
			err = stmt.BindFloat(i+1, v)
		case string:
			if !utf8.ValidString(v) {
				return abi.Errorf(abi.CodeInvalid, "parameter %d is not UTF-8: send it as a blob", i+1)
			}
			err = stmt.BindText(i+1, v)
		case []byte:
			err = stmt.BindBlob(i+1, v)
		default:
			return abi.Errorf(abi.CodeInvalid, "parameter %d has the type %T, which SQL does not support", i+1, arg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// query steps through a statement and collects its rows.
func query(stmt *sqlite3.Stmt) (*abi.SQLResult, error) {
	result := &abi.SQLResult{Columns: make([]string, stmt.ColumnCount())}
	size := 0
	for i := range result.Columns {
		result.Columns[i] = stmt.ColumnName(i)
		size += len(result.Columns[i])
	}
	for stmt.Step() {
		if len(result.Rows) == MaxRows {
			return nil, abi.Errorf(abi.CodeLimit, "the result has more than %d rows: ask for fewer at once, with LIMIT",
				MaxRows)
		}
		row := make([]any, len(result.Columns))
		if err := stmt.Columns(row...); err != nil {
			return nil, err
		}
		for i, value := range row {
			n, err := measure(value)
			if err != nil {
				return nil, abi.Errorf(abi.CodeInvalid,
					"row %d, column %s %v", len(result.Rows)+1, result.Columns[i], err)
			}
			if blob, ok := value.([]byte); ok && blob == nil {
				row[i] = []byte{} // nil would mean NULL
			}
			size += n
		}
		if size > MaxBytes {
			return nil, abi.Errorf(abi.CodeLimit,
				"the result is larger than %d bytes: ask for less at once, with LIMIT "+
					"or fewer columns", MaxBytes)
		}
		result.Rows = append(result.Rows, row)
	}
	return result, stmt.Err()
}

var errNotUTF8 = errors.New("is text but not UTF-8: select it as CAST(... AS BLOB)")

// measure returns the approximate size of a value, or an error if it cannot be passed to a plugin.
func measure(value any) (int, error) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return 0, errNotUTF8
		}
		return len(v) + 8, nil
	case []byte:
		return len(v) + 8, nil
	}
	return 8, nil
}
