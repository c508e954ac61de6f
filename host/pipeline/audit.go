package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/approval"
	"github.com/hako-run/hako/host/audit"
	"github.com/hako-run/hako/pdk/abi"
)

// Audit records calls. *audit.Log does.
type Audit interface {
	// Ready returns an error while nothing can be recorded.
	Ready() error
	Append(ctx context.Context, event *audit.Event) error
	Digest(data []byte) string
}

// errUnrecorded withholds the answer of a call that could not be recorded.
var errUnrecorded = errors.New("the call could not be recorded in the audit log, and so its answer is withheld: the host's log says why")

// errUnrecordable refuses a call before it has any effect.
var errUnrecordable = errors.New("nothing can be recorded in the audit log at present, and so the call was not made: the host's log says why")

// recordable refuses a call that could not be recorded, unless the operator prefers that.
func (p *Pipeline) recordable(record *Record) error {
	if p.options.Audit == nil || p.settings.Load().AuditOptional {
		return nil
	}
	if err := p.options.Audit.Ready(); err != nil {
		p.options.Logger.Error("a call was refused because it could not be recorded", "method", record.Method, "err", err)
		return errUnrecordable
	}
	return nil
}

// account records the call before its answer leaves. Without a record there is no answer, unless the operator prefers that.
func (p *Pipeline) account(ctx context.Context, call *Call, record *Record, response *abi.Response, failure error) error {
	if p.options.Audit == nil {
		return nil
	}
	event := &audit.Event{
		Time: record.Started, Type: audit.Type(record.Method), Outcome: string(record.Outcome),
		Subject: audit.Subject{
			Door: record.Caller.Door, Tenant: record.Caller.Tenant, User: record.Caller.User, Session: record.Caller.Session,
			Address: record.Caller.Address, ClientName: record.Caller.Client, ClientVersion: record.Caller.ClientVersion,
		},
		Target:     audit.Target{Plugin: record.Source, Name: record.Name, Digest: record.Digest},
		DurationMS: float64(record.Duration.Microseconds()) / 1000,
		InputBytes: record.Input, OutputBytes: record.Output, Findings: findings(record),
		RequestID: record.Caller.RequestID, TraceID: record.TraceID,
		Arguments: p.recorded(record, call.Request.Arguments), OutputSummary: p.summary(record, response),
	}
	if record.Name == "" {
		event.Target.Name = clipped(p.masked(requested(&call.Request)))
	}
	if record.Action != "" {
		event.Decision = &audit.Decision{Action: string(record.Action), Rule: record.Rule}
	}
	if n := len(record.Answers); n > 0 {
		event.Approval = &audit.Approval{ID: record.Question, By: record.Approver, Answer: record.Answers[n-1].Outcome}
	}
	for _, e := range record.Elicited {
		event.Elicited = append(event.Elicited, audit.Elicited{Mode: e.Mode, Outcome: e.Outcome})
	}
	if response != nil && len(response.StructuredContent) > 0 {
		event.Result = digested(p.options.Audit.Digest(response.StructuredContent))
	}
	if failure != nil {
		event.Error = clipped(string(record.Outcome))
	}
	// The record is written however the call ended, also when the caller has gone.
	if err := p.options.Audit.Append(context.WithoutCancel(ctx), event); err != nil {
		p.options.Logger.Error("a call could not be recorded in the audit log", "method", record.Method, "name", record.Name, "err", err)
		if !p.settings.Load().AuditOptional {
			return errUnrecorded
		}
	}
	return nil
}

// requested is the name that a request asks for, as the client wrote it. Before secrets in it are masked it may be twice as long as what is
// recorded, so that none is cut in two.
func requested(r *abi.Request) string {
	name := r.Name + r.URI
	if r.Ref != nil {
		name += r.Ref.Name + r.Ref.URI
	}
	return name[:min(len(name), 2*maxRecorded)]
}

func findings(record *Record) (list []audit.Finding) {
	for _, f := range record.Findings {
		list = append(list, audit.Finding{Rule: f.Rule, Place: string(f.Place), Action: string(f.Action)})
	}
	return list
}

// recorded is what the log says of the arguments: a digest, and the fields that the operator wants to see.
func (p *Pipeline) recorded(record *Record, arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		return nil
	}
	digest := p.options.Audit.Digest(arguments)
	fields := p.settings.Load().AuditFields[record.Name]
	if len(fields) == 0 {
		return digested(digest)
	}
	var given, shown map[string]json.RawMessage
	if s := p.scanner(); s != nil {
		arguments = s.MaskedJSON(arguments)
	}
	if json.Unmarshal(arguments, &given) != nil {
		return digested(digest)
	}
	shown = map[string]json.RawMessage{"digest": digested(digest)}
	for name, value := range given {
		if slices.Contains(fields, name) && len(value) <= maxRecorded {
			shown[name] = value
		}
	}
	encoded, err := json.Marshal(shown)
	if err != nil {
		return digested(digest)
	}
	return encoded
}

// maxRecorded bounds one field of the arguments in the log, and what a client sent in the place of a name, in bytes.
const maxRecorded = 4 << 10

func digested(digest string) json.RawMessage {
	return json.RawMessage(`"` + digest + `"`) // hexadecimal digits
}

func clipped(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxRecorded)], "") }

var _ Approvals = (*approval.Desk)(nil)
