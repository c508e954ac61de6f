package audit

import (
	"fmt"
	"time"
)

// Query selects entries. Zero fields do not restrict.
type Query struct {
	// Since and Until bound the time. Until is exclusive.
	Since, Until  time.Time
	Type          Type
	Outcome       string
	Plugin, Name  string
	Tenant, User  string
	Token, Action string
	Call          string
	// ID identifies a call, an HTTP request, a trace or a question. Clients choose some of them.
	ID string
	// Asked restricts to calls about which people were asked, and Approver to those that this person answered.
	Asked    bool
	Approver string
	// OwnNotes includes the records of the log itself, such as checkpoints.
	OwnNotes bool
	// After and Before, if not zero, restrict to records with a greater or smaller number.
	After, Before uint64
}

func (q *Query) matches(e *Entry) bool {
	for _, pair := range [][2]string{
		{string(q.Type), string(e.Type)}, {q.Outcome, e.Outcome}, {q.Plugin, e.Target.Plugin}, {q.Name, e.Target.Name},
		{q.Tenant, e.Subject.Tenant}, {q.User, e.Subject.User}, {q.Token, e.Subject.Token}, {q.Action, e.Action},
		{q.Call, e.Call},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	if q.ID != "" && !e.has(q.ID) {
		return false
	}
	if (q.Asked || q.Approver != "") && (e.Approval == nil || q.Approver != "" && e.Approval.By != q.Approver) {
		return false
	}
	if !q.OwnNotes && e.Type.own() {
		return false
	}
	if q.Before > 0 && e.Seq >= q.Before {
		return false
	}
	return e.Seq > q.After && !e.Time.Before(q.Since) && (q.Until.IsZero() || e.Time.Before(q.Until))
}

// has reports whether the event has the ID.
func (e *Event) has(id string) bool {
	return id == e.Call || id == e.HTTPRequestID || id == e.TraceID || e.Approval != nil && id == e.Approval.ID
}

// ParseTime parses a time, a day in the local zone, or a duration before now, as people write them in queries. Empty
// text is the zero time.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, time.DateTime, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write it like 2026-01-31, 2026-01-31T15:04:05+09:00 or 24h (ago)",
		text)
}
