package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
)

// overPostgres is a workplace whose store is a database.
func overPostgres(t *testing.T, more string) (dir string) {
	t.Helper()
	return over(t, postgrestest.Start(t), more)
}

// over is a workplace whose store is that database.
func over(t *testing.T, where, more string) (dir string) {
	t.Helper()
	keys := t.TempDir()
	for _, name := range []string{"audit.key", "secrets.key"} {
		put(t, filepath.Join(keys, name), []byte("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"))
	}
	return workplace(t, fmt.Sprintf("store: %q\naudit: {key: {file: %q}}\nsecrets: {key: {file: %q}}\n%s",
		where, filepath.Join(keys, "audit.key"), filepath.Join(keys, "secrets.key"), more))
}

// TestCommandsOverPostgres: what operators do has no other result where the store is a database.
func TestCommandsOverPostgres(t *testing.T) {
	t.Parallel()
	dir := overPostgres(t, "")
	invoke(t, dir, "call", "probe_echo", `{"text":"x"}`).want(t, exitNotAllowed, "plugin probe is new. To approve it: hako plugin approve probe")
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK,
		"Approved; recorded in consents in the store postgres://")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "probe", "active")
	invoke(t, dir, "call", "probe_echo", `{"text":"hello"}`).want(t, exitOK, "hello")
	invoke(t, dir, "audit", "tail").want(t, exitOK, "plugin.approve probe", "probe/probe_echo")
	invoke(t, dir, "audit", "query", "--type", "tools/call", "--outcome", "ok").want(t, exitOK, "probe/probe_echo")
	invoke(t, dir, "audit", "export", "--format", "cef").want(t, exitOK, "CEF:0|hako")
	invoke(t, dir, "audit", "verify").want(t, exitOK, "postgres://", "The log is intact")
	invoke(t, dir, "approvals").want(t, exitOK)
	invoke(t, dir, "plugin", "revoke", "probe").want(t, exitOK, "Revoked")
	invoke(t, dir, "plugin", "list").want(t, exitOK, "probe", "revoked")
	invoke(t, dir, "doctor").want(t, exitOK, "database", "PostgreSQL")
	invoke(t, dir, "config", "show").want(t, exitOK, "postgres://")
	if _, err := os.Stat(filepath.Join(dir, "hako.store")); !os.IsNotExist(err) {
		t.Errorf("there is a directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "hako.consents.yaml")); !os.IsNotExist(err) {
		t.Errorf("there is a consents file: %v", err)
	}
}

// TestPasswordsAreNotShown: neither by the configuration nor by errors.
func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"postgres://hako:s3cr3t@127.0.0.1:1/hako?connect_timeout=1", "postgres://hako:s3cr3t%zz@127.0.0.1:1/hako"} {
		dir := workplace(t, fmt.Sprintf("store: %q\n", where))
		for _, args := range [][]string{{"config", "show"}, {"approvals"}, {"doctor"}, {"audit", "tail"}, {"call", "probe_echo", "{}"}, {"plugin", "approve", "probe", "--yes"}} {
			if o := invoke(t, dir, args...); strings.Contains(o.stdout+o.stderr, "s3cr3t") {
				t.Errorf("hako %s shows it: %s%s", strings.Join(args, " "), o.stdout, o.stderr)
			}
		}
	}
}

// TestKeysThatReplicasShare: without them nothing begins, and the message says what to do.
func TestKeysThatReplicasShare(t *testing.T) {
	t.Parallel()
	dir := workplace(t, fmt.Sprintf("store: %q\n", postgrestest.Start(t)))
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitUsage, "set audit.key", "openssl rand -base64 32")
	invoke(t, dir, "doctor").want(t, exitFailed, "set audit.key", "set secrets.key")
}
