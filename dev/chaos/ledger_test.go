//go:build unix

package chaos

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// faults are calls that were lost or done twice.
type faults []string

func (f *faults) addf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// ledger prints what became of everything, and returns where something was lost or done twice.
func ledger(t *testing.T, l *load, k *killer, project string) (found faults) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\n%d times a replica was killed and started again, %d times the database; seed %d\n\n", k.kills,
		k.restarts, *seed)
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	byKind(table, l.book)
	audited(&found, table, l)
	written(t.Context(), &found, table, l, project)
	renewed(&found, table, l)
	spoken(&found, table, l)
	fmt.Fprintf(table, "sessions that were not found any more\t%d\n", len(l.book.lost))
	fmt.Fprintf(table, "streams that went on at another connection\t%d\n", l.book.resumed)
	if len(l.book.lost) > 0 {
		found.addf("%d sessions were lost", len(l.book.lost))
	}
	_ = table.Flush()
	t.Log(text.String())
	return found
}

// maxReasons limits the reasons that are listed for calls without a good answer, the most frequent first.
const maxReasons = 15

func byKind(table *tabwriter.Writer, b *book) {
	type count struct{ sent, answered, errors, none int }
	counts, reasons := map[string]*count{}, map[string]int{}
	for _, c := range b.calls {
		if counts[c.kind] == nil {
			counts[c.kind] = new(count)
		}
		n := counts[c.kind]
		n.sent++
		switch {
		case c.answered && !c.failed:
			n.answered++
		case c.answered:
			n.errors++
			reasons[fmt.Sprintf("%s: %.150s", c.kind, c.text)]++
		default:
			n.none++
			reasons[fmt.Sprintf("%s: %.150s", c.kind, c.text)]++
		}
	}
	fmt.Fprintln(table, "calls\tsent\tanswered\terrors\tno answer")
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		n := counts[kind]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", kind, n.sent, n.answered, n.errors, n.none)
	}
	fmt.Fprintln(table)
	often := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	for _, reason := range often[:min(len(often), maxReasons)] {
		fmt.Fprintf(table, "%d\t%s\n", reasons[reason], reason)
	}
	fmt.Fprintln(table)
}

// audited compares the answers with the audit log, which must verify.
func audited(f *faults, table *tabwriter.Writer, l *load) {
	traces, records := map[string]int{}, 0
	out := l.world.run("read the audit log", "audit", "query", "--json", "--type", "tools/call")
	scan := bufio.NewScanner(strings.NewReader(out))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var record struct {
			TraceID string `json:"trace_id"`
			Outcome string `json:"outcome"`
		}
		if json.Unmarshal(scan.Bytes(), &record) == nil && record.TraceID != "" {
			records++
			traces[record.TraceID]++
		}
	}
	missing := 0
	for _, c := range l.book.calls {
		if c.answered && !c.failed && traces[c.trace] == 0 {
			if missing++; missing <= 3 {
				f.addf("%s at %s, trace %s: answered and not in the audit log: %.200s", c.kind,
					c.at.Format(time.TimeOnly), c.trace, c.text)
			}
		}
	}
	if missing > 0 {
		f.addf("%d answered calls are not in the audit log", missing)
	}
	verified := l.world.run("verify the audit log", "audit", "verify") // which fails if it was changed
	fmt.Fprintf(table, "records of calls in the audit log\t%d\nanswered calls that are not in it\t%d\n", records,
		missing)
	fmt.Fprintf(table, "hako audit verify\t%s\n", strings.SplitN(strings.TrimSpace(verified), "\n", 2)[0])
}

// written compares what was acknowledged with what the plugin's database has.
func written(ctx context.Context, f *faults, table *tabwriter.Writer, l *load, project string) {
	titles, err := l.titles(ctx, project)
	if err != nil {
		f.addf("%v", err)
		return
	}
	acknowledged, lost, twice, unknown := 0, 0, 0, 0
	sent := map[string]bool{}
	for _, c := range l.book.calls {
		if c.title == "" {
			continue
		}
		sent[c.title] = true
		if c.answered && !c.failed {
			acknowledged++
			if titles[c.title] == 0 {
				lost++
			}
		}
	}
	for title, n := range titles {
		if n > 1 {
			twice++
		}
		if !sent[title] {
			unknown++
		}
	}
	fmt.Fprintf(table, "tasks acknowledged\t%d\ntasks in the database\t%d\nacknowledged and lost\t%d\nwritten twice\t%d\n", acknowledged, len(titles), lost, twice)
	if lost > 0 || twice > 0 || unknown > 0 || acknowledged == 0 {
		f.addf("tasks: %d acknowledged, %d lost, %d twice, %d never sent", acknowledged, lost, twice, unknown)
	}
}

// renewed looks at the uses of refresh tokens, each of which works once.
func renewed(f *faults, table *tabwriter.Writer, l *load) {
	r := l.world.refresh
	r.mu.Lock()
	defer r.mu.Unlock()
	twice := 0
	for _, n := range r.uses {
		if n > 1 {
			twice++
		}
	}
	fmt.Fprintf(table, "refresh tokens used\t%d\nused twice\t%d\nrefused by the vendor\t%d\n", len(r.uses), twice,
		r.burnt)
	ended := slices.ContainsFunc(l.book.calls, func(c *call) bool {
		return c.kind == kindCredential && strings.Contains(c.text, "has to be connected again")
	})
	switch {
	case (ended || r.burnt > 0) && l.world.killedAt(r.last):
		// The vendor's answer, which alone has the next token, died with the replica that waited for it. Nobody can do
		// better.
		fmt.Fprintf(table, "the last token died with a replica, in the moment that it was given out\n")
	case ended:
		f.addf("the credential is lost")
	case twice > 0 || r.burnt > 0:
		f.addf("%d refresh tokens were used twice, %d refused", twice, r.burnt)
	case len(r.uses) < 3:
		f.addf("the credential was renewed %d times only", len(r.uses))
	}
}

// killedAt reports whether a replica was killed within moments of that time.
func (w *world) killedAt(at time.Time) bool {
	for _, r := range w.replicas {
		r.mu.Lock()
		close := slices.ContainsFunc(r.killed, func(k time.Time) bool { return k.Sub(at).Abs() < 2*time.Second })
		r.mu.Unlock()
		if close {
			return true
		}
	}
	return false
}

// spoken looks at the answers in Slack.
func spoken(f *faults, table *tabwriter.Writer, l *load) {
	messages := l.world.fakes.Slack.Messages()
	var taken, once, ended, twice, none, repeated int
	for _, e := range l.events {
		if e.tries > 1 {
			repeated++
		}
		answers, ends := l.replies(messages, e)
		switch {
		case e.taken && answers+ends == 0:
			none++
			f.addf("%s was taken and never answered", e.word)
		case answers > 1 || answers > 0 && ends > 0:
			twice++
			f.addf("%s was answered %d times and ended %d times", e.word, answers, ends)
		case answers == 1:
			once++
		case ends > 0:
			ended++
		}
		if e.taken {
			taken++
		}
	}
	fmt.Fprintf(table, "Slack events sent\t%d\nsent more than once\t%d\ntaken\t%d\nanswered once\t%d\nended honestly\t%d\nanswered twice\t%d\nlost\t%d\n",
		len(l.events), repeated, taken, once, ended, twice, none)
	if once == 0 {
		f.addf("nothing was answered in Slack")
	}
}
