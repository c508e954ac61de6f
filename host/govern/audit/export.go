package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Format is an export format.
type Format string

// Formats.
const (
	// JSONL is one line of JSON per record, unchanged.
	JSONL Format = "jsonl"
	// OCSF is the Open Cybersecurity Schema Framework 1.3, class API Activity (6003), one event per line.
	OCSF Format = "ocsf"
	// CEF is ArcSight's Common Event Format, version 0, one event per line.
	CEF Format = "cef"
)

// Write writes the entry as one line. version is the program's. Write fails with w's error, or for an unknown format.
func (e *Entry) Write(w io.Writer, f Format, version string) error {
	switch f {
	case JSONL:
		return json.NewEncoder(w).Encode(e)
	case OCSF:
		return json.NewEncoder(w).Encode(e.ocsf(version))
	case CEF:
		_, err := fmt.Fprintln(w, e.cef(version))
		return err
	}
	return fmt.Errorf("audit: unknown format %q: use jsonl, ocsf or cef", f)
}

// failed reports whether the call or action failed or was refused. An operation that has begun has not.
func (e *Entry) failed() bool {
	switch e.Outcome {
	case "", OutcomeOK, OutcomeBegun:
		return false
	}
	return true
}

// operation returns the name of the call or action.
func (e *Entry) operation() string {
	if e.Action != "" {
		return e.Action
	}
	return string(e.Type)
}

// Values of OCSF: class API Activity of the category Application Activity, activity Other, statuses and severities.
const (
	ocsfClass, ocsfCategory, ocsfOther = 6003, 6, 99
	ocsfSuccess, ocsfFailure           = 1, 2
	ocsfInformational, ocsfLow         = 1, 2
)

func (e *Entry) ocsf(version string) map[string]any {
	status, severity, name := ocsfSuccess, ocsfInformational, "Success"
	switch {
	case e.failed():
		status, severity, name = ocsfFailure, ocsfLow, "Failure"
	case e.Outcome == OutcomeBegun:
		status, name = ocsfOther, "Begun"
	}
	return map[string]any{
		"class_uid": ocsfClass, "category_uid": ocsfCategory, "activity_id": ocsfOther, "activity_name": e.operation(),
		"type_uid": ocsfClass*100 + ocsfOther, "time": e.Time.UnixMilli(), "duration": int64(e.DurationMS),
		"severity_id": severity, "status_id": status, "status": name, "status_code": e.Outcome,
		"status_detail": e.Error,
		"metadata": map[string]any{
			"version": "1.3.0", "uid": strconv.FormatUint(e.Seq, 10), "correlation_uid": e.TraceID,
			"product": map[string]any{"name": "hako", "vendor_name": "hako", "version": version},
		},
		"actor": map[string]any{
			"user":     map[string]any{"name": e.Subject.User, "org": map[string]any{"uid": e.Subject.Tenant}},
			"session":  map[string]any{"uid": e.Subject.Session},
			"app_name": e.Subject.ClientName,
		},
		"api": map[string]any{"operation": e.operation(), "service": map[string]any{"name": e.Target.Plugin},
			"request": map[string]any{"uid": e.RequestID}},
		"resources":    []any{map[string]any{"name": e.Target.Name, "uid": e.Target.Digest}},
		"src_endpoint": map[string]any{"ip": e.Subject.Address, "svc_name": e.Subject.Frontend},
		"unmapped":     e,
	}
}

// Escapers for CEF: the separator is "|" in the header and "=" in extensions.
var (
	cefHeader    = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r", " ", "\n", " ")
	cefExtension = strings.NewReplacer(`\`, `\\`, "=", `\=`, "\r", `\r`, "\n", `\n`)
)

// cefLabels are the labels of CEF's custom fields.
var cefLabels = map[string]string{"cs1": "tenant", "cs2": "plugin", "cs3": "rule", "cs4": "previousHash"}

func (e *Entry) cef(version string) string {
	severity := 1
	if e.failed() {
		severity = 5
	}
	header := []string{"CEF:0", "hako", "hako", version, string(e.Type), e.operation() + " " + e.Target.Name,
		strconv.Itoa(severity)}
	for i := range header {
		header[i] = cefHeader.Replace(header[i])
	}
	extension := []string{}
	for _, field := range [][2]string{
		{"rt", strconv.FormatInt(e.Time.UnixMilli(), 10)}, {"externalId", strconv.FormatUint(e.Seq, 10)},
		{"outcome", e.Outcome},
		{"suser", e.Subject.User}, {"src", e.Subject.Address}, {"app", e.Subject.Frontend},
		{"requestClientApplication", e.Subject.ClientName},
		{"cs1", e.Subject.Tenant}, {"cs2", e.Target.Plugin}, {"cs3", e.rule()}, {"cs4", e.Prev},
		{"fname", e.Target.Name}, {"msg", e.Error},
	} {
		if field[1] == "" {
			continue
		}
		if label := cefLabels[field[0]]; label != "" {
			extension = append(extension, field[0]+"Label="+label)
		}
		extension = append(extension, field[0]+"="+cefExtension.Replace(field[1]))
	}
	return strings.Join(header, "|") + "|" + strings.Join(extension, " ")
}

func (e *Entry) rule() string {
	if e.Decision == nil {
		return ""
	}
	return e.Decision.Rule
}
