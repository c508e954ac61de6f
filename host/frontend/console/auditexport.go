package console

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/visible"
)

const (
	// maxExports bounds the concurrent exports. Each may read the whole audit log.
	maxExports = 2
	// exportStall ends an export whose client takes no data for this long.
	exportStall = time.Minute
	// exportBatch is the number of records that are read between two checks of the client.
	exportBatch = 500
)

var faultExports = &fault{code: codeLimited, retry: 30, text: manifest.Text{
	"en": "Other exports of the audit log are running.", "ja": "監査ログの別の書き出しが実行中です。",
}, remedy: manifest.Text{"en": "Try again when they have ended.", "ja": "終わってから再度お試しください。"}}

// exportAudit streams the records that the search page would show for the same parameters, oldest first, up to the
// newest one at the start. The export is an operation: if it cannot be recorded, nothing is sent.
func (c *Console) exportAudit(w http.ResponseWriter, q *request) error {
	if c.options.Journal == nil {
		return faultNoAudit
	}
	format := q.param("format")
	kind, known := exportTypes[format]
	if !known {
		return invalid("format must be jsonl or csv")
	}
	s, err := newSearch(q)
	if err != nil {
		return err
	}
	select {
	case c.exports <- struct{}{}:
		defer func() { <-c.exports }()
	default:
		return faultExports
	}
	newest, err := c.options.Journal.Last(q.Context(), &audit.Query{OwnNotes: true}, 1)
	if err != nil {
		return err
	}
	s.query.Before = 1
	if len(newest) > 0 {
		s.query.Before = newest[0].Seq + 1
	}
	o := &audit.Operation{Action: "audit.export", Detail: map[string]string{"format": format}}
	for _, name := range auditFilters {
		if value := q.param(name); value != "" {
			o.Detail[name] = value
		}
	}
	sending := false
	err = c.audited(q, o, func() error {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Disposition", `attachment; filename="hako-audit-`+
			c.now().UTC().Format("20060102-150405")+"."+format+`"`)
		sending = true
		n, err := c.export(w, q, s, format)
		o.Detail["records"] = strconv.Itoa(n)
		return err
	})
	if err != nil && sending {
		panic(http.ErrAbortHandler) // the client must not take what it has for the whole
	}
	return err
}

var exportTypes = map[string]string{
	"jsonl": "application/x-ndjson; charset=utf-8", "csv": "text/csv; charset=utf-8",
}

// export writes the records of a search. It returns how many there were.
func (c *Console) export(w io.Writer, q *request, s *search, format string) (n int, err error) {
	out := bufio.NewWriter(w)
	var write func(*recordJSON) error
	flush := out.Flush
	switch format {
	case "csv":
		sheet := newSheet(out)
		write = sheet.write
		flush = func() error { return errors.Join(sheet.flush(), out.Flush()) }
	default:
		encoder := json.NewEncoder(out) // it ends each record with a line break
		write = func(r *recordJSON) error { return encoder.Encode(r) }
	}
	extend := func() error {
		if err := q.control.SetWriteDeadline(time.Now().Add(exportStall)); !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return nil
	}
	if err := extend(); err != nil {
		return 0, err
	}
	read := 0
	for e, err := range c.options.Journal.Read(q.Context(), &s.query) {
		if read++; read%exportBatch == 0 {
			err = errors.Join(err, q.Context().Err(), flush(), extend())
		}
		if err != nil {
			return n, err
		}
		if !s.matches(e) {
			continue
		}
		if err := write(newRecord(e)); err != nil {
			return n, err
		}
		n++
	}
	return n, flush()
}

// sheet writes records as CSV (RFC 4180) for spreadsheets, which need a byte order mark to take it for UTF-8.
type sheet struct{ csv *csv.Writer }

var sheetHead = []string{
	"seq", "time", "type", "action", "name", "plugin", "user", "tenant", "token", "frontend", "session", "address",
	"client", "decision", "rule", "approval", "approved_by", "outcome", "duration_ms", "input_bytes", "output_bytes",
	"trace_id", "error", "detail", "fields", "findings",
}

func newSheet(w io.Writer) *sheet {
	_, _ = io.WriteString(w, "\ufeff") // the Writer reports the error again
	s := &sheet{csv.NewWriter(w)}
	_ = s.csv.Write(sheetHead)
	return s
}

func (s *sheet) flush() error {
	s.csv.Flush()
	return s.csv.Error()
}

func (s *sheet) write(r *recordJSON) error {
	var answer, by string
	if r.Approval != nil {
		answer, by = r.Approval.Answer, r.Approval.By
	}
	cells := []string{
		strconv.FormatUint(r.Seq, 10), r.Time.Format(time.RFC3339Nano), string(r.Type), r.Action, r.Name, r.Plugin,
		r.Who.User, r.Who.Tenant, r.Who.Token, r.Who.Frontend, r.Who.Session, r.Who.Address, r.Who.Client, r.Decision,
		r.Rule, answer, by, r.Outcome, strconv.FormatFloat(r.DurationMS, 'f', -1, 64), strconv.Itoa(r.InputBytes),
		strconv.Itoa(r.OutputBytes), r.TraceID, r.Error, inCell(r.Detail,
			len(r.Detail)), inCell(r.Fields, len(r.Fields)),
		inCell(r.Findings, len(r.Findings)),
	}
	for i := range cells {
		cells[i] = harmless(cells[i])
	}
	return s.csv.Write(cells)
}

// inCell returns a list or a map with n entries as JSON, or "" without entries.
func inCell(v any, n int) string {
	if n == 0 {
		return ""
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// Signs at which spreadsheets begin a formula, and characters after which some of them begin another cell, whatever the
// quotes.
const (
	formulaSigns = "=+-@|%＝＋－＠"
	cellBreaks   = ";\t\r\n"
)

// harmless marks a text that spreadsheets would run as a formula, also after spaces and hidden characters and in full
// width, with an apostrophe, as OWASP advises.
func harmless(cell string) string {
	var b strings.Builder
	mark := strings.IndexAny(cell, cellBreaks) == 0
	begins := true // nothing of a cell has been seen
	for i, r := range cell {
		if begins && strings.ContainsRune(formulaSigns, r) {
			if strings.ContainsAny(cell[:i], cellBreaks) {
				b.WriteByte('\'')
			} else {
				mark = true
			}
		}
		b.WriteRune(r)
		begins = strings.ContainsRune(cellBreaks, r) || begins && (unicode.IsSpace(r) || visible.Hidden(r))
	}
	if mark {
		return "'" + b.String()
	}
	return b.String()
}
