package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/host/govern/audit"
)

// TestFullDisk: a record that does not fit is refused and leaves nothing behind, and with room again the log goes on by
// itself. A limit on the size of files is what a full disk looks like to a process.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("HAKO_AUDIT_TEST_FULL"); dir != "" {
		appendLines(dir)
		return
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
	command.Env = append(os.Environ(), "HAKO_AUDIT_TEST_FULL="+dir)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	ask := func() string {
		fmt.Fprintln(in, "append")
		answers.Scan()
		return answers.Text()
	}
	limit := func(bytes uint64) {
		if err := unix.Prlimit(command.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	written := 0
	for range 3 {
		limit(unix.RLIM_INFINITY)
		if got := ask(); got != "ready <nil>, append <nil>" {
			t.Fatalf("with room: %s", got)
		}
		written++
		info, err := os.Stat(dir + "/audit-00000001.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		limit(uint64(info.Size()) + 100) // less than a record
		if got := ask(); !strings.Contains(got, "file too large") {
			t.Errorf("without room: %s", got)
		}
		if got := ask(); !strings.HasPrefix(got, "ready audit: ") {
			t.Errorf("still without room: %s", got)
		}
		if report := verify(t, dir); !report.OK() {
			t.Errorf("half a record is left: %v", report.Problems)
		}
	}
	limit(unix.RLIM_INFINITY)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	calls, err := audit.Dir(dir).Last(t.Context(), &audit.Query{Type: audit.TypeCall}, 100)
	if report := verify(t, dir); err != nil || !report.OK() || len(calls) != written {
		t.Errorf("%d calls of %d, %v, %+v", len(calls), written, err, report)
	}
}

// appendLines appends a record for each line of standard input.
func appendLines(dir string) {
	l, err := audit.Open(&audit.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Printf("ready %v, append %v\n", l.Ready(), l.Append(context.Background(), call("full")))
	}
	if err := l.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// TestReadOnly: where nothing can be written there is no log, and the error says where.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	if _, err := audit.Open(&audit.Options{Dir: "/proc/hako/audit"}); err == nil ||
		!strings.Contains(err.Error(), "/proc/hako") {
		t.Errorf("below /proc: %v", err)
	}
}
