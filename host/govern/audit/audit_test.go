package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
)

func open(t *testing.T, options audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(&options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func call(name string) *audit.Event {
	return &audit.Event{
		Type: audit.TypeCall, Outcome: "ok", Subject: audit.Subject{Frontend: "terminal", Tenant: "acme", User: "aki"},
		Target: audit.Target{Plugin: "weather", Name: name}, DurationMS: 1.5,
	}
}

func appendCalls(t *testing.T, l *audit.Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Append(t.Context(), call(fmt.Sprint("tool_", i))); err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t *testing.T, dir string) *audit.Report {
	t.Helper()
	report, err := audit.Dir(dir).Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, audit.Options{Dir: dir})
	appendCalls(t, l, 10)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), call("x")); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	again := open(t, audit.Options{Dir: dir, Sync: true})
	appendCalls(t, again, 5)
	report := verify(t, dir)
	if !report.OK() || report.Records != 16 || report.Checkpoints != 1 || report.Signed != 10 || report.Last != 16 {
		t.Errorf("%+v", report)
	}
	names, err := audit.Dir(dir).Last(t.Context(), &audit.Query{Type: audit.TypeCall, User: "aki", After: 14}, 10)
	if err != nil || len(names) != 2 || names[1].Target.Name != "tool_4" || names[1].Seq != 16 {
		t.Errorf("%v, %v", names, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "audit.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
}

// TestRotation: the chain goes on over segments, old ones go, and what is left verifies.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	l := open(t, audit.Options{Dir: dir, SegmentBytes: 4000, Retain: time.Hour, Now: func() time.Time { return now }})
	appendCalls(t, l, 60)
	if report := verify(t, dir); !report.OK() || report.Segments < 3 || report.First != 1 {
		t.Fatalf("%+v", report)
	}
	now = now.Add(2 * time.Hour)
	appendCalls(t, l, 60)
	report := verify(t, dir)
	if !report.OK() || report.First == 1 {
		t.Errorf("%+v", report)
	}
	now = now.Add(-2 * time.Hour)
	appendCalls(t, l, 60)
	// One record that says which segment went is not enough for another one.
	names, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	if report := verify(t, dir); report.OK() {
		t.Error("a segment that somebody removed is not missed")
	}
}

// TestRetainSmallLog: records go also from logs that never fill a segment, by a process that stays and by those that
// only begin and end. One that was idle meanwhile goes on.
func TestRetainSmallLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Now()
	now := begin
	options := audit.Options{Dir: dir, Retain: time.Hour, Now: func() time.Time { return now }}
	idle, l := open(t, options), open(t, options)
	first := func() uint64 {
		t.Helper()
		report := verify(t, dir)
		if !report.OK() {
			t.Fatalf("%+v", report)
		}
		return report.First
	}
	expire := func() {
		t.Helper()
		if err := l.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	appendCalls(t, l, 3)
	now = begin.Add(59 * time.Minute)
	expire()
	if got := first(); got != 1 {
		t.Errorf("before the time: the first record is %d", got)
	}
	now = begin.Add(61 * time.Minute)
	expire()
	if got := first(); got < 4 {
		t.Errorf("after the time: the first record is %d", got)
	}
	appendCalls(t, idle, 3)
	before := first()
	now = begin.Add(3 * time.Hour)
	for range 2 { // the first ends the segment; its file is not older than this test
		short := open(t, options)
		appendCalls(t, short, 1)
		if err := short.Close(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Hour)
	}
	if got := first(); got <= before {
		t.Errorf("commands that begin and end: the first record is %d as before", got)
	}
	appendCalls(t, idle, 1)
	first()
}

// TestTampering shows that Verify finds what somebody without the key may do to a log of three segments with
// checkpoints in each.
func TestTampering(t *testing.T) {
	t.Parallel()
	original := t.TempDir()
	l := open(t, audit.Options{Dir: original, SegmentBytes: 6000})
	appendCalls(t, l, 60)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if report := verify(t, original); !report.OK() || report.Segments != 3 {
		t.Fatalf("%+v", report)
	}
	stranger := t.TempDir()
	other := open(t, audit.Options{Dir: stranger, SegmentBytes: 6000})
	appendCalls(t, other, 60)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}

	const first, second, third = "audit-00000001.jsonl", "audit-00000002.jsonl", "audit-00000003.jsonl"
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"a value edited", edit(second, func(lines [][]byte) [][]byte {
			lines[3] = bytes.Replace(lines[3], []byte(`"aki"`), []byte(`"bob"`), 1)
			return lines
		}), "was changed: record"},
		{"a record deleted", edit(second, func(lines [][]byte) [][]byte { return append(lines[:3:3], lines[4:]...) }),
			"were removed"},
		{"a record deleted and the rest numbered anew", edit(second, renumber), "was changed: record"},
		{"two records swapped", edit(second, func(lines [][]byte) [][]byte {
			lines[3], lines[4] = lines[4], lines[3]
			return lines
		}), "reordered"},
		{"a record added", edit(second,
			func(lines [][]byte) [][]byte { return append(lines[:3:3], append([][]byte{lines[2]}, lines[3:]...)...) }),
			"reordered"},
		{"the end of the log cut off", edit(third, func(lines [][]byte) [][]byte { return lines[:len(lines)-2] }),
			"the end was cut off"},
		{"the end of a segment cut off", edit(first, func(lines [][]byte) [][]byte { return lines[:len(lines)-1] }),
			"its end was cut off"},
		{"half a record cut off", edit(first, func(lines [][]byte) [][]byte {
			lines[len(lines)-1] = lines[len(lines)-1][:20]
			return lines
		}), "cut off"},
		{"the last segment removed", remove(third), "the end was cut off"},
		{"the first segment removed", remove(first), "no record says that the earlier ones were removed"},
		{"a segment in the middle removed", remove(second), "are missing, up to"},
		{"a segment of another log", func(t *testing.T, dir string) { copyFile(t, stranger, dir, second) },
			"is invalid"},
		{"the whole log and its public key replaced", func(t *testing.T, dir string) {
			for _, name := range []string{first, second, third, "audit.pub"} {
				copyFile(t, stranger, dir, name)
			}
		}, "not the one expected"},
		{"everything from a record on forged, with a chain that fits", edit(third, forge),
			"the signature of the checkpoint is invalid"},
		{"checkpoints removed from a forged chain",
			edit(third, func(lines [][]byte) [][]byte { return forge(lines[:len(lines)-1]) }), "the end was cut off"},
		{"garbage in between", edit(second, func(lines [][]byte) [][]byte {
			return append(lines[:3:3], append([][]byte{[]byte("{}\n")}, lines[3:]...)...)
		}), "not a record"},
		{"another spelling of the same record", edit(second, func(lines [][]byte) [][]byte {
			lines[3] = bytes.Replace(lines[3], []byte(`{"seq":`), []byte(`{ "seq":`), 1)
			return lines
		}), "not a record"},
		{"the head removed", remove("audit.head"), "it is missing"},
		{"the head of another log", func(t *testing.T, dir string) { copyFile(t, stranger, dir, "audit.head") },
			"not written with the log's key"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, name := range []string{first, second, third, "audit.head", "audit.key", "audit.pub"} {
				copyFile(t, original, dir, name)
			}
			test.change(t, dir)
			report := verify(t, dir)
			if text := fmt.Sprint(report.Problems); !strings.Contains(text, test.want) {
				t.Errorf("problems %q, want one with %q", text, test.want)
			}
			if len(report.Problems) > 0 {
				t.Log(report.Problems[0])
			}
		})
	}
}

func edit(name string, change func([][]byte) [][]byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		lines[len(lines)-1] = append(lines[len(lines)-1], '\n')
		out := bytes.Join(change(lines), nil)
		if bytes.Equal(out, data) {
			t.Fatal("nothing was changed")
		}
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(t *testing.T, from, to, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenAfterChange: opening a log does not cover up that its end was changed while nobody wrote to it.
func TestOpenAfterChange(t *testing.T) {
	t.Parallel()
	const segment = "audit-00000001.jsonl"
	original := t.TempDir()
	l := open(t, audit.Options{Dir: original})
	appendCalls(t, l, 5) // not signed yet, as when the process is killed
	for _, test := range []struct {
		name   string
		change func(*testing.T, string)
		want   string
	}{
		{"nothing", func(*testing.T, string) {}, ""},
		{"the end cut off", edit(segment, func(lines [][]byte) [][]byte { return lines[:3] }),
			"records up to 5 were missing"},
		{"forged, with a chain that fits", edit(segment, forge), "not the one of its head"},
		{"forged and longer", edit(segment, func(lines [][]byte) [][]byte {
			return forge(append(lines, []byte(`{"seq":6,"prev":"`+strings.Repeat("0", 64)+
				`","time":"2026-01-01T00:00:00Z","type":"tools/call"}`+"\n")))
		}), "not the one of its head"},
		{"without a head", remove("audit.head"), "not the one of its head"},
		{"with a head of one's own", func(t *testing.T,
			dir string) {
			put(t, dir, "audit.head", []byte(`{"seq":1,"hash":"","mac":""}`))
		}, "not the one of its head"},
	} {
		dir := t.TempDir()
		for _, name := range []string{segment, "audit.head", "audit.key", "audit.pub"} {
			copyFile(t, original, dir, name)
		}
		test.change(t, dir)
		appendCalls(t, open(t, audit.Options{Dir: dir}), 5)
		report := verify(t, dir)
		if text := fmt.Sprint(report.Problems); report.OK() != (test.want == "") || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s", test.name, text)
		}
	}
}

func TestExpectation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	appendCalls(t, open(t, audit.Options{Dir: dir}), 5)
	report := verify(t, dir)
	for _, test := range []struct {
		name   string
		expect audit.Expectation
		ok     bool
	}{
		{"the head as it is", audit.Expectation{Seq: report.Last, Hash: report.Head}, true},
		{"another record", audit.Expectation{Seq: report.Last, Hash: strings.Repeat("0", 64)}, false},
		{"a later one", audit.Expectation{Seq: report.Last + 1, Hash: report.Head}, false},
	} {
		if got, err := audit.Dir(dir).Verify(t.Context(), &test.expect); err != nil || got.OK() != test.ok {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
	if _, err := audit.Dir(t.TempDir()).Verify(t.Context(), nil); err == nil {
		t.Error("an empty directory verifies")
	}
}

func TestMissingKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, audit.Options{Dir: dir})
	appendCalls(t, l, 1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	remove("audit.key")(t, dir)
	if _, err := audit.Open(&audit.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "restore it") {
		t.Errorf("without its key: %v", err)
	}
	if report := verify(t, dir); !report.OK() || report.Signed != 1 {
		t.Errorf("verified elsewhere: %+v", report)
	}
}

// TestWriters: several logs over one directory, as several processes have them, make one chain.
func TestWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const writers, each = 4, 300
	var group sync.WaitGroup
	for w := range writers {
		l := open(t, audit.Options{Dir: dir, SegmentBytes: 20_000})
		group.Go(func() {
			for i := range each {
				if err := l.Append(t.Context(), call(fmt.Sprintf("w%d_%d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	report := verify(t, dir)
	calls, err := audit.Dir(dir).Last(t.Context(), &audit.Query{Type: audit.TypeCall}, 10_000)
	if err != nil || !report.OK() || len(calls) != writers*each {
		t.Errorf("%d calls, %v; %+v", len(calls), err, report)
	}
}

// TestKilled kills a process that writes records, again and again: what it has reported as written is there, and the
// chain holds.
func TestKilled(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("HAKO_AUDIT_TEST_DIR"); dir != "" {
		write(dir)
		return
	}
	dir := t.TempDir()
	written := 0
	for range 5 {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		command.Env = append(os.Environ(), "HAKO_AUDIT_TEST_DIR="+dir)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 300) // one byte for each record
		n := 0
		for n < len(buffer) {
			k, err := out.Read(buffer[n:])
			if n += k; err != nil {
				t.Fatal(err)
			}
		}
		written += n
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	l := open(t, audit.Options{Dir: dir})
	appendCalls(t, l, 1)
	report := verify(t, dir)
	calls, err := audit.Dir(dir).Last(t.Context(), &audit.Query{Type: audit.TypeCall}, 1_000_000)
	if err != nil || !report.OK() || len(calls) <= written {
		t.Errorf("%d calls of at least %d, %v; %+v", len(calls), written, err, report)
	}
}

func write(dir string) {
	l, err := audit.Open(&audit.Options{Dir: dir})
	for err == nil {
		if err = l.Append(context.Background(), call("killed")); err == nil {
			_, err = os.Stdout.Write([]byte("."))
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	l := open(t, audit.Options{Dir: t.TempDir()})
	event := call("x")
	event.Error = strings.Repeat("x", 2<<20)
	if err := l.Append(t.Context(), event); err == nil || !strings.Contains(err.Error(), "larger than the limit") {
		t.Errorf("2 MiB: %v", err)
	}
}

// BenchmarkAppend has 32 callers at once: records that outlive the process, and those that outlive a loss of power.
func BenchmarkAppend(b *testing.B) {
	for _, test := range []struct {
		name string
		sync bool
	}{{"process", false}, {"disk", true}} {
		b.Run(test.name, func(b *testing.B) {
			l, err := audit.Open(&audit.Options{Dir: b.TempDir(), Sync: test.sync})
			if err != nil {
				b.Fatal(err)
			}
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := l.Append(context.Background(), call("bench")); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	l, err := audit.Open(&audit.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	const records = 100_000
	for range records {
		if err := l.Append(b.Context(), call("bench")); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if report, err := audit.Dir(dir).Verify(b.Context(), nil); err != nil || !report.OK() {
			b.Fatal(report, err)
		}
	}
	b.ReportMetric(float64(b.N)*records/b.Elapsed().Seconds(), "records/s")
}
