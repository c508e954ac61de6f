package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
)

const (
	// maxSearches bounds the concurrent searches: each may read the whole audit log.
	maxSearches = 2
	// maxSearched bounds the records that one request searches for a text.
	maxSearched = 10_000
	// maxSearchText bounds the text of a search, in bytes.
	maxSearchText = 200
)

var auditParameters = append(slices.Clip(auditFilters), "cursor", "limit")

// auditFilters are the parameters that select records.
var auditFilters = []string{"tool", "plugin", "user", "tenant", "outcome", "type", "action", "from", "to", "text",
	"asked", "approver"}

// recordJSON is a record of the audit log.
type recordJSON struct {
	Seq         uint64                     `json:"seq"`
	Time        time.Time                  `json:"time"`
	Type        audit.Type                 `json:"type"`
	Who         whoJSON                    `json:"who"`
	Plugin      string                     `json:"plugin,omitempty"`
	Name        string                     `json:"name,omitempty"`
	Outcome     string                     `json:"outcome,omitempty"`
	DurationMS  float64                    `json:"durationMs,omitempty"`
	Action      string                     `json:"action,omitempty"`
	Decision    string                     `json:"decision,omitempty"`
	Rule        string                     `json:"rule,omitempty"`
	Approval    *audit.Approval            `json:"approval,omitempty"`
	Findings    []audit.Finding            `json:"findings,omitempty"`
	Error       string                     `json:"error,omitempty"`
	TraceID     string                     `json:"traceId,omitempty"`
	Call        string                     `json:"call,omitempty"`
	Parent      string                     `json:"parent,omitempty"`
	RequestID   string                     `json:"requestId,omitempty"`
	HTTPRequest string                     `json:"httpRequestId,omitempty"`
	Summary     *audit.OutputSummary       `json:"summary,omitempty"`
	InputBytes  int                        `json:"inputBytes,omitempty"`
	OutputBytes int                        `json:"outputBytes,omitempty"`
	Detail      map[string]string          `json:"detail,omitempty"`
	Fields      map[string]json.RawMessage `json:"fields,omitempty"`
}

type whoJSON struct {
	User     string `json:"user,omitempty"`
	Tenant   string `json:"tenant,omitempty"`
	Token    string `json:"token,omitempty"`
	Frontend string `json:"frontend,omitempty"`
	Session  string `json:"session,omitempty"`
	Address  string `json:"address,omitempty"`
	Client   string `json:"client,omitempty"`
}

// clientOf returns a client's own name and version.
func clientOf(name, version string) string { return strings.TrimSpace(name + " " + version) }

func newRecord(e *audit.Entry) *recordJSON {
	s := e.Subject
	r := &recordJSON{
		Seq: e.Seq, Time: e.Time.UTC(), Type: e.Type, Plugin: e.Target.Plugin, Name: e.Target.Name, Outcome: e.Outcome,
		DurationMS: e.DurationMS,
		Who: whoJSON{s.User, s.Tenant, s.Token, s.Frontend, s.Session, s.Address,
			clientOf(s.ClientName, s.ClientVersion)},
		Action: e.Action, Approval: e.Approval, Findings: e.Findings, Error: e.Error, TraceID: e.TraceID,
		Call: e.Call, Parent: e.Parent, RequestID: e.RequestID, HTTPRequest: e.HTTPRequestID, Summary: e.OutputSummary,
		InputBytes: e.InputBytes, OutputBytes: e.OutputBytes, Detail: e.Detail,
	}
	if e.Decision != nil {
		r.Decision, r.Rule = e.Decision.Action, e.Decision.Rule
	}
	if json.Unmarshal(e.Arguments, &r.Fields) == nil {
		delete(r.Fields, "digest")
	}
	return r
}

// recordsJSON is a page of records, newest first. Searched is the oldest record that was searched, unless it is the
// first one.
type recordsJSON struct {
	listJSON[*recordJSON]
	Searched time.Time `json:"searched,omitzero"`
}

var faultNoAudit = &fault{code: codeUnavailable, text: manifest.Text{
	"en": "There is no audit log.", "ja": "監査ログがありません。",
}, remedy: manifest.Text{"en": "audit.disabled turns it off.", "ja": "audit.disabled により無効になっています。"}}

// audit searches the audit log.
func (c *Console) audit(q *request) (any, error) {
	if c.options.Journal == nil {
		return nil, faultNoAudit
	}
	s, err := newSearch(q)
	if err != nil {
		return nil, err
	}
	leave, err := c.queue(q)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := s.run(q, c.options.Journal)
	if err == nil && s.query.Asked {
		err = c.updateAnswers(q, found.Items)
	}
	return found, err
}

// updateAnswers replaces the answer of questions that waited when they were recorded: a client without a session calls
// again after the answer, which is another record, or does not come back.
func (c *Console) updateAnswers(q *request, records []*recordJSON) error {
	for _, r := range records {
		if r.Approval == nil || r.Approval.Answer != approval.Pending {
			continue
		}
		outcome, by, err := c.options.Approvals.Outcome(q.Context(), r.Approval.ID)
		if errors.Is(err, approval.ErrUnknown) {
			outcome, err = approval.Expired, nil // and forgotten since
		}
		if err != nil {
			return err
		}
		r.Approval = &audit.Approval{ID: r.Approval.ID, By: by, Answer: outcome}
	}
	return nil
}

// queue waits until another expensive request may run, until leave is called. It lifts the limit on the time of the
// response.
func (c *Console) queue(q *request) (leave func(), err error) {
	select {
	case c.searches <- struct{}{}:
		q.untilAnswered()
		return func() { <-c.searches }, nil
	case <-q.Context().Done():
		return nil, q.Context().Err()
	}
}

// search has the parameters of a search.
type search struct {
	query audit.Query
	text  []byte // in lower-case JSON
	limit int
}

func newSearch(q *request) (*search, error) {
	s := &search{query: audit.Query{
		Type: audit.Type(q.param("type")), Outcome: q.param("outcome"), Plugin: q.param("plugin"),
		Name:   q.param("tool"),
		Tenant: q.param("tenant"), User: q.param("user"), Action: q.param("action"),
		Asked: q.param("asked") == "yes", Approver: q.param("approver"),
	}}
	s.query.OwnNotes = s.query.Type != ""
	var err error
	if s.limit, err = q.limit(); err != nil {
		return nil, err
	}
	if s.query.Since, err = q.time("from"); err != nil {
		return nil, err
	}
	if s.query.Until, err = q.time("to"); err != nil {
		return nil, err
	}
	if s.query.Before, err = parseBefore(q.param("cursor")); err != nil {
		return nil, err
	}
	text := q.param("text")
	if len(text) > maxSearchText {
		return nil, invalid("text is longer than %d bytes", maxSearchText)
	}
	if text != "" {
		quoted := lowerJSON(text)
		s.text = quoted[1 : len(quoted)-1]
	}
	return s, nil
}

// time returns a parameter that is a time, or zero if it is missing.
func (q *request) time(name string) (time.Time, error) {
	text := q.param(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalid("%s is a time such as 2026-01-31T15:04:05Z", name)
	}
	return t, nil
}

// parseBefore reads a cursor of records: the number of the last record that was returned.
func parseBefore(cursor string) (uint64, error) {
	key, err := parseCursor(cursor)
	if err != nil || key == "" {
		return 0, err
	}
	n, err := strconv.ParseUint(key, 10, 64)
	if err != nil || n == 0 {
		return 0, invalid("the cursor is not from this list")
	}
	return n, nil
}

// run searches the records from the newest one back: until it has found enough, or, with a text, a bounded number of
// records.
func (s *search) run(q *request, journal Journal) (*recordsJSON, error) {
	count := s.limit + 1
	if s.text != nil {
		count = maxSearched
	}
	entries, err := journal.Last(q.Context(), &s.query, count)
	if err != nil {
		return nil, err
	}
	answer := &recordsJSON{listJSON: listJSON[*recordJSON]{Items: []*recordJSON{}}}
	last := uint64(0)
	for _, e := range slices.Backward(entries) {
		if len(answer.Items) == s.limit {
			answer.Next = formatBefore(last)
			return answer, nil
		}
		if last = e.Seq; s.matches(e) {
			answer.Items = append(answer.Items, newRecord(e))
		}
	}
	if len(entries) == count { // there may be more before
		answer.Next, answer.Searched = formatBefore(last), entries[0].Time.UTC()
	}
	return answer, nil
}

// formatBefore returns the cursor for the records before seq.
func formatBefore(seq uint64) string { return formatCursor(strconv.FormatUint(seq, 10)) }

// matches reports whether the record contains the text anywhere, ignoring case.
func (s *search) matches(e *audit.Entry) bool {
	return s.text == nil || bytes.Contains(lowerJSON(e.Event), s.text)
}

// lowerJSON returns v as lower-case JSON, or nil if it cannot be encoded.
func lowerJSON(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v) != nil {
		return nil
	}
	return bytes.ToLower(bytes.TrimSpace(out.Bytes()))
}
