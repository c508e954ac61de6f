package postgrestest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
)

// Disk is a small in-memory file system that a test can fill.
type Disk struct{ dir string }

// diskSize suffices for a server's log and an empty database.
const diskSize = "64m"

// NewDisk mounts a disk, owned by the server's account, until the test ends. Where mounting is not
// allowed, as in most containers, it calls testprogram.Missing.
func NewDisk(t testing.TB) *Disk {
	t.Helper()
	dir, err := os.MkdirTemp(os.TempDir(), "hako-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+diskSize+",mode=0755")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		testprogram.Missing(t, "a small disk cannot be mounted here: "+err.Error())
	}
	if err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := giveAway(dir); err != nil {
		t.Fatal(err)
	}
	return &Disk{dir}
}

// Fill fills the disk.
func (d *Disk) Fill(t testing.TB) {
	t.Helper()
	file, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		if _, err := io.CopyN(file, zeros{}, int64(size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Free undoes Fill.
func (d *Disk) Free(t testing.TB) {
	t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		t.Fatal(err)
	}
}

func (d *Disk) filler() string { return filepath.Join(d.dir, "filler") }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// DatabaseOn is Database with its tables on the disk. The write-ahead log is elsewhere.
func (s *Server) DatabaseOn(t testing.TB, d *Disk) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	s.Exec(t, fmt.Sprintf("CREATE TABLESPACE %s_disk LOCATION '%s'", name, d.dir))
	s.Exec(t, fmt.Sprintf("CREATE DATABASE %s TABLESPACE %s_disk", name, name))
	return s.URL(name)
}

// NewServerLoggingTo is NewServer with the write-ahead log on the disk, in segments of 1 MB. A server that cannot write
// its log exits.
func NewServerLoggingTo(t testing.TB, d *Disk) *Server {
	t.Helper()
	return newTestServer(t, []string{"--waldir", filepath.Join(d.dir, "log"), "--wal-segsize", "1"},
		[]string{"min_wal_size=4MB", "max_wal_size=16MB"})
}
