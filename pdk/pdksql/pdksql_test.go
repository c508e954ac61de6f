package pdksql_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/pdksqltest"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdksql"
	"github.com/hako-run/hako/pdk/pdktest"
)

// database returns a context with a database and a table.
func database(t *testing.T) context.Context {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	const manifest = "permissions:\n  sql:\n    migrations: ['CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT " +
		"UNIQUE)']\n    reason: r\n"
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	pdksqltest.Database(t, path)
	return pdktest.Context(t, pdktest.Options{})
}

func hasCode(t *testing.T, err error, code, text string) {
	t.Helper()
	var failure *abi.Error
	if !errors.As(err, &failure) || failure.Code != code || !strings.Contains(failure.Message, text) {
		t.Errorf("got %v, want %s: %s", err, code, text)
	}
}

type (
	status string
	level  uint8
	flag   bool
	ratio  float32
	bytes  []byte
)

func TestParameters(t *testing.T) {
	t.Parallel()
	ctx := database(t)
	seven, text := 7, "x"
	var nothing *int
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("JST", 9*3600))
	for name, test := range map[string]struct{ arg, want any }{
		"nil": {nil, nil}, "int": {seven, int64(7)}, "int8": {int8(-7), int64(-7)},
		"uint64": {uint64(math.MaxInt64), int64(math.MaxInt64)},
		"true":   {true, int64(1)}, "false": {false, int64(0)}, "float32": {float32(0.5), 0.5}, "float64": {2.0, 2.0},
		"string": {"é", "é"},
		"blob":   {[]byte{0, 1}, []byte{0, 1}}, "no bytes": {[]byte{}, []byte{}}, "nil bytes": {[]byte(nil), nil},
		"JSON": {json.RawMessage(`{"a":1}`), `{"a":1}`}, "nil JSON": {json.RawMessage(nil), nil},
		"time":    {noon, "2026-11-20T12:00:00+09:00"},
		"pointer": {&text, "x"}, "nil pointer": {nothing, nil}, "pointer to time": {&noon, "2026-11-20T12:00:00+09:00"},
		"nil time":     {(*time.Time)(nil), nil},
		"named string": {status("open"), "open"}, "named uint": {level(3), int64(3)},
		"named bool":  {flag(true), int64(1)},
		"named float": {ratio(0.25), 0.25}, "named bytes": {bytes{7}, []byte{7}},
	} {
		rows, err := pdksql.Query(ctx, "SELECT ?", test.arg)
		if err != nil || !reflect.DeepEqual(rows.Values[0][0], test.want) {
			t.Errorf("%s: got %#v, %v, want %#v", name, rows, err, test.want)
		}
	}
	for name, test := range map[string]struct {
		arg  any
		want string
	}{
		"uint64": {uint64(math.MaxInt64 + 1), "parameter 2: 9223372036854775808 is more than"},
		"struct": {struct{}{}, "parameter 2: a struct {} is not an SQL value"},
		"slice":  {[]string{"a"}, "parameter 2: a []string is not an SQL value"},
		"map":    {map[string]int{}, "parameter 2: a map[string]int is not an SQL value"},
	} {
		_, err := pdksql.Exec(ctx, "SELECT ?, ?", 1, test.arg)
		t.Run(name, func(t *testing.T) { hasCode(t, err, abi.CodeInvalid, test.want) })
	}
}

type base struct {
	ID int64 `json:"id"`
}

type note struct {
	base
	Text   status          `json:"text,omitempty"`
	Done   bool            `json:"done"`
	Level  *level          `json:"level"`
	Ratio  float64         `json:"ratio"`
	At     time.Time       `json:"at"`
	Data   json.RawMessage `json:"data"`
	Image  []byte          `json:"image"`
	Any    any             `json:"any"`
	Unread string          `json:"-"`
	Plain  string
}

func TestSelect(t *testing.T) {
	t.Parallel()
	ctx := database(t)
	const columns = `SELECT ? AS id, 'x' AS text, ? AS done, ? AS level, ? AS ratio, '2026-11-20T12:00:00Z' AS at, '{"a":[1]}' AS data, x'00ff' AS image, ? AS "any", 'p' AS Plain`
	got, err := pdksql.Select[note](ctx, columns, int64(math.MaxInt64), 1, 200, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	high := level(200)
	want := note{base{math.MaxInt64}, "x", true, &high, 3, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		json.RawMessage(`{"a":[1]}`), []byte{0, 255}, nil, "", "p"}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	got, err = pdksql.Select[note](ctx, "SELECT NULL AS level, 1.5 AS \"any\" WHERE 1")
	if err != nil || got[0].Level != nil || got[0].Any != 1.5 {
		t.Errorf("got %+v, %v", got, err)
	}
	if ids, err := pdksql.Select[int](ctx, "SELECT value FROM json_each('[3,1,2]') ORDER BY value"); err != nil ||
		!reflect.DeepEqual(ids, []int{1, 2, 3}) {
		t.Errorf("got %v, %v", ids, err)
	}
	if times, err := pdksql.Select[time.Time](ctx, "SELECT '2026-11-20T12:00:00Z'"); err != nil ||
		times[0].Year() != 2026 {
		t.Errorf("got %v, %v", times, err)
	}
	if none, err := pdksql.Select[note](ctx, "SELECT id FROM note"); err != nil || none == nil || len(none) != 0 {
		t.Errorf("got %#v, %v", none, err)
	}
}

func TestSelectRefuses(t *testing.T) {
	t.Parallel()
	ctx := database(t)
	for query, want := range map[string]string{
		"SELECT 1 AS other":                   `the column "other" has no field in pdksql_test.note`,
		"SELECT 'x' AS Unread":                `the column "Unread" has no field`,
		"SELECT NULL AS done":                 "row 1, column done: is NULL, which a bool cannot hold",
		"SELECT 2 AS done":                    "a bool cannot hold 2",
		"SELECT 256 AS level":                 "a pdksql_test.level cannot hold 256",
		"SELECT -1 AS level":                  "a pdksql_test.level cannot hold -1",
		"SELECT 1.5 AS id":                    "a int64 cannot hold 1.5",
		"SELECT '1' AS id":                    "a int64 cannot hold text",
		"SELECT 1 AS text":                    "a pdksql_test.status cannot hold 1",
		"SELECT x'00' AS text":                "cannot hold a blob of 1 bytes",
		"SELECT 'x' AS image":                 "cannot hold text",
		"SELECT '{' AS data":                  "is not JSON",
		"SELECT 'noon' AS at":                 "column at: parsing time",
		"SELECT 1 AS done UNION ALL SELECT 7": "row 2, column done",
	} {
		_, err := pdksql.Select[note](ctx, query)
		t.Run(query, func(t *testing.T) { hasCode(t, err, abi.CodeInvalid, want) })
	}
	_, err := pdksql.Select[int](ctx, "SELECT 1, 2")
	hasCode(t, err, abi.CodeInvalid, "a int takes one column, and the statement gives 2")
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	ctx := database(t)
	count := func() int {
		t.Helper()
		n, err := pdksql.Select[int](ctx, "SELECT count(*) FROM note")
		if err != nil {
			t.Fatal(err)
		}
		return n[0]
	}
	insert := func(ctx context.Context) error {
		_, err := pdksql.Exec(ctx, "INSERT INTO note (text) VALUES (hex(randomblob(8)))")
		return err
	}
	if err := pdksql.Transaction(ctx, insert); err != nil || count() != 1 {
		t.Errorf("%v, %d rows", err, count())
	}
	own := errors.New("own")
	err := pdksql.Transaction(ctx, func(ctx context.Context) error { return errors.Join(insert(ctx), own) })
	if !errors.Is(err, own) || count() != 1 {
		t.Errorf("%v, %d rows after an error", err, count())
	}
	func() {
		defer func() {
			if cause := recover(); cause != "stop" {
				t.Errorf("the panic is %v", cause)
			}
		}()
		_ = pdksql.Transaction(ctx, func(ctx context.Context) error {
			_ = insert(ctx)
			panic("stop")
		})
	}()
	if count() != 1 {
		t.Errorf("%d rows after a panic", count())
	}
	err = pdksql.Transaction(ctx, func(ctx context.Context) error { return pdksql.Transaction(ctx, insert) })
	hasCode(t, err, abi.CodeInvalid, "already open")
	hasCode(t, pdksql.ReadTransaction(ctx, insert), abi.CodeInvalid, "is read-only")
	if err := pdksql.Transaction(ctx, insert); err != nil || count() != 2 {
		t.Errorf("%v, %d rows", err, count())
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	ctx := database(t)
	_, err := pdksql.Exec(ctx, "INSERT INTO note (text) VALUES ('a'), ('a')")
	hasCode(t, err, abi.CodeConflict, "UNIQUE constraint failed: note.text")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = pdksql.Query(canceled, "SELECT 1")
	hasCode(t, err, abi.CodeCanceled, "canceled")
	_, err = pdksql.Query(t.Context(), "SELECT 1")
	hasCode(t, err, abi.CodeNotGranted, "pdksqltest.Database")
	hasCode(t, pdksql.Transaction(t.Context(), nil), abi.CodeNotGranted, "pdksqltest.Database")
}
