package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/govern/audit"
)

// TestGone: a log whose files are no longer in their directory takes no records that nobody would ever see.
func TestGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let open files be moved")
	}
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, audit.Options{Dir: dir})
	appendCalls(t, l, 1)
	for _, test := range []struct{ name, want string }{{"moved away", "restore them"}, {"another one in its place", "not the file that was written to"}} {
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if test.name != "moved away" {
			if err := os.CopyFS(dir, os.DirFS(dir+".away")); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range []error{l.Ready(), l.Append(t.Context(), call("x")), l.Ready()} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Ready(); err != nil {
		t.Errorf("back again: %v", err)
	}
	appendCalls(t, l, 1)
	if report := verify(t, dir); !report.OK() {
		t.Errorf("%+v", report)
	}
}

// TestTorn: a loss of power may leave any part of the last record. It was not answered yet; the log goes on before it.
func TestTorn(t *testing.T) {
	t.Parallel()
	const segment = "audit-00000001.jsonl"
	original := t.TempDir()
	l := open(t, audit.Options{Dir: original})
	appendCalls(t, l, 3)
	// The head is from before the last record, as when that was being written.
	before, err := os.ReadFile(filepath.Join(original, "audit.head"))
	if err != nil {
		t.Fatal(err)
	}
	appendCalls(t, l, 1)
	whole, err := os.ReadFile(filepath.Join(original, segment))
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	dir := t.TempDir()
	copyFile(t, original, dir, "audit.key")
	copyFile(t, original, dir, "audit.pub")
	for size := last; size <= len(whole); size++ {
		for _, zeros := range []int{0, len(whole) - size} { // what was not written may read as zeros
			put(t, dir, "audit.head", before)
			put(t, dir, segment, append(whole[:size:size], make([]byte, zeros)...))
			torn, err := audit.Open(&audit.Options{Dir: dir})
			if err != nil {
				t.Fatalf("%d bytes: %v", size-last, err)
			}
			appendCalls(t, torn, 1)
			if err := torn.Close(); err != nil {
				t.Fatal(err)
			}
			calls, err := audit.Dir(dir).Last(t.Context(), &audit.Query{Type: audit.TypeCall}, 10)
			want := 4
			if size == len(whole) {
				want = 5
			}
			if report := verify(t, dir); err != nil || !report.OK() || len(calls) != want {
				t.Errorf("%d bytes, %d zeros: %d calls, %v, %v", size-last, zeros, len(calls), err, report.Problems)
			}
		}
	}
}

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}
