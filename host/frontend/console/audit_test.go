package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/audit"
)

type recordsJSON struct {
	Items []struct {
		Seq          uint64
		Name, Action string
		Detail       map[string]string
	}
	Next     string
	Searched *time.Time
}

// write records n calls of tool by user.
func (w *world) write(n int, tool, user string) {
	w.t.Helper()
	for i := range n {
		e := &audit.Event{
			Time: w.clock.Now().Add(time.Duration(i) * time.Second), Type: audit.TypeCall, Outcome: "ok",
			Subject: audit.Subject{User: user},
			Target:  audit.Target{Plugin: "p", Name: tool}, Detail: map[string]string{"number": fmt.Sprint(i)},
		}
		if err := w.log.Append(w.t.Context(), e); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestAuditPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(125, "first", "aki")
	w.write(5, "second", "mori")
	b := w.as(console.Viewer)
	var numbers []string
	query := url.Values{"tool": {"first"}, "limit": {"50"}}
	for pages := 0; pages < 10; pages++ {
		var page recordsJSON
		b.get("audit?"+query.Encode()).into(t, &page)
		for _, r := range page.Items {
			numbers = append(numbers, r.Detail["number"])
		}
		if page.Next == "" {
			break
		}
		query.Set("cursor", page.Next)
		w.write(1, "first", "while it is read") // comes before what is being looked through
	}
	if len(numbers) != 125 || numbers[0] != "124" || numbers[124] != "0" {
		t.Errorf("%d records, from %s to %s, want 125, newest first, each once", len(numbers), numbers[0],
			numbers[len(numbers)-1])
	}
}

func TestAuditFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(3, "first", "aki")
	w.write(4, `<img src=x>"quoted" 東京`, "mori")
	w.write(1, "third", `back\slash`)
	b := w.as(console.Viewer)
	for query, want := range map[string]int{
		"user=aki": 3, "user=aki&tool=second": 0, "plugin=p": 8, "outcome=ok&type=tools/call": 8,
		"type=operator&action=console.login": 2,
		"type=log/checkpoint":                -1, "text=FIRST": 3, "text=" + url.QueryEscape(`"QUOTED" 東`): 4,
		"text=<IMG":    4,
		"text=nothing": 0, "text=QUOTED%22": 4, "text=back%22": 0, `text=back\S`: 1,
		"from=2026-11-20T12:00:02Z&to=2026-11-20T12:00:03Z&user=aki": 1, "from=2026-11-20T21:00:02%2B09:00&user=aki": 1,
		"text=number&limit=2": 2,
	} {
		var page recordsJSON
		b.get("audit?"+query).into(t, &page)
		if len(page.Items) != want && want >= 0 {
			t.Errorf("%s: %d records, want %d", query, len(page.Items), want)
		}
		if query == "text=number&limit=2" && page.Next == "" {
			t.Errorf("%s: there are more, and no cursor", query)
		}
	}
	for _, query := range []string{
		"from=yesterday", "to=1", "limit=0", "limit=201", "limit=x", "text=%00", "user=%ff", "cursor=%21",
		"cursor=" + console.FormatCursor("x"), "cursor=" + console.FormatCursor("0"),
		"text=" + strings.Repeat("x", 201), "user=a&user=b", "unknown=1", "text=" + strings.Repeat("%20", 9000),
	} {
		if got := b.get("audit?" + query); got.code() != "invalid" {
			t.Errorf("%.40s: %d %s", query, got.status, got.body)
		}
	}
}

// hay is a log of so many records, the first of which is a needle.
type hay struct {
	*journal
	records uint64
}

func (h hay) Last(_ context.Context, q *audit.Query, n int) (list []*audit.Entry, err error) {
	end := h.records
	if q.Before > 0 {
		end = q.Before - 1
	}
	for seq := end - min(end, uint64(n)) + 1; seq <= end; seq++ {
		e := &audit.Entry{Seq: seq, Event: audit.Event{Type: audit.TypeCall, Target: audit.Target{Name: "hay"},
			Time: time.Unix(int64(seq), 0)}}
		if seq == 1 {
			e.Target.Name = "needle"
		}
		list = append(list, e)
	}
	return list, nil
}

// TestAuditSearchIsBounded: a search for what is rare gives up for now, and says how far it came.
func TestAuditSearchIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *world, o *console.Options) { o.Journal = hay{o.Journal.(*journal), 50_001} })
	b := w.as(console.Viewer)
	next := ""
	for _, want := range []int64{40_002, 30_002, 20_002, 10_002, 2} {
		var page recordsJSON
		b.get("audit?text=needle&cursor="+next).into(t, &page)
		if len(page.Items) != 0 || page.Next == "" || page.Searched == nil || page.Searched.Unix() != want {
			t.Fatalf("%d records, next %q, searched to %v, want %d", len(page.Items), page.Next, page.Searched, want)
		}
		next = page.Next
	}
	var page recordsJSON
	b.get("audit?text=needle&cursor="+next).into(t, &page)
	if len(page.Items) != 1 || page.Items[0].Name != "needle" || page.Next != "" || page.Searched != nil {
		t.Errorf("at the beginning: %+v", page)
	}
}

func TestVerification(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(10, "first", "aki")
	b := w.as(console.Viewer)
	var state struct {
		State    string
		OK       *bool
		Problems []string
		Head     string
	}
	check := func() {
		t.Helper()
		if got := b.post("audit/verify", struct{}{}); got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
		done := func() bool {
			b.get("audit/verification").into(t, &state)
			return state.State == "done"
		}
		if !testwait.Until(t, done) {
			t.Fatal("the check does not end")
		}
	}
	if b.get("audit/verification").into(t, &state); state.State != "never" {
		t.Errorf("at first: %+v", state)
	}
	if check(); state.OK == nil || !*state.OK || !strings.Contains(state.Head, ":") {
		t.Errorf("as it was written: %+v", state)
	}
	path := filepath.Join(w.logDir, "audit-00000001.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"user":"aki"`, `"user":"ika"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if check(); state.OK == nil || *state.OK || len(state.Problems) == 0 {
		t.Errorf("after an edit: %+v", state)
	}
	if got := b.get("overview"); !strings.Contains(got.body, `"kind":"audit"`) {
		t.Errorf("the overview does not tell: %s", got.body)
	}
}

// TestVerificationAfterTheEnd: a check that nobody would wait for does not begin.
func TestVerificationAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	b := w.as(console.Viewer)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := b.post("audit/verify", struct{}{}); !strings.Contains(got.body, `"state":"never"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestWithoutAudit(t *testing.T) {
	t.Parallel()
	b := newWorld(t, func(_ *world, o *console.Options) { o.Journal = nil }).as(console.Admin)
	for _, path := range []string{"audit", "audit/verification"} {
		if got := b.get(path); got.code() != "unavailable" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := b.post("audit/verify", struct{}{}); got.code() != "unavailable" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
