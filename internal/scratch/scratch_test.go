package scratch

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain makes a directory and waits to be killed, if it is asked to.
func TestMain(m *testing.M) {
	if parent := os.Getenv("SCRATCH_PARENT"); parent != "" {
		d, err := New(parent, "kind")
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Path)
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

// TestLeftovers: the directory of a killed process is removed once it is a minute old. That of a running one
// stays, and so do those of other users and those whose lock is a link.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	start := func() (path string, kill func()) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command(self)
		child.Env = append(os.Environ(), "SCRATCH_PARENT="+parent)
		stdin, _ := child.StdinPipe()
		stdout, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		lines.Scan()
		return lines.Text(), func() {
			_ = child.Process.Kill()
			_ = child.Wait()
			_ = stdin.Close()
		}
	}
	dead, kill := start()
	kill()
	young, kill := start()
	kill()
	alive, kill := start()
	defer kill()
	closed := filepath.Join(dead, "closed")
	if err := os.WriteFile(filepath.Join(dead, "half"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(closed, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(parent, "kind-of-a-user")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	linked, foreign := filepath.Join(parent, "kind-1"), filepath.Join(parent, "kind-2")
	for _, path := range []string{linked, foreign} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(parent, "file"), filepath.Join(foreign, lockName)} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../file", filepath.Join(linked, lockName)); err != nil {
		t.Log(err) // on Windows
	}
	stays := os.Chown(foreign, os.Geteuid()+1, -1) == nil // for root
	old := time.Now().Add(-time.Hour)
	for _, path := range []string{filepath.Join(dead, lockName), filepath.Join(alive, lockName),
		filepath.Join(parent, "file"), filepath.Join(foreign, lockName)} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	d, err := New(parent, "kind")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead: false, young: true, alive: true, other: true, linked: true,
		foreign: stays, d.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Errorf("the directory stays: %v", err)
	}
}
