package wasi

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// config is wasi:config: the configuration of a component is its environment. The interface has changed its name.
func (h *host) config() []broker.Interface {
	f := functions{
		"get": func1(func(c caller, key string) any {
			c.Charge(int64(len(h.Environment)) * broker.EntrySteps)
			i := slices.IndexFunc(h.Environment, func(variable [2]string) bool { return variable[0] == key })
			if i < 0 {
				return component.OK(component.None)
			}
			return component.OK(component.Some(h.Environment[i][1]))
		}),
		"get-all": func0(func(c caller) any { return component.OK(h.environment(c)) }),
	}
	return []broker.Interface{wasi("config/store", f), wasi("config/runtime", f)}
}

// keyvalue is wasi:keyvalue in a table of the plugin's private database, which each tenant has for itself.
func (h *host) keyvalue() []broker.Interface {
	return []broker.Interface{
		wasi("keyvalue/store", functions{
			"open":                     func1(h.openBucket),
			"[method]bucket.get":       func2(h.getKey),
			"[method]bucket.set":       func3(h.setKey),
			"[method]bucket.delete":    func2(h.deleteKey),
			"[method]bucket.exists":    func2(h.keyExists),
			"[method]bucket.list-keys": func2(h.listKeys),
		}),
		wasi("keyvalue/atomics", functions{
			"increment":           func3(h.increment),
			"[static]cas.new":     func2(h.newCAS),
			"[method]cas.current": func1(func(_ caller, s *cas) any { return component.OK(optionBytes(s.value)) }),
			"swap":                func2(h.swap),
		}),
		wasi("keyvalue/batch", functions{
			"get-many": func2(h.getMany), "set-many": func2(h.setMany), "delete-many": func2(h.deleteMany),
		}),
	}
}

// bucket is wasi:keyvalue/store.bucket. It is a name, so that a guest with state may keep it between calls.
type bucket string

// Lasting implements component.Lasting.
func (bucket) Lasting() {}

// errNoDatabase is the error of functions that need the database.
var errNoDatabase = &abi.Error{Code: abi.CodeNotGranted, Message: "the plugin has no grant for a database: ask for " +
	"it in the manifest's permissions.sql and have the plugin approved"}

// keyTable creates the table of wasi:keyvalue.
const keyTable = `CREATE TABLE IF NOT EXISTS hako_keyvalue (bucket TEXT NOT NULL, key TEXT NOT NULL,
	value BLOB NOT NULL, PRIMARY KEY (bucket, key)) WITHOUT ROWID`

// keyError returns a store.error: access-denied without a grant, and else other.
func (h *host) keyError(c caller, err *abi.Error) component.Case {
	if err.Code == abi.CodeNotGranted {
		h.warn(c.ctx, err.Message)
		return component.Case{Number: 1}
	}
	return component.Case{Number: 2, Value: err.Message}
}

// query runs a statement of wasi:keyvalue and returns its rows.
func (h *host) query(c caller, sql string, args ...any) ([][]any, *abi.Error) {
	if h.SQL == nil {
		return nil, errNoDatabase
	}
	result := h.SQL.Query(c.ctx, c.Call, &abi.SQLStatement{SQL: sql, Args: args})
	return result.Rows, result.Error
}

// keyResult returns value or err as a result.
func (h *host) keyResult(c caller, value any, err *abi.Error) component.Case {
	if err != nil {
		return component.Failed(h.keyError(c, err))
	}
	return component.OK(value)
}

// maxBucketName bounds the name of a bucket, in bytes. The instance holds it as long as the bucket is open.
const maxBucketName = 255

func (h *host) openBucket(c caller, name string) any {
	if len(name) > maxBucketName {
		return component.Failed(h.keyError(c, &abi.Error{Code: abi.CodeLimit, Message: fmt.Sprintf(
			"the name of a bucket has %d bytes: at most %d are possible", len(name), maxBucketName)}))
	}
	_, err := h.query(c, keyTable)
	return h.keyResult(c, bucket(name), err)
}

// value returns the value of a key, or nil. A value that exists is never nil.
func (h *host) value(c caller, b bucket, key string) ([]byte, *abi.Error) {
	rows, err := h.query(c, "SELECT value FROM hako_keyvalue WHERE bucket = ? AND key = ?", string(b), key)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	data, _ := rows[0][0].([]byte)
	return append([]byte{}, data...), nil
}

// optionBytes returns an option<list<u8>>.
func optionBytes(value []byte) component.Case {
	if value == nil {
		return component.None
	}
	return component.Some(value)
}

func (h *host) getKey(c caller, b bucket, key string) any {
	value, err := h.value(c, b, key)
	return h.keyResult(c, optionBytes(value), err)
}

func (h *host) keyExists(c caller, b bucket, key string) any {
	rows, err := h.query(c, "SELECT 1 FROM hako_keyvalue WHERE bucket = ? AND key = ?", string(b), key)
	return h.keyResult(c, len(rows) > 0, err)
}

func (h *host) setKey(c caller, b bucket, key string, value []byte) any {
	return h.keyResult(c, nil, h.set(c, b, key, value))
}

func (h *host) set(c caller, b bucket, key string, value []byte) *abi.Error {
	_, err := h.query(c, "INSERT INTO hako_keyvalue VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
		string(b), key, value)
	return err
}

func (h *host) deleteKey(c caller, b bucket, key string) any {
	return h.keyResult(c, nil, h.remove(c, b, key))
}

func (h *host) remove(c caller, b bucket, key string) *abi.Error {
	_, err := h.query(c, "DELETE FROM hako_keyvalue WHERE bucket = ? AND key = ?", string(b), key)
	return err
}

// keyPage is the number of keys that list-keys returns at once.
const keyPage = 1000

// listKeys returns a key-response. The cursor is the last key of a page.
func (h *host) listKeys(c caller, b bucket, cursor component.Case) any {
	after := ""
	if cursor.Number != 0 {
		after = text(cursor)
	}
	rows, err := h.query(c,
		"SELECT key FROM hako_keyvalue WHERE bucket = ? AND (key > ? OR ? = '') ORDER BY key LIMIT ?",
		string(b), after, after, int64(keyPage))
	keys, next := make([]any, len(rows)), component.None
	for i, row := range rows {
		keys[i] = row[0]
	}
	if len(rows) == keyPage {
		next = component.Some(keys[keyPage-1])
	}
	return h.keyResult(c, []any{keys, next}, err)
}

// increment adds to a number in decimal digits, in one statement. The delta is an s64, and a u64 in the first draft.
func (h *host) increment(c caller, b bucket, key string, delta any) any {
	var add int64
	switch d := delta.(type) {
	case int64:
		add = d
	case uint64:
		add = int64(d)
	default:
		panic(errType)
	}
	rows, err := h.query(c, `INSERT INTO hako_keyvalue VALUES (?, ?, CAST(CAST(? AS TEXT) AS BLOB))
		ON CONFLICT DO UPDATE SET value = CAST(CAST(CAST(CAST(value AS TEXT) AS INTEGER) + ? AS TEXT) AS BLOB)
		WHERE CAST(CAST(CAST(value AS TEXT) AS INTEGER) AS TEXT) = CAST(value AS TEXT)
		AND typeof(CAST(CAST(value AS TEXT) AS INTEGER) + ?) = 'integer'
		RETURNING CAST(CAST(value AS TEXT) AS INTEGER)`, string(b), key, add, add, add)
	if err == nil && len(rows) == 0 {
		err = &abi.Error{Code: abi.CodeInvalid,
			Message: "the value of the key is not a number of 64 bits, or would not be"}
	}
	if err != nil {
		return component.Failed(h.keyError(c, err))
	}
	sum, _ := rows[0][0].(int64)
	if _, unsigned := delta.(uint64); unsigned {
		return component.OK(uint64(sum))
	}
	return component.OK(sum)
}

// cas is wasi:keyvalue/atomics.cas: the value that a swap expects. nil means that there is no such key.
type cas struct {
	bucket bucket
	key    string
	value  []byte
	held   *casBytes
}

// casBytes counts the bytes of the keys and values that the handles of a call hold.
type casBytes int64

// maxCAS bounds casBytes.
const maxCAS = 4 * database.MaxBytes

type casKey struct{ host *host }

// Close implements io.Closer for broker.State.
func (*casBytes) Close() error { return nil }

func (s *cas) bytes() casBytes { return casBytes(len(s.key) + len(s.value)) }

// Drop implements component.Dropper. A component that imports functions with other types than WASI's may still hold s.
func (s *cas) Drop() {
	*s.held -= s.bytes()
	s.key, s.value = "", nil
}

func (h *host) newCAS(c caller, b bucket, key string) any {
	s, err := h.readCAS(c, b, key)
	return h.keyResult(c, s, err)
}

func (h *host) readCAS(c caller, b bucket, key string) (*cas, *abi.Error) {
	value, err := h.value(c, b, key)
	if err != nil {
		return nil, err
	}
	held := broker.State(c.Call, casKey{h}, func() *casBytes { return new(casBytes) })
	s := &cas{b, key, value, held}
	if *held+s.bytes() > maxCAS {
		return nil, &abi.Error{Code: abi.CodeLimit, Message: fmt.Sprintf("the handles for compare-and-swap would hold "+
			"more than %d bytes of keys and values: drop those that are no longer used", maxCAS)}
	}
	*held += s.bytes()
	return s, nil
}

// swap returns a result with a cas-error: store-error, or cas-failed with the value that there is now.
func (h *host) swap(c caller, s *cas, value []byte) any {
	defer s.Drop() // it belongs to the host now
	var rows [][]any
	var err *abi.Error
	if s.value == nil {
		rows, err = h.query(c, "INSERT INTO hako_keyvalue VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1",
			string(s.bucket), s.key, value)
	} else {
		rows, err = h.query(c,
			"UPDATE hako_keyvalue SET value = ? WHERE bucket = ? AND key = ? AND value = ? RETURNING 1",
			value, string(s.bucket), s.key, bytes.Clone(s.value))
	}
	if err == nil && len(rows) == 0 {
		var now *cas
		if now, err = h.readCAS(c, s.bucket, s.key); err == nil {
			return component.Failed(component.Case{Number: 1, Value: now})
		}
	}
	if err != nil {
		return component.Failed(component.Case{Number: 0, Value: h.keyError(c, err)})
	}
	return component.OK(nil)
}

// getMany returns list<option<tuple<string, list<u8>>>>. The values together are bounded like one result of SQL.
func (h *host) getMany(c caller, b bucket, keys []any) any {
	values, size := make([]any, len(keys)), 0
	for i := range keys {
		key := arg[string](keys, i)
		value, err := h.value(c, b, key)
		if size += len(value); err == nil && size > database.MaxBytes {
			err = &abi.Error{Code: abi.CodeLimit, Message: fmt.Sprintf(
				"the values of the keys have more than %d bytes: get fewer at once", database.MaxBytes)}
		}
		if err != nil {
			return component.Failed(h.keyError(c, err))
		}
		values[i] = component.None
		if value != nil {
			values[i] = component.Some([]any{key, value})
		}
	}
	return component.OK(values)
}

func (h *host) setMany(c caller, b bucket, entries []any) any {
	return h.each(c, entries, func(i int) *abi.Error {
		entry := arg[[]any](entries, i)
		return h.set(c, b, arg[string](entry, 0), arg[[]byte](entry, 1))
	})
}

func (h *host) deleteMany(c caller, b bucket, keys []any) any {
	return h.each(c, keys, func(i int) *abi.Error { return h.remove(c, b, arg[string](keys, i)) })
}

// each calls do for each index of a list, in one transaction.
func (h *host) each(c caller, list []any, do func(i int) *abi.Error) any {
	if len(list) == 0 {
		return component.OK(nil)
	}
	if h.SQL == nil {
		return component.Failed(h.keyError(c, errNoDatabase))
	}
	err := h.SQL.Begin(c.ctx, c.Call, true)
	if err != nil {
		return component.Failed(h.keyError(c, err))
	}
	for i := range list {
		if err = do(i); err != nil {
			_ = h.SQL.Rollback(c.ctx, c.Call) // the end of the call does it otherwise
			return component.Failed(h.keyError(c, err))
		}
	}
	return h.keyResult(c, nil, h.SQL.Commit(c.ctx, c.Call))
}
