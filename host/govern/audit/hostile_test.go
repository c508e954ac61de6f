package audit_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/govern/audit"
)

// TestHostileStore: whatever somebody without the key writes into the tables, it is found, or it changes nothing.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	const hash = "encode(sha256(line), 'hex')"
	for name, statement := range map[string]string{
		"a record that was added":              `INSERT INTO audit_record SELECT seq + 1, time, replace(encode(line, 'escape'), '"seq":' || seq, '"seq":' || seq + 1)::bytea FROM audit_record ORDER BY seq DESC LIMIT 1`,
		"a record that was added and the head": `INSERT INTO audit_record SELECT 100, time, '{}'::bytea FROM audit_record WHERE seq = 1; UPDATE audit_head SET seq = 100`,
		"a copy of a record":                   `UPDATE audit_record SET line = (SELECT line FROM audit_record WHERE seq = 2) WHERE seq = 3`,
		"a record before the first":            `INSERT INTO audit_record SELECT 0, time, line FROM audit_record WHERE seq = 1`,
		"a record below zero":                  `INSERT INTO audit_record SELECT -9223372036854775807, time, line FROM audit_record WHERE seq = 1`,
		"a record of nothing":                  `UPDATE audit_record SET line = '' WHERE seq = 3`,
		"a record of 8 MiB":                    `UPDATE audit_record SET line = line || repeat('x', 8388608)::bytea WHERE seq = 3`,
		"a record with a second line":          `UPDATE audit_record SET line = line || E'\\012'::bytea || line WHERE seq = 3`,
		"a record with blanks":                 `UPDATE audit_record SET line = line || ' '::bytea WHERE seq = 3`,
		"a record with a key twice":            `UPDATE audit_record SET line = replace(encode(line, 'escape'), '"type":', '"type":"x","type":')::bytea WHERE seq = 3`,
		"another user":                         `UPDATE audit_record SET line = replace(encode(line, 'escape'), '"type":', '"user":"ken","type":')::bytea WHERE seq = 3`,
		"all records":                          `DELETE FROM audit_record`,
		"all records and the head":             `DELETE FROM audit_record; DELETE FROM audit_head`,
		"the last record and the head's hash":  `DELETE FROM audit_record WHERE seq = (SELECT max(seq) FROM audit_record); UPDATE audit_head SET (seq, hash) = (SELECT seq, ` + hash + ` FROM audit_record ORDER BY seq DESC LIMIT 1)`,
		"the head's MAC":                       `UPDATE audit_head SET mac = repeat('0', length(mac))`,
		"no MAC":                               `UPDATE audit_head SET mac = ''`,
		"a MAC of 1 MiB":                       `UPDATE audit_head SET mac = repeat('A', 1048576)`,
		"a head of another number":             `UPDATE audit_head SET seq = seq - 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, postgrestest.Start(t))
			l := open(t, audit.Options{Store: s, Key: key})
			appendCalls(t, l, 6)
			change(t, s, statement)
			if report := verifyTable(t, s); report.OK() {
				t.Error("it is not found")
			}
			for _, err := range audit.NewTable(s, key).Read(t.Context(), &audit.Query{}) {
				if err != nil {
					break
				}
			}
			appendCalls(t, l, 1) // the log goes on, and says what it found
			if report := verifyTable(t, s); report.OK() && !strings.Contains(statement, "audit_head SET") {
				t.Error("it is not found after a record")
			}
		})
	}
	for name, statement := range map[string]string{
		"a count that keeps checkpoints away": `UPDATE audit_head SET unsigned = -9223372036854775808`,
		"a count that asks for one each time": `UPDATE audit_head SET unsigned = 9223372036854775806`,
		"times of records":                    `UPDATE audit_record SET time = -9223372036854775808`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, postgrestest.Start(t))
			l := open(t, audit.Options{Store: s, Key: key})
			appendCalls(t, l, 3)
			before := verifyTable(t, s).Signed
			change(t, s, statement)
			appendCalls(t, l, 3)
			if err := l.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			if report := verifyTable(t, s); !report.OK() || report.Signed <= before || report.Signed+1 < report.Last {
				t.Errorf("%+v", report)
			}
		})
	}
	for name, statement := range map[string]string{
		"a trigger that drops records": `CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
			CREATE TRIGGER drop_it BEFORE INSERT ON audit_record FOR EACH ROW EXECUTE FUNCTION drop_it()`,
		"a trigger that changes records": `CREATE FUNCTION change_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.line = ''{}''::bytea; RETURN NEW; END';
			CREATE TRIGGER change_it BEFORE INSERT ON audit_record FOR EACH ROW EXECUTE FUNCTION change_it()`,
		"a head below zero":         `UPDATE audit_head SET seq = -1`,
		"a count beyond a number":   `UPDATE audit_head SET seq = 9223372036854775807`,
		"another public key":        `UPDATE audit_head SET public = 'ed25519:AAAA'`,
		"a table that is gone":      `DROP TABLE audit_record`,
		"a column of another type":  `ALTER TABLE audit_record ALTER COLUMN line TYPE TEXT USING 'x'`,
		"a rule that drops records": `CREATE RULE nothing AS ON INSERT TO audit_record DO INSTEAD NOTHING`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, postgrestest.Start(t))
			l, err := audit.Open(&audit.Options{Store: s, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }() // which cannot write either
			appendCalls(t, l, 3)
			change(t, s, statement)
			err = l.Append(t.Context(), call("after"))
			if err == nil { // then it must be in the log, or missed
				err = l.Append(t.Context(), call("after"))
			}
			if err != nil {
				return // no record, no answer
			}
			report, err := audit.NewTable(s, key).Verify(t.Context(), nil)
			if err == nil && report.OK() {
				t.Errorf("%+v", report)
			}
		})
	}
}
