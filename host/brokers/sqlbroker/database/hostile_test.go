package database

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

// numbers is an infinite table.
const numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "

func TestForbidden(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	db := openTest(t, o)
	s := session(t, db)
	elsewhere := filepath.Join(t.TempDir(), "other.db")
	for _, sql := range []string{
		"ATTACH '" + elsewhere + "' AS other", "ATTACH ':memory:' AS m", "DETACH main",
		"VACUUM", "VACUUM INTO '" + elsewhere + "'",
		"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "SAVEPOINT a", "RELEASE a",
		"CREATE TEMP TABLE a (b)", "CREATE TEMP VIEW a AS SELECT 1", "CREATE TABLE temp.a (b)",
		"CREATE TEMP TRIGGER a AFTER INSERT ON item BEGIN SELECT 1; END",
		"CREATE VIRTUAL TABLE a USING fts5(b)", "CREATE VIRTUAL TABLE a USING rtree(b, c, d)",
		"CREATE VIRTUAL TABLE a USING json_each",
		"PRAGMA writable_schema = 1", "PRAGMA journal_mode = off", "PRAGMA synchronous = off",
		"PRAGMA max_page_count = 1000000",
		"PRAGMA temp_store_directory = '/'", "PRAGMA data_store_directory = '/'", "PRAGMA hard_heap_limit = 0",
		"PRAGMA mmap_size = 1000000000",
		"PRAGMA cache_size = 1000000", "PRAGMA query_only = 1", "PRAGMA foreign_keys = 0", "PRAGMA trusted_schema = 1",
		"PRAGMA user_version = 7",
		"PRAGMA wal_checkpoint", "PRAGMA locking_mode = exclusive", "PRAGMA main.page_size = 512",
		"PRAGMA database_list",
		"SELECT * FROM pragma_database_list", "SELECT file FROM pragma_database_list('x')",
		"UPDATE sqlite_schema SET sql = ''", "DELETE FROM sqlite_schema",
		"INSERT INTO sqlite_schema VALUES ('table', 'a', 'a', 0, 'x')",
		"DELETE FROM hako_migration", "UPDATE hako_migration SET checksum = ''",
		"INSERT INTO hako_migration VALUES (9, '', 0)",
		"DROP TABLE hako_migration", "ALTER TABLE hako_migration RENAME TO a",
		"ALTER TABLE item RENAME TO hako_migration",
		"CREATE TRIGGER a AFTER INSERT ON hako_migration BEGIN SELECT 1; END",
		"CREATE INDEX a ON HAKO_MIGRATION (step)",
		"SELECT load_extension('/lib/libc.so.6')", "SELECT readfile('/etc/passwd')", "SELECT writefile('/tmp/a', 'b')",
		"SELECT fts3_tokenizer('a')",
		"SELECT * FROM dbstat", "SELECT * FROM sqlite_dbpage",
	} {
		r := s.Query(t.Context(), statement(sql))
		if r.Error == nil {
			t.Errorf("%s is not refused: %v", sql, r.Rows)
		}
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("a file was made elsewhere")
	}
	s.must(t, "INSERT INTO item (name) VALUES ('it works still')")
}

// TestForbiddenWithin: triggers and views are authorized like other statements.
func TestForbiddenWithin(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.must(t, "CREATE TABLE a (b)")
	r := s.Exec(t.Context(), statement("CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM hako_migration; END"))
	if r.Error == nil {
		r = s.Exec(t.Context(), statement("INSERT INTO a VALUES (1)"))
	}
	wants(t, r.Error, abi.CodeNotGranted, "nothing else")
}

// TestHostStatementsAreNotLent: a plugin cannot run a statement that the host compiled without the authorizer.
func TestHostStatementsAreNotLent(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if err := s.Begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wants(t, s.Exec(t.Context(), statement("COMMIT")).Error, abi.CodeNotGranted, "nothing else")
	wants(t, s.Exec(t.Context(), statement("ROLLBACK")).Error, abi.CodeNotGranted, "nothing else")
	if err := s.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	wants(t, s.Exec(t.Context(), statement("BEGIN IMMEDIATE")).Error, abi.CodeNotGranted, "nothing else")
}

func TestRunaways(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"recursion": numbers + "SELECT count(*) FROM c",
		"recursion of sorting": "WITH RECURSIVE c(x) AS (SELECT 1 UNION SELECT x+1 FROM c ORDER BY 1 DESC) SELECT " +
			"count(*) FROM c",
		"a huge sort":     numbers + "SELECT x, randomblob(20) FROM c ORDER BY 2",
		"a sort of large": numbers + "SELECT randomblob(100000) AS y FROM c ORDER BY y",
		"groups":          numbers + "SELECT count(*) FROM c GROUP BY randomblob(20)",
		"distinct":        numbers + "SELECT count(DISTINCT randomblob(1000000)) FROM c",
		"a cross join": "WITH d(x) AS (SELECT value FROM json_each('[" + strings.Repeat("1,", 999) +
			"1]')) SELECT count(*) FROM d, d, d, d, d",
		"heavy functions": numbers + "SELECT sum(length(replace(hex(zeroblob(1000000)), '0', '11'))) FROM c",
		"many heavy functions": numbers + "SELECT " +
			strings.Repeat("length(replace(hex(zeroblob(2000000)), '00', '1')) + ", 60) + "0 FROM c",
		"patterns":      numbers + "SELECT sum(hex(zeroblob(2000000)) LIKE '%1%1%1%1%1%1%1') FROM c",
		"concatenation": numbers + "SELECT length(group_concat(x)) FROM c",
		"a window": numbers + "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND " +
			"UNBOUNDED FOLLOWING) FROM c",
		"writing": "INSERT INTO item (value) " + numbers + "SELECT randomblob(1000) FROM c",
		"JSON": numbers + "SELECT count(*) FROM c, json_each('[" +
			strings.Repeat("[1,2],", 20000) + "1]')",
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, table)
			o.Quota = 256 << 20
			db := openTest(t, o)
			s := session(t, db)
			const limit = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			start := time.Now()
			r := s.Query(ctx, statement(sql))
			took := time.Since(start)
			if r.Error == nil || r.Error.Code != abi.CodeTimeout && r.Error.Code != abi.CodeLimit {
				t.Errorf("got %+v", r.Error)
			}
			if took > limit+2*time.Minute { // generous for busy machines; a benchmark measures the time
				t.Errorf("it took %v", took)
			}
			if n := s.value(t, "SELECT count(*) FROM item"); n != int64(0) {
				t.Errorf("%v rows are left", n)
			}
		})
	}
}

// TestMemoryHogs is not parallel, because it measures the memory of the process.
func TestMemoryHogs(t *testing.T) {
	db := openTest(t, options(t, table))
	s := session(t, db)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, sql := range map[string]string{
		"zeroblob":      "SELECT zeroblob(1000000000)",
		"zeroblob, max": "SELECT zeroblob(9223372036854775807)",
		"randomblob":    "SELECT length(randomblob(1000000000))",
		"hex":           "SELECT length(hex(hex(hex(hex(randomblob(1000000))))))",
		"printf":        "SELECT length(printf('%.*c', 1000000000, 'x'))",
		"format width":  "SELECT length(format('%1000000000d', 1))",
		"replace":       "SELECT length(replace(hex(zeroblob(1000000)), '0', hex(zeroblob(1000))))",
		"concat": "SELECT length(group_concat(hex(zeroblob(1000000)))) FROM (" + numbers +
			"SELECT x FROM c LIMIT 1000)",
		"JSON":         numbers + "SELECT length(json_group_array(hex(zeroblob(1000000)))) FROM c",
		"many columns": "SELECT " + strings.Repeat("zeroblob(4000000), ", 100) + "1",
		"materialised": "WITH d AS MATERIALIZED (" + numbers +
			"SELECT zeroblob(1000000) AS z FROM c) SELECT count(*) FROM d, d AS e WHERE d.z = e.z",
		"expressions": "SELECT " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000),
		"depth":       "SELECT " + strings.Repeat("1+(", 50000) + "1" + strings.Repeat(")", 50000),
		"negations":   "SELECT " + strings.Repeat("-", 1) + strings.Repeat(" NOT ", 40000) + "1",
		"subqueries":  strings.Repeat("SELECT * FROM (", 15000) + "SELECT 1" + strings.Repeat(")", 15000),
		"nested CTEs": strings.Repeat("WITH a AS (", 10000) + "SELECT 1" + strings.Repeat(") SELECT * FROM a", 10000),
		"compounds":   "SELECT 1" + strings.Repeat(" UNION SELECT 1", 10000),
		"terms":       "SELECT 1" + strings.Repeat("+1", 100000),
		"joins":       "SELECT count(*) FROM item" + strings.Repeat(", item", 100),
		"deep JSON":   "SELECT json('" + strings.Repeat("[", 100000) + "')",
		"views":       "SELECT * FROM v40",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "views" {
				s.must(t, "CREATE VIEW v0 AS SELECT 1 AS a")
				for i := range 40 {
					s.must(t, fmt.Sprintf("CREATE VIEW v%d AS SELECT x.a FROM v%d AS x, v%d AS y", i+1, i, i))
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := s.Query(ctx, statement(sql))
			if r.Error == nil {
				t.Errorf("it gives %d rows", len(r.Rows))
			}
			if n := s.value(t, "SELECT 1"); n != int64(1) {
				t.Error(n)
			}
		})
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 512<<20 {
		t.Errorf("the process took %d MiB more", grown>>20)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	o.Quota = 2 << 20
	db := openTest(t, o)
	s := session(t, db)
	var r *abi.SQLResult
	n := 0
	for ; n < 100; n++ {
		if r = s.Exec(t.Context(), statement("INSERT INTO item (value) VALUES (zeroblob(100000))")); r.Error != nil {
			break
		}
	}
	wants(t, r.Error, abi.CodeLimit, "quota of 2097152 bytes")
	if n < 15 {
		t.Errorf("only %d rows fit", n)
	}
	if size := diskUse(t, o.Path); size > 3*o.Quota {
		t.Errorf("%d bytes on disk", size)
	}
	s.must(t, "DELETE FROM item WHERE id < 5")
	s.must(t, "INSERT INTO item (value) VALUES (zeroblob(100000))")
}

// TestLogIsBounded: a long read keeps writes in the log, whose size is limited.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	o.Quota = 2 << 20
	db := openTest(t, o)
	s, reader := session(t, db), session(t, db)
	s.must(t, "INSERT INTO item (value) VALUES (zeroblob(1500000))")
	if err := reader.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	reader.value(t, "SELECT count(*) FROM item")
	var r *abi.SQLResult
	for range 100 {
		if r = s.Exec(t.Context(), statement("UPDATE item SET value = randomblob(1500000)")); r.Error != nil {
			break
		}
	}
	wants(t, r.Error, abi.CodeBusy, "a long read prevents")
	if size := diskUse(t, o.Path); size > 3*o.Quota+20<<20 {
		t.Errorf("%d bytes on disk", size)
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.must(t, "UPDATE item SET value = randomblob(1500000)")
	}
	if size := diskUse(t, o.Path); size > 3*o.Quota+20<<20 {
		t.Errorf("%d bytes on disk", size)
	}
}

func TestTemporaryFilesAreBounded(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	o.Quota = 2 << 20
	db := openTest(t, o)
	s := session(t, db)
	group := "SELECT count(*) FROM (" + numbers + "SELECT randomblob(1000) AS y FROM c LIMIT %d) GROUP BY y"
	r := s.Query(t.Context(), statement(fmt.Sprintf(group, 100000)))
	wants(t, r.Error, abi.CodeLimit, "split it")
	// Each is within the limit, but not all together.
	r = s.Query(t.Context(), statement("SELECT 1 FROM "+strings.TrimSuffix(strings.Repeat("("+fmt.Sprintf(group,
		1400)+"), ", 4), ", ")+" LIMIT 1"))
	wants(t, r.Error, abi.CodeLimit, "split it")
	for range 10 { // closed files do not count
		s.must(t, fmt.Sprintf(group, 1400))
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(o.Path), "tmp-*")); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// diskUse returns the size of the files in the database's directory.
func diskUse(t *testing.T, path string) (size int64) {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := file.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// FuzzStatement runs any text. It must end in time and must not change migrations and rules.
func FuzzStatement(f *testing.F) {
	for _, seed := range []string{
		"SELECT * FROM item", "INSERT INTO item (name) VALUES (?) RETURNING id", "PRAGMA table_info(item)",
		"DROP TABLE item", "VACUUM", "ATTACH 'x' AS y",
		"CREATE TRIGGER t AFTER INSERT ON item BEGIN DELETE FROM hako_migration; END",
		"SELECT json_group_array(name) OVER (ORDER BY id) FROM item",
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c",
		"EXPLAIN SELECT 1; SELECT 2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		s := newSession(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for _, run := range []func(context.Context, *abi.SQLStatement) *abi.SQLResult{s.Query, s.Exec} {
			if r := run(ctx, statement(sql)); r.Error != nil && (r.Error.Code == "" || r.Error.Message == "") {
				t.Errorf("%q gives the error %+v", sql, r.Error)
			}
		}
		if n := s.value(t, "SELECT count(*) FROM hako_migration WHERE step = 1"); n != int64(1) {
			t.Errorf("%q changes the migrations", sql)
		}
		wants(t, s.Exec(t.Context(), statement("VACUUM")).Error, abi.CodeNotGranted,
			"nothing else: VACUUM is not possible here")
		wants(t, s.Exec(t.Context(), statement(" vacuum into '/tmp/x'")).Error, abi.CodeNotGranted,
			"nothing else: VACUUM is not possible here")
	})
}
