package backup_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/app/backup"
	"github.com/hako-run/hako/host/govern/audit"
)

type list struct {
	Format  int           `json:"format"`
	Created time.Time     `json:"created"`
	Files   []backup.File `json:"files"`
}

// forge changes the list of a backup, and writes it anew.
func forge(t *testing.T, dir string, change func(*list)) {
	t.Helper()
	name := filepath.Join(dir, "backup.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l := new(list)
	if err := json.Unmarshal(text, l); err != nil {
		t.Fatal(err)
	}
	change(l)
	if text, err = json.Marshal(l); err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// listed writes a file into a backup and into its list, with a checksum that is right.
func listed(t *testing.T, dir, path, content string) {
	t.Helper()
	name := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(content))
	forge(t, dir, func(l *list) {
		for i := range l.Files {
			if l.Files[i].Path == path {
				l.Files[i].Bytes, l.Files[i].SHA256 = int64(len(content)), hex.EncodeToString(sum[:])
				return
			}
		}
		l.Files = append(l.Files, backup.File{Path: path, Bytes: int64(len(content)),
			SHA256: hex.EncodeToString(sum[:])})
	})
}

// replaced puts something else in the place of a backup's file.
func replaced(path string, put func(name string) error) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		name := filepath.Join(dir, filepath.FromSlash(path))
		err := os.RemoveAll(name)
		if err == nil {
			err = put(name)
		}
		if err != nil {
			testprogram.Missing(t, err.Error())
		}
	}
}

// TestHostileBackups restores backups that somebody made or changed. None of them leaves anything behind.
func TestHostileBackups(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	cases := map[string]func(*testing.T, string){
		"a link to another file": replaced("hako.db", func(name string) error {
			return os.Symlink(filepath.Join(data, "secrets.key"), name)
		}),
		"a link to a file of the backup": replaced("hako.db", func(name string) error {
			return os.Symlink("plugins/notes/acme.db", name)
		}),
		"a link to the same content": replaced("hako.db", func(name string) error {
			outside := filepath.Join(t.TempDir(), "x")
			content, err := os.ReadFile(filepath.Join(data, "hako.db"))
			return errors.Join(err, os.WriteFile(outside, content, 0o600), os.Symlink(outside, name))
		}),
		"a link to a device": replaced("hako.db", func(name string) error { return os.Symlink("/dev/zero", name) }),
		"a link to itself":   replaced("hako.db", func(name string) error { return os.Symlink("hako.db", name) }),
		"a directory":        replaced("hako.db", func(name string) error { return os.Mkdir(name, 0o700) }),
		"a folder that is a link": replaced("plugins/notes", func(name string) error {
			return os.Symlink(filepath.Join(data, "plugins", "notes"), name)
		}),
		"a list that is a link": replaced("backup.json", func(name string) error {
			return os.Symlink("/dev/zero", name)
		}),
		"a list that is a directory": replaced("backup.json", func(name string) error { return os.Mkdir(name, 0o700) }),
		"a sparse file of a terabyte": replaced("hako.db", func(name string) error {
			return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 1<<40))
		}),
		"a byte more": func(t *testing.T, dir string) {
			content, _ := os.ReadFile(filepath.Join(dir, "hako.db"))
			_ = os.WriteFile(filepath.Join(dir, "hako.db"), append(content, 0), 0o600)
		},
		"a byte changed": func(t *testing.T, dir string) {
			content, _ := os.ReadFile(filepath.Join(dir, "hako.db"))
			content[len(content)-1] ^= 1
			_ = os.WriteFile(filepath.Join(dir, "hako.db"), content, 0o600)
		},
		"a damaged database": func(t *testing.T, dir string) {
			content, _ := os.ReadFile(filepath.Join(dir, "hako.db"))
			for i := 100; i < len(content); i += 7 {
				content[i] = 0xff
			}
			listed(t, dir, "hako.db", string(content))
		},
		"a database of text": func(t *testing.T, dir string) {
			listed(t, dir, "hako.db", strings.Repeat("no database ", 1000))
		},
		"a journal with a database": func(t *testing.T, dir string) { listed(t, dir, "hako.db-journal", "x") },
		"a log with a database":     func(t *testing.T, dir string) { listed(t, dir, "hako.db-wal", "x") },
		"a key":                     func(t *testing.T, dir string) { listed(t, dir, "secrets.key", "x") },
		"a key as a database":       func(t *testing.T, dir string) { listed(t, dir, "secrets.key/x.db", "x") },
		"a plugin":                  func(t *testing.T, dir string) { listed(t, dir, "plugins/evil.wasm", "x") },
		"a configuration":           func(t *testing.T, dir string) { listed(t, dir, "hako.yaml", "x") },
		"a lock":                    func(t *testing.T, dir string) { listed(t, dir, "audit/audit.lock", "x") },
		"a file of the log elsewhere": func(t *testing.T, dir string) {
			listed(t, dir, "plugins/audit/audit.key",
				"x")
		},
		"a database in the log": func(t *testing.T, dir string) { listed(t, dir, "audit/x.db", "x") },
		"a database too deep":   func(t *testing.T, dir string) { listed(t, dir, "plugins/a/b/c.db", "x") },
		"a hidden database":     func(t *testing.T, dir string) { listed(t, dir, ".hidden.db", "x") },
		"a database in a hidden folder": func(t *testing.T, dir string) {
			listed(t, dir, "plugins/.restore-1/x.db", "x")
		},
		"a file that occurs twice": func(t *testing.T, dir string) {
			forge(t, dir, func(l *list) { l.Files = append(l.Files, l.Files[0]) })
		},
		"a file in two spellings": func(t *testing.T, dir string) { listed(t, dir, "HAKO.db", "x") },
		"another format":          func(t *testing.T, dir string) { forge(t, dir, func(l *list) { l.Format = 99 }) },
		"no format":               func(t *testing.T, dir string) { forge(t, dir, func(l *list) { l.Format = 0 }) },
		"a negative format":       func(t *testing.T, dir string) { forge(t, dir, func(l *list) { l.Format = -1 }) },
		"a negative size": func(t *testing.T, dir string) {
			forge(t, dir, func(l *list) { l.Files[0].Bytes = -1 })
		},
		"a size of nothing": func(t *testing.T, dir string) {
			forge(t, dir, func(l *list) { l.Files[0].Bytes = 0 })
		},
		"the greatest size": func(t *testing.T, dir string) {
			forge(t, dir, func(l *list) { l.Files[0].Bytes = 1<<63 - 1 })
		},
		"no checksum": func(t *testing.T, dir string) {
			forge(t, dir, func(l *list) { l.Files[0].SHA256 = "" })
		},
		"a key twice": func(t *testing.T, dir string) {
			_ = os.WriteFile(filepath.Join(dir, "backup.json"),
				[]byte(`{"format":2,"format":1,"created":"2026-01-01T00:00:00Z","files":[]}`), 0o600)
		},
		"a list that is cut off": func(t *testing.T, dir string) {
			text, _ := os.ReadFile(filepath.Join(dir, "backup.json"))
			_ = os.WriteFile(filepath.Join(dir, "backup.json"), text[:len(text)/2], 0o600)
		},
		"a list and more": func(t *testing.T, dir string) {
			text, _ := os.ReadFile(filepath.Join(dir, "backup.json"))
			_ = os.WriteFile(filepath.Join(dir, "backup.json"), append(text, text...), 0o600)
		},
		"a list nested deeply": func(t *testing.T, dir string) {
			_ = os.WriteFile(filepath.Join(dir, "backup.json"), []byte(`{"files":`+strings.Repeat("[", 1<<20)), 0o600)
		},
	}
	for _, path := range []string{
		"../x.db", "../../etc/x.db", "/etc/x.db", "plugins/../../x.db", "plugins/notes/../x.db", "./x.db",
		"plugins//x.db",
		"x.db/", "", ".", "..", ".db",
		`..\x.db`, `C:\x.db`, "C:x.db", `\\server\share\x.db`, `\\?\C:\x.db`, "x.db:stream.db", "plugins/a:b/x.db",
		"NUL\x00.db", "a\x00b.db",
		"a\nb.db", "\x1b]0;evil\x07.db", "a\u202eb.db", "plugins/\u200b/x.db", "пл.db", "a*.db", "a b.db",
		"plugins/notes/x.DB", "audit/../secrets.key",
	} {
		cases["the path "+strings.ToValidUTF8(path, "?")] = func(t *testing.T, dir string) {
			forge(t, dir, func(l *list) { l.Files[0].Path = path })
		}
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := create(t, data)
			damage(t, from)
			above := t.TempDir()
			to := filepath.Join(above, "hako.store")
			ctx := testwait.Context(t)
			_, err := backup.Restore(ctx, from, to)
			if err == nil {
				t.Fatal("it is restored")
			}
			if ctx.Err() != nil || strings.ContainsAny(err.Error(), "\x00\x1b\u202e\u200b") {
				t.Errorf("%q", err)
			}
			if left, _ := os.ReadDir(to); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if left, _ := os.ReadDir(above); len(left) > 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestHostileRestores restores a good backup to where something is already.
func TestHostileRestores(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	for _, there := range []string{
		"hako.db", "other.db", "hako.db-wal", "hako.db-journal", "hako.db-shm", "plugins/notes/acme.db",
		"plugins/notes/acme.db-wal", "plugins/other/x.db-journal",
		"audit/audit-000001.jsonl", "audit/audit.key", "audit/audit.head",
	} {
		t.Run(there, func(t *testing.T) {
			t.Parallel()
			to := t.TempDir()
			name := filepath.Join(to, filepath.FromSlash(there))
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
				os.WriteFile(name, []byte("mine"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), create(t, data), to); !errors.Is(err, fs.ErrExist) {
				t.Errorf("got %v", err)
			}
			if text, err := os.ReadFile(name); err != nil || string(text) != "mine" {
				t.Errorf("it holds %q, %v", text, err)
			}
		})
	}
	t.Run("a place that is a file", func(t *testing.T) {
		t.Parallel()
		name := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), create(t, data), name); err == nil {
			t.Error("it is restored")
		}
	})
	t.Run("a call that is over", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		to := t.TempDir()
		if _, err := backup.Restore(ctx, create(t, data), to); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	t.Run("nobody else may read it", func(t *testing.T) {
		t.Parallel()
		to := filepath.Join(t.TempDir(), "hako.store")
		from := create(t, data)
		for _, dir := range []string{from, to} {
			if dir == to {
				if _, err := backup.Restore(t.Context(), from, to); err != nil {
					t.Fatal(err)
				}
			}
			if err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := e.Info()
				if err == nil && info.Mode().Perm()&0o077 != 0 && filepath.Separator == '/' {
					t.Errorf("%s has the mode %v", name, info.Mode())
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("no key of credentials goes out", func(t *testing.T) {
		t.Parallel()
		if err := filepath.WalkDir(create(t, data), func(name string, _ fs.DirEntry, err error) error {
			if strings.Contains(name, "secret") {
				t.Errorf("%s is in the backup", name)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestHostileRestoredLogs changes the audit log in a backup, with checksums that are right: verifying the restored log
// finds it.
func TestHostileRestoredLogs(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	log := openLog(t, data)
	for range 60 {
		if err := log.Append(t.Context(), &audit.Event{Type: audit.TypeCall, Error: "as it was"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	segments := func(t *testing.T, dir string) []string {
		found, err := filepath.Glob(filepath.Join(dir, "audit", "audit-*.jsonl"))
		if err != nil || len(found) < 2 {
			t.Fatalf("%d segments, %v", len(found), err)
		}
		return found
	}
	change := func(t *testing.T, dir, name string, f func(string) string) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		listed(t, dir, "audit/"+filepath.Base(name), f(string(text)))
	}
	remove := func(t *testing.T, dir, name string) {
		forge(t, dir, func(l *list) {
			for i := range l.Files {
				if l.Files[i].Path == "audit/"+filepath.Base(name) {
					l.Files = append(l.Files[:i], l.Files[i+1:]...)
					return
				}
			}
		})
	}
	for name, damage := range map[string]func(t *testing.T, dir string){
		"a record is changed": func(t *testing.T, dir string) {
			change(t, dir, segments(t, dir)[0],
				func(s string) string { return strings.Replace(s, "as it was", "as I like", 1) })
		},
		"a record is removed": func(t *testing.T, dir string) {
			change(t, dir, segments(t, dir)[0], func(s string) string {
				lines := strings.SplitAfter(s, "\n")
				return strings.Join(append(lines[:3:3], lines[4:]...), "")
			})
		},
		"records are exchanged": func(t *testing.T, dir string) {
			change(t, dir, segments(t, dir)[0], func(s string) string {
				lines := strings.SplitAfter(s, "\n")
				lines[3], lines[4] = lines[4], lines[3]
				return strings.Join(lines, "")
			})
		},
		"a record occurs twice": func(t *testing.T, dir string) {
			change(t, dir, segments(t, dir)[0], func(s string) string {
				lines := strings.SplitAfter(s, "\n")
				return s + lines[len(lines)-2]
			})
		},
		"the end is cut off": func(t *testing.T, dir string) {
			found := segments(t, dir)
			change(t, dir, found[len(found)-1],
				func(s string) string { return s[:strings.LastIndexByte(s[:len(s)-1], '\n')+1] })
		},
		"the last segment is gone": func(t *testing.T, dir string) {
			found := segments(t, dir)
			remove(t, dir, found[len(found)-1])
		},
		"a segment in the middle is gone": func(t *testing.T, dir string) { remove(t, dir, segments(t, dir)[1]) },
		"the key is another": func(t *testing.T, dir string) {
			other := t.TempDir()
			if err := openLog(t, other).Append(t.Context(), &audit.Event{Type: audit.TypeCall}); err != nil {
				t.Fatal(err)
			}
			key, err := os.ReadFile(filepath.Join(other, "audit", "audit.key"))
			if err != nil {
				t.Fatal(err)
			}
			change(t, dir, filepath.Join(dir, "audit", "audit.key"), func(string) string { return string(key) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := filepath.Join(t.TempDir(), "backup")
			if _, err := backup.Create(t.Context(), data, from); err != nil {
				t.Fatal(err)
			}
			damage(t, from)
			to := filepath.Join(t.TempDir(), "hako.store")
			if _, err := backup.Restore(t.Context(), from, to); err != nil {
				return // refused at once
			}
			report, err := audit.Dir(filepath.Join(to, "audit")).Verify(t.Context(), nil)
			if err == nil && report.OK() {
				t.Errorf("the log is taken for what was written: %+v", report)
			}
		})
	}
}
