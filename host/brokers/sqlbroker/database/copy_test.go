package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	db := openTest(t, o)
	s := session(t, db)
	s.must(t, "INSERT INTO item (name) VALUES ('a')")
	if err := s.Begin(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	s.must(t, "INSERT INTO item (name) VALUES ('not yet')")
	to := filepath.Join(t.TempDir(), "copy ?#'.db")
	if err := Copy(t.Context(), o.Path, to); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(filepath.Dir(to)); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	o.Path = to
	if n := session(t, openTest(t, o)).value(t, "SELECT group_concat(name) FROM item"); n != "a" {
		t.Errorf("the copy holds %v", n)
	}
	if err := Copy(t.Context(), o.Path, to); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file that is there: %v", err)
	}
}

// TestCopyWhileWriting: a copy is consistent while others write.
func TestCopyWhileWriting(t *testing.T) {
	t.Parallel()
	o := options(t, "CREATE TABLE a (x); CREATE TABLE b (x); INSERT INTO a VALUES (0); INSERT INTO b VALUES (0)",
		"CREATE TABLE filler AS SELECT zeroblob(1000000) AS x")
	db := openTest(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() {
		s := db.Session(nil)
		defer s.Close()
		for ctx.Err() == nil && s.Begin(ctx, true) == nil {
			s.Exec(ctx, statement("UPDATE a SET x = x + 1"))
			s.Exec(ctx, statement("UPDATE b SET x = x + 1"))
			_ = s.Commit(ctx)
		}
	})
	dir := t.TempDir()
	for _, name := range []string{"1.db", "2.db", "3.db"} {
		copied := o
		copied.Path = filepath.Join(dir, name)
		if err := Copy(t.Context(), o.Path, copied.Path); err != nil {
			t.Fatal(err)
		}
		if difference := session(t, openTest(t, copied)).value(t,
			"SELECT a.x - b.x FROM a, b"); difference != int64(0) {
			t.Errorf("%s is of two moments", name)
		}
	}
}

func TestCopyFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.db")
	if err := os.WriteFile(damaged, []byte(strings.Repeat("damage", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "to.db")
	for from, want := range map[string]string{damaged: "not a database",
		filepath.Join(dir, "none.db"): "no such file"} {
		if err := Copy(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := os.Stat(to); err == nil {
			t.Error("something is left behind")
		}
	}
}
