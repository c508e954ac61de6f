package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/results"
	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/strictyaml"
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
		if offered.Name == codeTool && offered.Source.Calls != nil {
			reader.Programs = p.Visible(call.Caller, offered)
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

// codeTool is the tool that runs programs.
const codeTool = "run_code"

// serveCall is Call with the record to fill in.
func (p *Pipeline) serveCall(ctx context.Context, call *Call, record *openRecord) (*Result, error) {
	ctx, span, traceID := p.startSpan(ctx, call)
	*record = openRecord{Record: Record{
		ID: "call_" + rand.Text(), Caller: p.recordedCaller(&call.Caller), Method: call.Request.Method,
		Started: time.Now(), Input: len(call.Request.Arguments), TraceID: traceID,
	}}
	if call.parent != nil {
		record.Parent, record.Via = call.parent.record.ID, call.via()
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
	var response *abi.Response
	err := p.checkAudit(record)
	if err == nil {
		response, err = p.callRecovered(ctx, call, record)
		response, err = stopped(ctx, response, err)
	}
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
	p.describe(call, record, response, err)
	record.Duration = time.Since(record.Started)
	if unrecorded := p.recordCall(ctx, call, record, response, err); unrecorded != nil &&
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

// callRecovered converts a panic of the host into an error, so that it fails one call and not the process.
func (p *Pipeline) callRecovered(ctx context.Context, call *Call, record *openRecord) (response *abi.Response, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			p.options.Logger.ErrorContext(ctx, "a call panicked inside the host", "method", record.Method,
				"name", record.Name,
				"err", fmt.Sprint(cause), "stack", string(debug.Stack()))
			response, err = nil, ErrInternal
		}
	}()
	if response, err = p.dispatch(ctx, call, record); err == nil {
		err = p.scanResult(record.Name, response, record)
	}
	if err != nil {
		return nil, p.scanFailure(err, record)
	}
	return response, nil
}

func (p *Pipeline) dispatch(ctx context.Context, call *Call, record *openRecord) (*abi.Response, error) {
	switch call.Request.Method {
	case abi.CallTool:
		return p.callTool(ctx, call, record)
	case abi.ReadResource:
		return p.readResource(ctx, call, record)
	case abi.GetPrompt:
		return p.getPrompt(ctx, call, record)
	case abi.Complete:
		return p.complete(ctx, call, record)
	}
	return nil, &InvalidError{fmt.Sprintf("unknown pipeline method %q", call.Request.Method)}
}

// ErrInternal is a fault of the host. The errors of Call that wrap it add the call's ID, which the log, the audit log
// and the trace have too.
var ErrInternal = errors.New("internal error of the host: its log has the details")

func (p *Pipeline) callTool(ctx context.Context, call *Call, record *openRecord) (*abi.Response, error) {
	offered := p.offerFor(call)
	shown, ok := offered.Tool(call.Request.Name)
	if !ok {
		if shown = p.finderTool(call); shown == nil {
			return nil, p.notFound(call, "tool", call.Request.Name)
		}
	}
	tool := shown.Real()
	record.Name, record.Source = tool.Name, tool.Source.Name
	if err := call.checkGranted(shown); err != nil {
		return nil, err
	}
	request := call.Request
	request.Name = tool.Spec.Name
	if len(request.Arguments) == 0 {
		request.Arguments = json.RawMessage("{}")
	}
	var err error
	if request.Arguments, err = p.scanArguments(tool.Name, request.Arguments, record); err != nil {
		return nil, err
	}
	if request.Arguments, err = offered.arguments(shown.Name, request.Arguments); err != nil {
		return nil, &argumentsError{shown.Name, err}
	}
	if err := tool.Spec.Input().ValidateArguments(request.Arguments); err != nil {
		return nil, &argumentsError{shown.Name, err}
	}
	response, err := p.run(ctx, toolSubject(shown), call, &request, record)
	if err != nil {
		return nil, err
	}
	return response, completeResult(shown, response, p.locale(call))
}

func (p *Pipeline) readResource(ctx context.Context, call *Call, record *openRecord) (*abi.Response, error) {
	view := p.offer(&call.Caller)
	request := call.Request
	request.Arguments = nil // it has none, and they are not validated here
	var source *catalog.Source
	if resource, ok := view.Resource(request.URI); ok {
		source, record.Name = resource.Source, resource.Spec.URI
	} else if template, variables, ok := view.Template(request.URI); ok {
		source, record.Name = template.Source, template.Spec.URITemplate
		request.Template, request.Variables = template.Spec.URITemplate, variables
	} else {
		return nil, p.notFound(call, "resource", request.URI)
	}
	record.Source = source.Name
	return p.run(ctx, methodSubject(source, record.Method), call, &request, record)
}

func (p *Pipeline) getPrompt(ctx context.Context, call *Call, record *openRecord) (*abi.Response, error) {
	prompt, ok := p.offer(&call.Caller).Prompt(call.Request.Name)
	if !ok {
		return nil, p.notFound(call, "prompt", call.Request.Name)
	}
	record.Name, record.Source = prompt.Name, prompt.Source.Name
	request := call.Request
	request.Name = prompt.Spec.Name
	var err error
	if request.Arguments, err = p.scanArguments(prompt.Name, request.Arguments, record); err != nil {
		return nil, err
	}
	if err := checkPrompt(prompt.Spec, request.Arguments); err != nil {
		return nil, err
	}
	return p.run(ctx, methodSubject(prompt.Source, record.Method), call, &request, record)
}

func checkPrompt(spec *manifest.Prompt, raw json.RawMessage) error {
	var given map[string]string
	if len(raw) > 0 {
		if err := strictjson.Unmarshal(raw, &given); err != nil {
			return &InvalidError{"the arguments of a prompt are an object of strings"}
		}
	}
	for _, argument := range spec.Arguments {
		if _, ok := given[argument.Name]; argument.Required && !ok {
			return &InvalidError{fmt.Sprintf("prompt %s needs the argument %s", spec.Name, argument.Name)}
		}
		delete(given, argument.Name)
	}
	for name := range given {
		return &InvalidError{fmt.Sprintf("prompt %s has no argument %s", spec.Name, name)}
	}
	return nil
}

func (p *Pipeline) complete(ctx context.Context, call *Call, record *openRecord) (*abi.Response, error) {
	request := call.Request
	request.Arguments = nil
	if request.Ref == nil || request.Argument == nil {
		return nil, &InvalidError{"a completion needs a ref and an argument"}
	}
	source, name, ref, err := p.resolveReference(call)
	if err != nil {
		return nil, err
	}
	record.Name, record.Source = name, source.Name
	request.Ref = &ref
	response, err := p.run(ctx, methodSubject(source, record.Method), call, &request, record)
	if err == nil && response.Completion == nil {
		response.Completion = &abi.Completion{Values: []string{}}
	}
	return response, err
}

// resolveReference resolves the reference of a completion: its source, its name in the catalog, and the reference with
// the source's own name.
func (p *Pipeline) resolveReference(call *Call) (*catalog.Source, string, abi.Ref, error) {
	view, ref := p.offer(&call.Caller), *call.Request.Ref
	switch ref.Type {
	case "ref/prompt":
		prompt, ok := view.Prompt(ref.Name)
		if !ok {
			return nil, "", ref, p.notFound(call, "prompt", ref.Name)
		}
		return prompt.Source, prompt.Name, abi.Ref{Type: ref.Type, Name: prompt.Spec.Name}, nil
	case "ref/resource":
		for _, template := range view.Templates {
			if template.Spec.URITemplate == ref.URI {
				return template.Source, ref.URI, abi.Ref{Type: ref.Type, URI: ref.URI}, nil
			}
		}
		return nil, "", ref, p.notFound(call, "resource", ref.URI)
	}
	return nil, "", ref, &InvalidError{fmt.Sprintf("a completion is for ref/prompt or ref/resource, not %q", ref.Type)}
}

// run calls the backend if policy, people and quotas permit it.
func (p *Pipeline) run(ctx context.Context, s *subject, call *Call, request *abi.Request,
	record *openRecord) (*abi.Response, error) {
	record.whole, record.Input = request.Arguments, len(request.Arguments)
	record.Arguments = p.shownArguments(record.Name, request.Arguments)
	record.running.change(func(state *RunningState) {
		state.Name, state.Source = strings.Clone(record.Name), strings.Clone(record.Source)
		state.Arguments = record.Arguments // copies
	})
	if err := p.permit(ctx, call, s, request.Arguments, record); err != nil {
		return nil, err
	}
	if call.Permitted != nil {
		if err := call.Permitted(ctx); err != nil {
			return nil, err
		}
	}
	release, err := p.acquireQuota(call, s, record)
	if err != nil {
		return nil, err
	}
	defer func() { release(record.Steps) }()
	tenant := call.Caller.Tenant
	request.Locale = p.locale(call)
	elicitor := &elicitor{ctx: ctx, pipeline: p, call: call, subject: s, record: record}
	invocation := &catalog.Invocation{
		Request: request, Limits: s.limits, Progress: p.scanProgress(record.running.withProgress(call.Progress)),
		Tenant: tenant, User: call.Caller.User, Session: call.Caller.sessionID(), Owner: call.Caller.owner(),
		MaxResult: call.MaxResult,
		Updated:   func(uri string) { p.notifyUpdated(s.source.Name, tenant, uri) },
		Ask:       p.asker(call, s, request.Arguments, record),
		Elicit:    elicitor.elicit, CanElicit: call.Prompter.Fill != nil,
		Steps: &record.Steps,
	}
	if record.running != nil {
		invocation.Delivery = record.running.delivery
	}
	var composed *composer
	if s.source.Calls != nil {
		composed = &composer{pipeline: p, call: call, subject: s, record: record, progress: invocation.Progress}
		invocation.Tools, invocation.Progress = composed, composed.report
		defer func() { record.Steps -= composed.steps.Load() }()
	}
	response, err := serve(ctx, s.source, invocation)
	for errors.Is(err, catalog.ErrClosed) {
		next := p.successor(s, request)
		if next == nil {
			return nil, &abi.Error{Code: abi.CodeNotFound, Message: s.offered +
				" was replaced or removed while the call was on its way, and nothing was called: look again at what " +
				"there is"}
		}
		s.source = next
		response, err = serve(ctx, next, invocation)
	}
	if err != nil && composed != nil {
		err = composed.withCalls(err)
	}
	if err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, response.Error
	}
	return response, nil
}

// serve calls the source with its current roots, and its configuration for the tenant.
func serve(ctx context.Context, s *catalog.Source, invocation *catalog.Invocation) (*abi.Response, error) {
	invocation.Request.Config, invocation.Request.Roots = s.ConfigFor(invocation.Tenant), s.Roots
	return s.Backend.Call(ctx, invocation)
}

func (p *Pipeline) locale(call *Call) string {
	if call.Caller.Locale != "" {
		return call.Caller.Locale
	}
	return p.settings.Load().Locale
}

// notFound returns the error for a name that is not offered.
func (p *Pipeline) notFound(call *Call, kind, name string) error {
	if p.offer(&call.Caller).set != nil { // do not reveal the offers to others
		return &NotFoundError{Kind: kind, Name: name, Near: p.near(call, kind, name)}
	}
	if p.options.Missing != nil {
		if err := p.options.Missing(kind, name); err != nil {
			return err
		}
	}
	if instead, ok := p.catalog.View().Instead(kind, name); ok {
		return &NotFoundError{Kind: kind, Name: name, Hint: instead.In(p.locale(call))}
	}
	return &NotFoundError{Kind: kind, Name: name, Near: p.near(call, kind, name)}
}

// near returns names that are similar to an unknown one and that the call could have.
func (p *Pipeline) near(call *Call, kind, name string) []string {
	var known []string
	view := p.offer(&call.Caller)
	switch kind {
	case "tool":
		for _, tool := range view.Tools {
			if p.mayList(call.Caller, call.via(), tool) && call.checkGranted(tool) == nil {
				known = append(known, tool.Name)
			}
		}
	case "prompt":
		for _, prompt := range view.Prompts {
			known = append(known, prompt.Name)
		}
	}
	near := strictyaml.Suggest(name, known)
	if len(near) == 0 && kind == "tool" && !strings.ContainsFunc(name, isLatin) { // words of a title, in Japanese
		for _, tool := range p.search.find(view.View, name) {
			if slices.Contains(known, tool.Name) && len(near) < maxFound {
				near = append(near, tool.Name)
			}
		}
	}
	return near
}

// maxFound bounds the tools that are suggested for words in place of a name.
const maxFound = 3

func isLatin(r rune) bool { return unicode.Is(unicode.Latin, r) }
