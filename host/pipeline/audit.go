package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/pdk/abi"
)

// Audit records calls. *audit.Log implements it.
type Audit interface {
	// Ready returns an error while recording is not possible.
	Ready() error
	Append(ctx context.Context, event *audit.Event) error
	Digest(data []byte) string
}

// errUnrecorded replaces the response of a call that could not be recorded.
var errUnrecorded = errors.New("the call could not be recorded in the audit log, so its result is withheld: " +
	"the host's log has the reason")

// errUnrecordable refuses a call before it has any effect.
var errUnrecordable = errors.New("the audit log cannot be written, so the call was not made: " +
	"the host's log has the reason")

// checkAudit refuses a call that could not be recorded, unless AuditOptional is set.
func (p *Pipeline) checkAudit(_ context.Context, c *served) error {
	if p.options.Audit == nil || p.settings.Load().AuditOptional {
		return nil
	}
	if err := p.options.Audit.Ready(); err != nil {
		p.options.Logger.Error("a call was refused because the audit log could not be written", "method",
			c.record.Method, "err", err)
		return errUnrecordable
	}
	return nil
}

// recordCall records the call before its response is returned. It fails if that is not possible, unless AuditOptional
// is set.
func (p *Pipeline) recordCall(ctx context.Context, c *served, failure error) error {
	if p.options.Audit == nil {
		return nil
	}
	record, response := c.record, c.response
	event := &audit.Event{
		Time: record.Started, Type: audit.Type(record.Method), Outcome: string(record.Outcome),
		Subject: audit.Subject{
			Frontend: record.Caller.Frontend, Tenant: record.Caller.Tenant, User: record.Caller.User,
			Token: record.Caller.Token, Groups: record.Caller.Groups, Scopes: record.Caller.Scopes,
			Session: record.Caller.Session, Toolset: record.Caller.Toolset,
			Address: record.Caller.Address, ClientName: record.Caller.Client,
			ClientVersion: record.Caller.ClientVersion,
		},
		Target:     audit.Target{Plugin: record.Source, Name: record.Name, Digest: record.Digest},
		DurationMS: float64(record.Duration.Microseconds()) / 1000,
		InputBytes: record.Input, OutputBytes: record.Output, Findings: findings(record),
		Call: record.ID, Parent: record.Parent, Via: record.Via, RequestID: record.Caller.RequestID,
		TraceID:       record.TraceID,
		HTTPRequestID: record.Caller.HTTPRequestID,
		Arguments:     p.recordedArguments(c), OutputSummary: record.Summary,
	}
	if record.Name == "" {
		event.Target.Name = clipped(p.maskSecrets(requestedName(&c.Request)))
	}
	if record.Action != "" {
		event.Decision = &audit.Decision{Action: string(record.Action), Rule: record.Rule, Policy: record.Policy}
	}
	if n := len(record.Answers); n > 0 {
		event.Approval = &audit.Approval{ID: record.Question, By: record.Approver, Answer: record.Answers[n-1].Outcome}
	}
	for _, e := range record.Elicitations {
		event.Elicited = append(event.Elicited, audit.Elicited{Mode: e.Mode, Outcome: e.Outcome})
	}
	if response != nil && len(response.StructuredContent) > 0 {
		event.Result = digestJSON(p.options.Audit.Digest(response.StructuredContent))
	}
	if failure != nil {
		event.Error = clipped(string(record.Outcome))
	}
	// The call is recorded however it ended, also if the caller has disconnected.
	if err := p.options.Audit.Append(context.WithoutCancel(ctx), event); err != nil {
		p.options.Logger.Error("a call could not be recorded in the audit log", "method", record.Method,
			"name", record.Name, "err", err)
		if !p.settings.Load().AuditOptional {
			return errUnrecorded
		}
	}
	return nil
}

// requestedName is the requested name as the client wrote it. It may be twice as long as the recorded one, so that
// secrets can be masked before it is cut.
func requestedName(r *abi.Request) string {
	name := r.Name + r.URI
	if r.Ref != nil {
		name += r.Ref.Name + r.Ref.URI
	}
	return name[:min(len(name), 2*maxRecorded)]
}

func findings(record *openRecord) (list []audit.Finding) {
	for _, f := range record.Findings {
		list = append(list, audit.Finding{Rule: f.Rule, Place: string(f.Place), Action: string(f.Action)})
	}
	return list
}

// recordedArguments is the recorded form of the arguments: a digest, and the fields in AuditFields.
func (p *Pipeline) recordedArguments(c *served) json.RawMessage {
	arguments := c.record.whole
	if arguments == nil {
		arguments = c.Request.Arguments
	}
	if len(arguments) == 0 {
		return nil
	}
	digest := digestJSON(p.options.Audit.Digest(arguments))
	if c.record.Arguments == nil {
		return digest
	}
	fields := maps.Clone(c.record.Arguments)
	fields["digest"] = digest
	encoded, err := json.Marshal(fields)
	if err != nil {
		return digest
	}
	return encoded
}

// shownArguments returns the fields in AuditFields, with secrets masked. It is nil if the operator wants none of the
// tool's.
func (p *Pipeline) shownArguments(name string, arguments json.RawMessage) map[string]json.RawMessage {
	fields := p.settings.Load().AuditFields[name]
	if len(fields) == 0 {
		return nil
	}
	if s := p.scanner(); s != nil {
		arguments = s.MaskedJSON(arguments)
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil {
		return nil
	}
	shown := map[string]json.RawMessage{}
	for name, value := range given {
		if slices.Contains(fields, name) && len(value) <= maxRecorded {
			shown[name] = value
		}
	}
	return shown
}

// describe sets the parts of the record that describe arguments, result and failure, if anybody sees them.
func (p *Pipeline) describe(c *served, err error) {
	if p.options.Audit == nil && p.options.Observer == nil {
		return
	}
	record := c.record
	if record.Arguments == nil { // refused before it ran
		record.Arguments = p.shownArguments(record.Name, c.Request.Arguments)
	}
	record.Summary = p.summary(record, c.response)
	var wire *abi.Error
	if err != nil && !errors.As(err, &wire) {
		record.Error = clipped(strings.TrimSpace(err.Error() + "\n" + catalog.Stack(err)))
	}
}

// maxRecorded bounds a recorded field of the arguments, and a recorded unknown name, in bytes.
const maxRecorded = 4 << 10

func digestJSON(digest string) json.RawMessage {
	return json.RawMessage(`"` + digest + `"`) // hexadecimal digits
}

func clipped(text string) string { return clip.Bytes(text, maxRecorded) }
