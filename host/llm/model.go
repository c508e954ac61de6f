package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/trace"
)

// vendor speaks one API.
type vendor interface {
	// dialect says what the API accepts of tools.
	dialect() dialect
	// send makes one request. The error is an *Error without Provider, or ctx's.
	send(ctx context.Context, x *exchange) (*Response, error)
}

// exchange is one request as a vendor is to send it.
type exchange struct {
	key string // or empty
	*Request
	messages []Message // in order, as tidy leaves them
	tools    *toolbox
	without  map[string]bool // parameters that the provider does not take
	spec     *Spec
	emit     func(Delta)
}

// model is one Spec at work: a vendor's API with repetitions, names, schemas and figures around it. It is safe for concurrent use.
type model struct {
	spec    Spec
	vendor  vendor
	tools   *workshop
	key     *credential.Secret // nil if there is none
	observe func(Completion)
	logger  *slog.Logger

	mu      sync.Mutex
	without map[string]bool // guarded by mu, replaced rather than changed: parameters that the provider does not take
	resting time.Time       // guarded by mu: other models are asked first until then
}

func newModel(spec Spec, v vendor, o *Options) *model {
	m := &model{spec: spec, vendor: v, observe: o.Observe, logger: o.Logger.With("model", spec.Name), without: map[string]bool{}}
	m.tools = newWorkshop(v.dialect(), m.logger)
	if !spec.Key.IsZero() {
		m.key = credential.NewSecret(spec.Key)
	}
	return m
}

// attempt is a Complete under way.
type attempt struct {
	*model
	request    *Request
	stream     func(Delta)
	begin      time.Time
	completion Completion
	shown      bool // stream was told something
	changed    bool // the next request will not be the one that failed
	changes    int
	waits      int
	used       string // the key of the last request
	rekeyed    bool
}

// complete asks the model, again where that may help. shown says whether stream was told something.
func (m *model) complete(ctx context.Context, r *Request, stream func(Delta)) (response *Response, shown bool, err error) {
	a := &attempt{model: m, request: r, stream: stream, begin: time.Now()}
	ctx, span := trace.Start(ctx, trace.Chat, trace.Client)
	defer span.End()
	response, err = a.run(ctx)
	a.completion.Provider, a.completion.Model, a.completion.Duration = m.spec.Name, m.spec.Model, time.Since(a.begin)
	a.completion.Outcome, a.completion.TraceID = Completed, trace.ID(ctx)
	var e *Error
	switch {
	case err == nil:
		response.Provider, response.Model = m.spec.Name, cmp.Or(response.Model, m.spec.Model)
		response.Cost = m.spec.Prices.Cost(response.Usage)
		response.endCalls()
		a.completion.Usage, a.completion.Cost = response.Usage, response.Cost
	case errors.As(err, &e):
		e.Provider = m.spec.Name
		a.completion.Outcome = string(e.Kind)
	default:
		a.completion.Outcome = Canceled
	}
	describeSpan(span, m.spec.Provider, response, &a.completion)
	m.observe(a.completion)
	return response, a.shown, err
}

func (a *attempt) run(ctx context.Context) (*Response, error) {
	for {
		response, err := a.once(ctx)
		if err == nil {
			return response, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var e *Error
		if !errors.As(err, &e) {
			e = newError(Unavailable, 0, nil, err)
		}
		if a.shown || !a.changed && !a.rekey(ctx, e) && !a.wait(ctx, e) {
			return nil, e
		}
	}
}

// once sends one request.
func (a *attempt) once(ctx context.Context) (*Response, error) {
	x := &exchange{Request: a.request, messages: tidy(a.request.Messages), tools: a.tools.fit(a.request.Tools), spec: &a.spec, emit: a.emit}
	if err := checkTurns(x.messages); err != nil {
		return nil, err
	}
	if a.key != nil {
		key, err := a.key.Read(ctx)
		if err != nil {
			return nil, &Error{Kind: Auth, Text: fmt.Sprintf("the key cannot be read: %v", err), Err: err}
		}
		x.key, a.used = key, key
	}
	a.mu.Lock()
	x.without = a.without
	a.mu.Unlock()
	a.completion.Attempts++
	response, err := a.vendor.send(ctx, x)
	var e *Error
	a.changed = errors.As(err, &e) && e.Kind == Invalid && a.adjust(x, e.parameter)
	return response, err
}

func (a *attempt) emit(d Delta) {
	if a.completion.FirstText == 0 {
		a.completion.FirstText = time.Since(a.begin)
	}
	if a.stream != nil {
		a.shown = true
		a.stream(d)
	}
}

// maxTokens is what bounds the answer.
func (x *exchange) maxTokens() int64 {
	if x.MaxTokens > 0 {
		return int64(x.MaxTokens)
	}
	return int64(x.spec.MaxTokens)
}

// optional are the parameters that a request is sent without once the provider has refused them. "max_tokens" then goes by its other
// name, and "include" is what asks for State.
var optional = map[string]bool{"include": true, "max_tokens": true, "parallel_tool_calls": true, "stream_options": true, "temperature": true}

// toolParameter finds the tool that a provider complains of.
var toolParameter = regexp.MustCompile(`^tools(?:\.|\[)(\d+)`)

// maxChanges bounds how often one request is changed to what a provider accepts.
const maxChanges = 32

// adjust remembers what of x the provider does not accept, and reports whether x can be sent without it.
func (a *attempt) adjust(x *exchange, parameter string) bool {
	if a.changes++; a.changes > maxChanges {
		return false
	}
	if match := toolParameter.FindStringSubmatch(parameter); match != nil {
		i, err := strconv.Atoi(match[1])
		if err != nil || i >= len(x.tools.tools) {
			return false
		}
		a.tools.refuse(&x.tools.tools[i])
		return true
	}
	if !optional[parameter] || x.without[parameter] {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.without = maps.Clone(a.without)
	a.without[parameter] = true
	a.logger.Debug("the model does not take a parameter", "parameter", parameter)
	return true
}

// rekey reads the key again once it was refused, and reports whether it is another one now.
func (a *attempt) rekey(ctx context.Context, e *Error) bool {
	if e.Kind != Auth || a.key == nil || a.rekeyed {
		return false
	}
	a.rekeyed = true
	a.key.Forget()
	fresh, err := a.key.Read(ctx)
	return err == nil && fresh != a.used
}
