package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hako-run/hako/host/brokers/sqlbroker/database"
)

func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	invoke(t, dir, "backup", "saved").want(t, exitUsage, "hako.store: there is no database to copy")
	for _, file := range []string{"@default.db", "%41cme.db"} {
		path := filepath.Join(dir, "hako.store", "plugins", "notes", file)
		db, err := database.Open(t.Context(), database.Options{Path: path, Migrations: []string{"CREATE TABLE a (b)"},
			Quota: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() // as while hako serves
	}
	invoke(t, dir, "backup", "saved").want(t, exitOK, "plugin notes  ", "plugin notes, tenant Acme ", "audit log  ",
		"Wrote 2 databases, ", "saved")
	invoke(t, dir, "backup", "saved").want(t, exitUsage, "name a new directory")
	invoke(t, dir, "restore", "saved").want(t, exitUsage, "stop hako and move it away first")
	if err := os.Rename(filepath.Join(dir, "hako.store"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	invoke(t, dir, "restore", "saved").want(t, exitOK, "plugin notes, tenant Acme ", "Restored 2 databases, ",
		"hako.store")
	if _, err := os.Stat(filepath.Join(dir, "hako.store", "plugins", "notes", "%41cme.db")); err != nil {
		t.Error(err)
	}
	invoke(t, dir, "audit", "verify").want(t, exitOK, "The log is intact")
	invoke(t, dir, "audit", "tail").want(t, exitOK, "backup.create", "backup.restore")
	invoke(t, dir, "restore", "old").want(t, exitUsage, "old is not a complete backup")
}
