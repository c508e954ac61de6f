package pipeline

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/pdk/abi"
)

// Options configures a Pipeline. A nil *Options means all defaults.
type Options struct {
	// Missing returns a *NotAllowedError for a name that waits for consent, or nil. It may be nil.
	Missing func(kind, name string) error
	// Offered reports whether callers of the tenant can use the tool; others are not suggested to them. It may be nil.
	Offered func(tenant string, tool *catalog.Tool) bool
	// Settings are in force until Set is called.
	Settings
	Governance
	// Results keeps results that are larger than Call.MaxResult. Nil keeps none, and passes them on whole.
	Results *results.Keeper
	// Tracer creates a span for every call. Nil creates none.
	Tracer *trace.Tracer
	// Observer is notified of every call. It may be nil.
	Observer Observer
	// Logger receives internal errors. Nil discards them.
	Logger *slog.Logger
}

// Governance has the parts that decide about calls and record them. Each may be omitted.
type Governance struct {
	// Policy returns the current policy. Nil allows every call.
	Policy func() *policy.Policy
	// Approvals asks people if the policy requires it. Nil means that nobody can be asked.
	Approvals Approvals
	// Quotas limits calls. It may be nil.
	Quotas Quotas
	// Audit records every call before its response is returned. Nil records nothing. A call that cannot be recorded
	// fails unless Settings.AuditOptional is set.
	Audit Audit
	// Scanner returns the scanner for secrets in arguments and results. Nil disables scanning.
	Scanner func() *secretscan.Scanner
}

// Pipeline takes calls from frontends to backends. It is safe for concurrent use.
type Pipeline struct {
	catalog *catalog.Catalog
	options Options
	// settings are in force. Those in options are as they were at first.
	settings       atomic.Pointer[Settings]
	stages         []stage // path
	updateWatchers updateWatchers
	search         search
	offers         offers
}

// New returns a Pipeline on the catalog.
func New(c *catalog.Catalog, options *Options) *Pipeline {
	p := &Pipeline{catalog: c}
	if options != nil {
		p.options = *options
	}
	p.stages = p.path()
	p.Set(p.options.Settings)
	if p.options.Logger == nil {
		p.options.Logger = slog.New(slog.DiscardHandler)
	}
	return p
}

// Call makes one call.
//
// Errors that concern a tool, including its arguments and limits, are a Result with IsError and a text on which a model
// can act. An error is returned if there was no tool to call or the request is invalid: *NotFoundError,
// *NotAllowedError, *InvalidError, *abi.Error of a resource or prompt, or the error of ctx. Details of internal errors
// are only logged.
func (p *Pipeline) Call(ctx context.Context, call *Call) (*Result, error) {
	call = p.unwrap(call)
	result, err := p.serveCall(ctx, call, new(openRecord))
	if err == nil && p.options.Results != nil && call.MaxResult > 0 && call.Request.Method == abi.CallTool {
		p.shorten(ctx, call, result.Response)
	}
	return result, err
}

// shorten keeps a result that is larger than the caller takes at once, if the caller can read it later: with
// read_result, or as a resource, which MCP clients have. For other callers the result stays whole, and their frontend
// cuts it off. To an MCP client a result without the structured content that the tool's output schema requires has to
// be an error: clients refuse it otherwise.
func (p *Pipeline) shorten(ctx context.Context, call *Call, response *abi.Response) {
	o, f := p.offer(&call.Caller), call.Caller.Frontend
	tool, ok := o.Tool(call.Request.Name)
	if !ok || tool.Source.Own { // it keeps to the limit
		return
	}
	isMCP := f == FrontendHTTP || f == FrontendStdio
	reader := results.Reader{Owner: call.Caller.owner()}
	for _, offered := range o.Tools {
		if offered.Source.Own && offered.Real().Name == results.Tool {
			reader.Tool = offered.Name
		}
		if offered.Spec.Declarations && offered.Source.Calls != nil && p.Visible(call.Caller, offered) {
			reader.Program = offered.Name
		}
	}
	if reader.Tool == "" && !isMCP {
		return
	}
	_, structured := p.options.Results.Shorten(ctx, response, tool.Name, reader, call.MaxResult)
	if structured && tool.Spec.OutputSchema != nil && isMCP {
		response.IsError = true
	}
}

// serveCall is Call with the record to fill in.
func (p *Pipeline) serveCall(ctx context.Context, call *Call, record *openRecord) (*Result, error) {
	ctx, span, traceID := p.startSpan(ctx, call)
	*record = openRecord{Record: Record{
		ID: "call_" + rand.Text(), Caller: p.recordedCaller(&call.Caller), Method: call.Request.Method,
		Started: time.Now(), Input: len(call.Request.Arguments), TraceID: traceID,
	}, questions: &questions{}}
	if call.parent != nil {
		outer := call.parent.served.record
		record.Parent, record.Via, record.questions = outer.ID, call.via(), outer.questions
	}
	defer func() { endSpan(span, record) }()
	if observer := p.options.Observer; observer != nil {
		ctx, record.running = begin(ctx, record)
		defer record.running.end()
		observer.CallStarted(record.running)
		defer func() {
			record.Duration = time.Since(record.Started)
			observer.CallEnded(*record.detached())
		}()
	}
	c := &served{Call: call, record: record}
	err := p.pass(ctx, c)
	response := c.response
	record.Outcome = outcomeOf(response, err)
	if record.Outcome == Internal && !errors.Is(err, ErrInternal) && !errors.Is(err, errUnrecordable) {
		p.options.Logger.ErrorContext(ctx, "a call failed with an internal error", "method", record.Method,
			"name", record.Name, "err", err)
		err = ErrInternal
	}
	switch record.Outcome {
	case Internal, Trap, InvalidResult: // somebody has to look at it
		if err != nil {
			err = fmt.Errorf("%w (%s)", err, record.ID)
		}
	}
	if err == nil {
		record.Output = responseSize(response)
	}
	p.describe(c, err)
	record.Duration = time.Since(record.Started)
	if unrecorded := p.recordCall(ctx, c, err); unrecorded != nil &&
		!errors.Is(err, errUnrecordable) {
		record.Outcome, response, err = Internal, nil, fmt.Errorf("%w (%s)", unrecorded, record.ID)
		record.Error = unrecorded.Error()
	}
	stack := catalog.Stack(err)
	if stack == "" && response != nil {
		stack = response.Stack
	}
	if err != nil && record.Method == abi.CallTool {
		response, err = asToolError(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	return &Result{response, record.Outcome, stack}, nil
}

// ErrInternal is a fault of the host. The errors of Call that wrap it add the call's ID, which the log, the audit log
// and the trace have too.
var ErrInternal = errors.New("internal error of the host: its log has the details")

func (p *Pipeline) locale(call *Call) string {
	if call.Caller.Locale != "" {
		return call.Caller.Locale
	}
	return p.settings.Load().Locale
}
