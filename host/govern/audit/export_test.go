package audit_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/govern/audit"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	entry := &audit.Entry{Seq: 7, Prev: "00", Event: *call("a|b=c\nd")}
	entry.Time = time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	entry.Outcome, entry.Error = "denied", "rule x=1 | says\nno"
	write := func(f audit.Format) string {
		var b strings.Builder
		if err := entry.Write(&b, f, "1.0"); err != nil {
			t.Fatal(err)
		}
		if strings.Count(b.String(), "\n") != 1 {
			t.Errorf("%s is not one line: %q", f, b.String())
		}
		return b.String()
	}
	const cef = `CEF:0|hako|hako|1.0|tools/call|tools/call a\|b=c d|5|rt=1795136523000 externalId=7 outcome=denied suser=aki app=terminal ` +
		`cs1Label=tenant cs1=acme cs2Label=plugin cs2=weather cs4Label=previousHash cs4=00 fname=a|b\=c\nd msg=rule x\=1 | says\nno` + "\n"
	if got := write(audit.CEF); got != cef {
		t.Errorf("CEF:\n%s\nwant\n%s", got, cef)
	}
	var event struct {
		ClassUID int   `json:"class_uid"`
		TypeUID  int   `json:"type_uid"`
		Time     int64 `json:"time"`
		StatusID int   `json:"status_id"`
		Actor    struct {
			User struct{ Name string }
		}
		Unmapped audit.Entry
	}
	if err := json.Unmarshal([]byte(write(audit.OCSF)), &event); err != nil {
		t.Fatal(err)
	}
	if event.ClassUID != 6003 || event.TypeUID != 600399 || event.Time != 1795136523000 || event.StatusID != 2 ||
		event.Actor.User.Name != "aki" || event.Unmapped.Seq != 7 {
		t.Errorf("OCSF: %+v", event)
	}
	var line audit.Entry
	if err := json.Unmarshal([]byte(write(audit.JSONL)), &line); err != nil || line.Target.Name != entry.Target.Name {
		t.Errorf("JSONL: %+v, %v", line, err)
	}
	if err := entry.Write(new(strings.Builder), "xml", ""); err == nil {
		t.Error("xml is written")
	}
}

// TestOutcomesInFormats: SIEMs alert on failures, and an operation that has only begun is none.
func TestOutcomesInFormats(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]struct {
		status   string
		severity string
	}{
		"":                              {"Success", "1"},
		audit.OutcomeOK:                 {"Success", "1"},
		audit.OutcomeBegun:              {"Begun", "1"},
		audit.OutcomeFailed:             {"Failure", "5"},
		audit.OutcomeRefused:            {"Failure", "5"},
		"denied":                        {"Failure", "5"},
		"an outcome of a later version": {"Failure", "5"},
	} {
		operation := &audit.Operation{Action: "plugin.approve", Target: audit.Target{Name: "weather"}}
		entry := &audit.Entry{Seq: 1, Event: *operation.Event(outcome, nil)}
		var ocsf, cef strings.Builder
		if err := errors.Join(entry.Write(&ocsf, audit.OCSF, "1.0"), entry.Write(&cef, audit.CEF, "1.0")); err != nil {
			t.Fatal(err)
		}
		var event struct{ Status string }
		if err := json.Unmarshal([]byte(ocsf.String()), &event); err != nil || event.Status != want.status {
			t.Errorf("%q in OCSF: status %q, want %q, %v", outcome, event.Status, want.status, err)
		}
		if severity := strings.Split(cef.String(), "|")[6]; severity != want.severity {
			t.Errorf("%q in CEF: severity %s, want %s", outcome, severity, want.severity)
		}
	}
}
