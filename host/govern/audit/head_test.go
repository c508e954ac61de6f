package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestHeadUnwritten: a record whose head cannot be written is taken back, for its call gets no answer.
func TestHeadUnwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(&Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	event := &Event{Type: TypeCall}
	if err := l.Append(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	files := l.writer.(*files)
	head := files.headFile
	if files.headFile, err = os.Open(head.Name()); err != nil { // for reading alone
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), event); err == nil {
		t.Error("recorded without a head")
	}
	if err := files.headFile.Close(); err != nil {
		t.Fatal(err)
	}
	files.headFile = head
	if err := l.Append(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := Dir(dir).Verify(t.Context(), nil); err != nil || !report.OK() || report.Records != 3 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestKilledOften: what processes leave unsigned that are killed before their first checkpoint is signed by those that
// follow, whatever the records contain.
func TestKilledOften(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 4 {
		l, err := Open(&Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for range checkpointEvery * 3 / 4 {
			call := &Event{Type: TypeCall, Arguments: json.RawMessage(`{"type":"log/checkpoint"}`)}
			if err := l.Append(t.Context(), call); err != nil {
				t.Fatal(err)
			}
		}
		next := filepath.Join(t.TempDir(), "audit") // as a kill would leave it
		if err := os.CopyFS(next, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		dir = next
	}
	if report, err := Dir(dir).Verify(t.Context(), nil); err != nil || !report.OK() || report.Checkpoints < 2 {
		t.Errorf("%+v, %v", report, err)
	}
}
