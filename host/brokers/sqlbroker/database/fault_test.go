package database

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/pdk/abi"
)

// hasFault returns err as a *Fault, which it must be, and checks that its cause contains the text.
func hasFault(t *testing.T, err error, text string) *Fault {
	t.Helper()
	var fault *Fault
	if !errors.As(err, &fault) || !strings.Contains(fault.Error(), text) {
		t.Fatalf("got %v, want a fault: %s", err, text)
	}
	if strings.Contains(fault.Public.Message, "/") {
		t.Errorf("the plugin learns of a path: %s", fault.Public.Message)
	}
	return fault
}

func TestOpenFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage      func(path string) error
		cause, told string
	}{
		"no database": {func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("text ", 1000)),
				0o600)
		}, "not a database", "damaged"},
		"a directory": {func(path string) error { return os.Mkdir(path, 0o700) }, "is a directory", "may not write"},
		"a file above": {func(path string) error { return os.WriteFile(filepath.Dir(path)+"x", nil, 0o600) },
			"not a directory", "may not write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, table)
			if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := test.damage(o.Path); err != nil {
				t.Fatal(err)
			}
			if name == "a file above" {
				o.Path = filepath.Join(filepath.Dir(o.Path)+"x", "test.db")
			}
			_, err := Open(t.Context(), o)
			wants(t, hasFault(t, err, test.cause).Public, abi.CodeInternal, test.told)
		})
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if testprogram.RunUnprivileged(t) {
		return
	}
	o := options(t, table)
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), o)
	wants(t, hasFault(t, err, "permission denied").Public, abi.CodeInternal, "may not write")
}

// TestDamagedPage: a damaged page is detected when it is read, and reported as a fault.
func TestDamagedPage(t *testing.T) {
	t.Parallel()
	o := options(t, table)
	db := openTest(t, o)
	session(t, db).must(t, "INSERT INTO item (value) SELECT zeroblob(3000) FROM json_each('[1,2,3,4,5,6,7,8]')")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * pageSize; i < len(data); i++ {
		data[i] = 0xa5
	}
	if err := os.WriteFile(o.Path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var faults []*Fault
	damaged, err := Open(t.Context(), o)
	if err != nil {
		hasFault(t, err, "malformed")
		return
	}
	defer damaged.Close()
	s := damaged.Session(func(err *Fault) { faults = append(faults, err) })
	r := s.Query(t.Context(), statement("SELECT sum(length(value)) FROM item"))
	wants(t, r.Error, abi.CodeInternal, "damaged")
	if len(faults) != 1 {
		t.Fatalf("the operator is told %v", faults)
	}
	hasFault(t, faults[0], "malformed")
}

// fullDisk allows a number of writes to the log before the disk is full.
type fullDisk struct {
	vfs.VFSFilename
	left *int
}

type fullFile struct {
	vfs.File
	left *int
}

func (d fullDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err == nil && flags&vfs.OPEN_WAL != 0 {
		file = fullFile{file, d.left}
	}
	return file, flags, err
}

func (f fullFile) WriteAt(p []byte, offset int64) (int, error) {
	if *f.left--; *f.left < 0 {
		return 0, &os.PathError{Op: "write", Path: "test.db-wal", Err: syscall.ENOSPC}
	}
	return f.File.WriteAt(p, offset)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	left := 1 << 30
	o := options(t, table)
	o.system = fullDisk{vfs.Find("os").(vfs.VFSFilename), &left}
	s := session(t, openTest(t, o))
	s.must(t, "INSERT INTO item (name) VALUES ('a')")
	left = 3
	r := s.Exec(t.Context(), statement("INSERT INTO item (value) VALUES (zeroblob(100000))"))
	wants(t, r.Error, abi.CodeLimit, "disk is full")
	left = 1 << 30
	if n := s.value(t, "SELECT count(*) FROM item"); n != int64(1) {
		t.Errorf("%v rows are left", n)
	}
	s.must(t, "INSERT INTO item (value) VALUES (zeroblob(100000))")
}
