package abi

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// SQLStatement is a statement with parameters. Each is nil, an int64, a float64, a string or a []byte: SQLite's NULL,
// INTEGER, REAL, TEXT and BLOB.
type SQLStatement struct {
	SQL  string
	Args []any
}

// SQLResult is the result of a statement: Error alone, Columns and Rows of "query", or the changes of "exec". Values
// have the types of SQLStatement.
type SQLResult struct {
	Columns []string
	Rows    [][]any
	// Changes is the number of rows that an INSERT, UPDATE or DELETE changed; LastInsertID is the rowid of the last row
	// inserted in this call.
	Changes      int64
	LastInsertID int64
	Error        *Error
}

// Encode returns the statement as JSON, and its blobs concatenated. It fails for parameters of other types, NaN, and
// text that is not UTF-8.
func (s *SQLStatement) Encode() (head, blobs []byte, err error) {
	if !utf8.ValidString(s.SQL) {
		return nil, nil, &Error{Code: CodeInvalid, Message: "the statement is not UTF-8"}
	}
	head = AppendString(append(make([]byte, 0, 64+2*len(s.SQL)), `{"sql":`...), s.SQL)
	if len(s.Args) > 0 {
		head = append(head, `,"args":`...)
		if head, blobs, err = appendValues(head, nil, s.Args); err != nil {
			return nil, nil, &Error{Code: CodeInvalid, Message: "parameter " + err.Error()}
		}
	}
	return append(head, '}'), blobs, nil
}

// Encode returns the result as JSON, and its blobs concatenated. It fails like SQLStatement.Encode.
func (r *SQLResult) Encode() (head, blobs []byte, err error) {
	if r.Error != nil {
		head = AppendString(append(head, `{"error":{"code":`...), r.Error.Code)
		return append(AppendString(append(head, `,"message":`...), r.Error.Message), "}}"...), nil, nil
	}
	if r.Columns == nil {
		head = strconv.AppendInt(append(head, `{"changes":`...), r.Changes, 10)
		return append(strconv.AppendInt(append(head, `,"lastInsertId":`...), r.LastInsertID, 10), '}'), nil, nil
	}
	head = append(head, `{"columns":[`...)
	for i, name := range r.Columns {
		if i > 0 {
			head = append(head, ',')
		}
		head = AppendString(head, name)
	}
	head = append(head, `],"rows":[`...)
	for i, row := range r.Rows {
		if i > 0 {
			head = append(head, ',')
		}
		if head, blobs, err = appendValues(head, blobs, row); err != nil {
			return nil, nil, fmt.Errorf("row %d, column %w", i+1, err)
		}
	}
	return append(head, "]}"...), blobs, nil
}

func appendValues(head, blobs []byte, values []any) (_, _ []byte, err error) {
	head = append(head, '[')
	for i, value := range values {
		if i > 0 {
			head = append(head, ',')
		}
		switch v := value.(type) {
		case nil:
			head = append(head, "null"...)
		case int64:
			head = strconv.AppendInt(head, v, 10)
		case float64:
			if head = appendReal(head, v); math.IsNaN(v) {
				return nil, nil, fmt.Errorf("%d is NaN, which SQL does not know", i+1)
			}
		case string:
			if head = AppendString(head, v); !utf8.ValidString(v) {
				return nil, nil, fmt.Errorf("%d is text but not UTF-8: handle it as a blob", i+1)
			}
		case []byte:
			head = append(strconv.AppendInt(append(head, `{"blob":`...), int64(len(v)), 10), '}')
			blobs = append(blobs, v...)
		default:
			return nil, nil, fmt.Errorf("%d has the type %T, which SQL does not know", i+1, value)
		}
	}
	return append(head, ']'), blobs, nil
}

// appendReal appends a number that decodes as REAL: with a fraction or an exponent.
func appendReal(out []byte, f float64) []byte {
	if math.IsInf(f, 0) {
		if f < 0 {
			out = append(out, '-')
		}
		return append(out, "9e999"...)
	}
	start := len(out)
	out = strconv.AppendFloat(out, f, 'g', -1, 64)
	for _, b := range out[start:] {
		if b == '.' || b == 'e' {
			return out
		}
	}
	return append(out, ".0"...)
}
