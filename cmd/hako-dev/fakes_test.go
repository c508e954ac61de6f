package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
)

func TestFakes(t *testing.T) {
	t.Parallel()
	hako := needsHako(t)
	dir := filepath.Join(t.TempDir(), "made")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	stderr := new(display)
	a := &app{stdin: strings.NewReader(""), stdout: writer, stderr: stderr}
	ended := make(chan int, 1)
	go func() {
		ended <- a.run(ctx, []string{"fakes", "--address", "127.0.0.1:0", "--write-config", dir})
		_ = writer.Close()
	}()
	// Once the configuration is printed, it is written and the address is open.
	buffer := make([]byte, 1<<16)
	n, err := reader.Read(buffer)
	if err != nil {
		t.Fatal(err, stderr)
	}
	written, err := os.ReadFile(filepath.Join(dir, "hako.yaml"))
	if err != nil || string(written) != string(buffer[:n]) {
		t.Errorf("printed is\n%s\nwritten is\n%s (%v)", buffer[:n], written, err)
	}
	if output, err := exec.Command(hako, "-C", dir, "config", "check").CombinedOutput(); err != nil {
		t.Errorf("hako config check: %v\n%s", err, output)
	}
	stop()
	select {
	case code := <-ended:
		if code != exitOK {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	case <-testwait.Context(t).Done():
		t.Fatal("it does not end")
	}
}

func TestFakesRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	invoke(t, "", "fakes", "--address", "0.0.0.0:0").want(t, exitUsage, "can be reached from other machines")
	if err := os.WriteFile(filepath.Join(dir, "hako.yaml"), []byte("locale: ja\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	invoke(t, "", "fakes", "--address", "127.0.0.1:0", "--write-config", dir).want(t, exitUsage,
		"was not written by hako-dev fakes")
}
