//go:build unix

package sqlbroker

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hako-run/hako/dev/kit/postgrestest"
)

// TestHostilePages: manipulated pages are an error of that plugin's database only.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	const mine = "database = (SELECT min(name) FROM plugin_database)"
	for name, statement := range map[string]string{
		"a page of nothing":        "UPDATE plugin_page SET data = '' WHERE " + mine,
		"a page that is too short": "UPDATE plugin_page SET data = substring(data from 1 for 100) WHERE " + mine,
		"a page that is too long":  "UPDATE plugin_page SET data = data || data WHERE " + mine,
		"a page of 16 MiB": "UPDATE plugin_page SET data = decode(repeat('00', 16777216), 'hex') " +
			"WHERE number = 1 AND " + mine,
		"pages of zeros": "UPDATE plugin_page SET data = decode(repeat('00', 4096), 'hex') WHERE " +
			mine,
		"pages of ones": "UPDATE plugin_page SET data = decode(repeat('ff', 4096), 'hex') WHERE " +
			mine,
		"pages backwards": "UPDATE plugin_page SET data = reverse(encode(data, 'hex'))::text::bytea " +
			"WHERE " + mine,
		"no pages":               "DELETE FROM plugin_page WHERE " + mine,
		"the first page missing": "DELETE FROM plugin_page WHERE number = 1 AND " + mine,
		"a page with a number below one": "INSERT INTO plugin_page SELECT database, -7, version, data FROM " +
			"plugin_page WHERE number = 1 AND " + mine,
		"a page far beyond the end": "INSERT INTO plugin_page SELECT database, 9223372036854775807, version, " +
			"data FROM plugin_page WHERE number = 1 AND " + mine,
		"a length below zero": "UPDATE plugin_database SET length = -1 WHERE name = (SELECT min(name) " +
			"FROM plugin_database)",
		"a length beyond memory": "UPDATE plugin_database SET length = 9223372036854775807 WHERE name = " +
			"(SELECT min(name) FROM plugin_database)",
		"a version below zero": "UPDATE plugin_database SET version = -5 WHERE name = (SELECT min(name) " +
			"FROM plugin_database)",
		"a version beyond numbers": "UPDATE plugin_database SET version = 9223372036854775807 WHERE name = " +
			"(SELECT min(name) FROM plugin_database)",
		"another page size": "UPDATE plugin_page SET data = set_byte(set_byte(data, 16, 2), 17, 0) " +
			"WHERE number = 1 AND " + mine,
		"a header of another format": "UPDATE plugin_page SET data = set_byte(set_byte(data, 18, 9), 19, 9) " +
			"WHERE number = 1 AND " + mine,
		"a tree that leads to itself": "UPDATE plugin_page SET data = (SELECT data FROM plugin_page WHERE number " +
			"= 1 AND " + mine + ") WHERE " + mine,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := postgrestest.Start(t)
			brokers := replicas(t, url, 2)
			newGuest(t, brokers[0], "Acme").wants("exec", `{"sql":"INSERT INTO item VALUES (1, 'mine')"}`,
				`"changes":1`)
			newGuest(t, brokers[0], "other").wants("exec", `{"sql":"INSERT INTO item VALUES (1, 'theirs')"}`,
				`"changes":1`)
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			for _, b := range brokers { // one has cached pages, the other has none
				for _, sql := range []string{"SELECT * FROM item", "PRAGMA integrity_check",
					"INSERT INTO item (value) VALUES ('x')", "DELETE FROM item"} {
					got := newGuest(t, b, "Acme").send("query", `{"sql":"`+sql+`"}`, "")
					if strings.Contains(got, "theirs") || strings.Contains(got, "panic") ||
						strings.Contains(got, "goroutine") {
						t.Errorf("%s gives %s", sql, got)
					}
				}
				newGuest(t, b, "other").wants("query", `{"sql":"SELECT value FROM item"}`, `[["theirs"]]`)
			}
		})
	}
}
