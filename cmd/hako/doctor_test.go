package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/dirtest"
	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/app/doctor"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "")
	invoke(t, dir, "doctor").want(t, exitOK, "commands: ", "ok       configuration: "+filepath.Join(dir, "hako.yaml"),
		"ok       policy: there is no policy file",
		"ok       store: "+filepath.Join(dir, "hako.store"), "ok       memory: plugins may use 2GiB together",
		"warning  plugin probe: pending", "-> hako plugin approve probe", "0 in service")
	if _, err := os.Stat(filepath.Join(dir, "hako.store")); err == nil {
		t.Error("looking makes the store")
	}
	var findings []doctor.Finding
	o := invoke(t, approved(t, ""), "doctor", "--json")
	if err := json.Unmarshal([]byte(o.stdout), &findings); err != nil || o.code != exitOK ||
		!strings.Contains(o.stdout, `"message": "1 in service"`) {
		t.Errorf("%v: %s", err, o)
	}
}

// TestLooksChangeNothing: commands that look leave each file and folder as it is, with its times.
func TestLooksChangeNothing(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]func() string{
		"nothing is there": func() string { return workplace(t, "") },
		"used": func() string {
			dir := approved(t, "")
			invoke(t, dir, "call", "probe_echo", `{"text":"a"}`).want(t, exitOK)
			return dir
		},
		"an update waits": func() string {
			dir := approved(t, "")
			put(t, filepath.Join(dir, "plugins", "probe.wasm"), probePlugin(t, asking("{log: true}")...))
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dir()
			before := dirtest.List(t, dir)
			for _, command := range [][]string{{"doctor"}, {"config", "check"}, {"config", "show"}} {
				outcome := invoke(t, dir, command...)
				if after := dirtest.List(t, dir); after != before {
					t.Errorf("%v changed\n%sto\n%s%s", command, before, after, outcome)
				}
			}
		})
	}
}

// TestLooksChangeNoDatabase: commands that look create no tables in a database that no hako has used, and add no rows
// to one in use.
func TestLooksChangeNoDatabase(t *testing.T) {
	t.Parallel()
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("used: %t", used), func(t *testing.T) {
			t.Parallel()
			url := postgrestest.Start(t)
			dir := over(t, url, "")
			if used {
				invoke(t, dir, "approvals").want(t, exitOK)
			}
			put(t, filepath.Join(dir, "hako.consents.yaml"), []byte("plugins: {}\n"))
			before := tables(t, url)
			for _, command := range [][]string{{"doctor"}, {"config", "check"}, {"config", "show"}} {
				invoke(t, dir, command...).want(t, exitOK)
				if after := tables(t, url); after != before {
					t.Errorf("%v changed the tables\n%s\nto\n%s", command, before, after)
				}
			}
			invoke(t, dir, "doctor").want(t, exitOK, "PostgreSQL", "replicas: 0")
		})
	}
}

// tables lists the tables of a database with their numbers of rows and the last transactions that wrote one.
func tables(t *testing.T, url string) string {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var names string
	if err := db.QueryRowContext(t.Context(), "SELECT coalesce(string_agg(schemaname || '.' || tablename, ' ' "+
		"ORDER BY schemaname, tablename), '') FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', "+
		"'information_schema')").Scan(&names); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for name := range strings.FieldsSeq(names) {
		var rows, last int64
		if err := db.QueryRowContext(t.Context(), "SELECT count(*), coalesce(max(xmin::text::bigint), 0) FROM "+name).
			Scan(&rows, &last); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&list, "%s: %d rows, transaction %d\n", name, rows, last)
	}
	return list.String()
}

func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(dir string)
		want  string
	}{
		"configuration": {func(dir string) { put(t, filepath.Join(dir, "hako.yaml"), []byte("plugin: [1")) },
			"error    configuration: "},
		"policy": {func(dir string) { put(t, filepath.Join(dir, "hako.policy.yaml"), []byte("rulez: []")) },
			"error    policy: "},
		"plugin": {func(dir string) { put(t, filepath.Join(dir, "plugins", "bad.wasm"), []byte("no wasm")) },
			"error    plugin "},
		"store": {func(dir string) { put(t, filepath.Join(dir, "hako.store"), []byte("a file")) },
			"error    store: "},
		"logins": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("console: {enabled: true, address: '0.0.0.0:1'}"))
		}, "error    configuration: console: at the address 0.0.0.0:1 logins would cross the network in the clear"},
		"certificate": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("http: {tls: {cert: missing, key: missing}}"))
		}, "error    configuration: http.tls: "},
		"upstreams": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("upstreams: servers.json"))
			put(t, filepath.Join(dir, "servers.json"), []byte("{"))
		}, "error    upstreams: "},
		"secret": {func(dir string) {
			put(t, filepath.Join(dir, "hako.yaml"), []byte("credentials: {kot: {token: {file: missing}}}"))
		}, "error    secret credentials.kot.token: the file " + os.TempDir()},
		"token of Slack": {func(dir string) {
			put(t, filepath.Join(dir, "token"), []byte("xapp-1"))
			put(t, filepath.Join(dir, "hako.yaml"),
				[]byte("slack: {workspaces: [{name: w, botToken: {file: token}, signingSecret: {file: token}}]}"))
		}, "error    secret slack.workspaces[0].botToken: botToken begins with xoxb-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := workplace(t, "")
			test.spoil(dir)
			invoke(t, dir, "doctor").want(t, exitFailed, test.want, "->")
		})
	}
}

// TestDoctorAsksTheServer: a hako that serves is asked for what its configuration does not tell.
func TestDoctorAsksTheServer(t *testing.T) {
	t.Parallel()
	// nobody listens at port 1, which may not be said of the default address
	invoke(t, approved(t, "locale: en\nhttp: {address: '127.0.0.1:1'}\n"), "doctor").want(t, exitOK, "hako serve does not run at")
	dir := approved(t, "locale: en\n")
	s := serve(t, dir)
	add(t, filepath.Join(dir, "hako.yaml"), "http: {address: '"+strings.TrimPrefix(s.base(), "http://")+"'}\n")
	invoke(t, dir, "doctor").want(t, exitOK, "server: hako "+thisBuild().Version+" runs", "the store answers in")
	invoke(t, dir, "doctor", "--json").want(t, exitOK, `"check": "server"`)
}
