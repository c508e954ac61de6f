package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Who returns the user, tenant and frontend of an entry, for people.
func (e *Entry) Who() string {
	user := cmp.Or(e.Subject.User, e.Subject.Token, "-")
	if e.Subject.Tenant != "" {
		user += " of " + e.Subject.Tenant
	}
	if e.Subject.Frontend != "" {
		user += " (" + e.Subject.Frontend + ")"
	}
	return user
}

// What returns the action or the target of an entry, for people.
func (e *Entry) What() string {
	switch {
	case e.Action != "":
		return strings.TrimSpace(e.Action + " " + cmp.Or(e.Target.Plugin, e.Target.Name))
	case e.Target.Plugin != "":
		return e.Target.Plugin + "/" + e.Target.Name
	case e.Target.Name != "":
		return e.Target.Name
	}
	return string(e.Type)
}

// Took returns the duration of a call, for people; empty if it has none.
func (e *Entry) Took() string {
	if e.DurationMS == 0 {
		return ""
	}
	return time.Duration(e.DurationMS * float64(time.Millisecond)).Round(100 * time.Microsecond).String()
}

// More returns the rest of an entry, for people: the deciding rule, the approval, findings, details and the error.
func (e *Entry) More() string {
	var parts []string
	if e.Decision != nil && e.Decision.Rule != "" {
		parts = append(parts, fmt.Sprintf("%s by rule %q", e.Decision.Action, e.Decision.Rule))
	}
	if e.Approval != nil {
		parts = append(parts, strings.TrimSpace("asked: "+e.Approval.Answer+" "+e.Approval.By))
	}
	for _, f := range e.Findings {
		parts = append(parts, fmt.Sprintf("secret in %s: %s (%s)", f.Place, f.Rule, f.Action))
	}
	for _, key := range slices.Sorted(maps.Keys(e.Detail)) {
		parts = append(parts, key+"="+e.Detail[key])
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Arguments, &fields) == nil {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if key != "digest" {
				parts = append(parts, key+"="+string(fields[key]))
			}
		}
	}
	if e.Error != "" && e.Error != e.Outcome {
		parts = append(parts, e.Error)
	}
	return strings.Join(parts, "; ")
}
