package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// vendor is a client of one provider API.
type vendor interface {
	// dialect returns the API's limits on tool definitions.
	dialect() dialect
	// send sends one request. The error is an *Error without Provider, or ctx's.
	send(ctx context.Context, x *exchange) (*Response, error)
}

// exchange is one request prepared for a vendor.
type exchange struct {
	key string // or empty
	*Request
	messages []Message // normalized, with the IDs to send
	// ids are the IDs of calls in messages.
	ids     map[string]bool
	tools   *toolset
	without map[string]bool // parameters that the provider rejects
	spec    *Spec
	// emit passes a part of the response on. A part other than text is empty.
	emit func(text string)
}

// model adds retries, tool adaptation and metrics to the vendor of one Spec. It is safe for concurrent use.
type model struct {
	spec    Spec
	vendor  vendor
	tools   *toolAdapter
	key     *secret.Secret // nil if there is none
	observe func(Completion)
	logger  *slog.Logger
	// closeIdle closes the vendor's idle connections.
	closeIdle func()

	mu        sync.Mutex
	without   map[string]bool // guarded by mu, copied on write: parameters that the provider rejects
	coolUntil time.Time       // guarded by mu: until then other models are tried first
}

func newModel(spec Spec, v vendor, o *Options) *model {
	m := &model{spec: spec, vendor: v, observe: o.Observe, logger: o.Logger.With("model", spec.Name),
		without: map[string]bool{}}
	m.tools = newToolAdapter(v.dialect(), m.logger)
	if !spec.Key.IsZero() {
		m.key = secret.New(spec.Key)
	}
	return m
}

// attempt is the state of one complete call.
type attempt struct {
	*model
	request    *Request
	stream     func(Delta)
	begin      time.Time
	completion Completion
	shown      bool // stream was called
	changed    bool // the request was adapted after an error: send it again at once
	changes    int
	retries    int
	usedKey    string // the key of the last request
	keyReread  bool
}

// complete sends the request to the model, with retries. shown reports whether stream was called.
func (m *model) complete(ctx context.Context, r *Request, stream func(Delta)) (response *Response,
	shown bool, err error) {
	a := &attempt{model: m, request: r, stream: stream, begin: time.Now()}
	ctx, span := trace.Start(ctx, trace.Chat, trace.Client)
	defer span.End()
	response, err = a.run(ctx)
	a.completion.Name, a.completion.Model, a.completion.Duration = m.spec.Name, m.spec.Model, time.Since(a.begin)
	a.completion.Outcome, a.completion.TraceID = Completed, trace.ID(ctx)
	var e *Error
	switch {
	case err == nil:
		response.Name, response.Model = m.spec.Name, cmp.Or(response.Model, m.spec.Model)
		response.Usage = response.Usage.bounded()
		response.Cost = m.spec.Prices.Cost(response.Usage)
		response.endCalls()
		a.completion.Usage, a.completion.Cost = response.Usage, response.Cost
	case errors.As(err, &e):
		e.Name = m.spec.Name
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
		response, err := a.sendOnce(ctx)
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
		if a.shown || !a.changed && !a.rereadKey(ctx, e) && !a.waitForRetry(ctx, e) {
			return nil, e
		}
	}
}

func (a *attempt) sendOnce(ctx context.Context) (*Response, error) {
	x := &exchange{Request: a.request, messages: normalize(a.request.Messages), spec: &a.spec, emit: a.emit}
	if err := checkTurns(x.messages); err != nil {
		return nil, err
	}
	x.ids = setCallIDs(x.messages, x.origin())
	if a.key != nil {
		key, err := a.key.Read(ctx)
		if err != nil {
			return nil, &Error{Kind: Auth, Text: fmt.Sprintf("the key cannot be read: %v", err), Err: err}
		}
		x.key, a.usedKey = key, key
	}
	a.mu.Lock()
	x.without = a.without
	a.mu.Unlock()
	x.tools = a.tools.adaptFor(a.request.Tools, a.spec.defersTools() && !x.without[deferLoading])
	a.completion.Attempts++
	response, err := a.vendor.send(ctx, x)
	var e *Error
	a.changed = false
	if errors.As(err, &e) {
		if e.words != "" {
			a.logger.Debug("the provider answers with an error", "kind", e.Kind, "status", e.Status,
				"words", clip.Marked(redact(e.words, x.key), maxWords))
		}
		a.changed = e.Kind == Invalid && a.dropRejected(x, &e.rejected)
	}
	return response, err
}

// maxWords bounds the provider's message in the log, in bytes.
const maxWords = 2000

// redact removes the key from a text of the provider.
func redact(text, key string) string {
	if key == "" {
		return text
	}
	return strings.ReplaceAll(text, key, "[key]")
}

func (a *attempt) emit(text string) {
	if a.completion.FirstText == 0 {
		a.completion.FirstText = time.Since(a.begin)
	}
	if text != "" && a.stream != nil {
		a.shown = true
		a.stream(Delta{text})
	}
}

// maxTokens bounds the response.
func (x *exchange) maxTokens() int64 {
	if x.MaxTokens > 0 {
		return int64(x.MaxTokens)
	}
	return int64(x.spec.MaxTokens)
}

// optional are the parameters that are omitted after the provider rejected them. Instead of "max_tokens" its newer name
// is sent. Without "include" responses have no State. Without deferLoading the tools that find the deferred ones are
// sent.
var optional = map[string]bool{"include": true, "max_tokens": true, "parallel_tool_calls": true, "stream_options": true,
	"temperature": true, deferLoading: true}

// deferLoading is the member of a tool that defers it. It stands for the search that is sent with deferred tools, too.
const deferLoading = "defer_loading"

// toolParameter matches the index of a tool in the name of a rejected parameter.
var toolParameter = lazyregexp.New(`^tools(?:\.|\[)(\d+)`)

// maxChanges bounds how often one request is adapted to what a provider accepts.
const maxChanges = 32

// dropRejected excludes the rejected tool, keyword of schemas or optional parameter from this and later requests. It
// reports whether the request can be sent again without it.
func (a *attempt) dropRejected(x *exchange, rejected *rejection) bool {
	if a.changes++; a.changes > maxChanges {
		return false
	}
	parameter := rejected.parameter
	if x.tools.deferred && x.tools.dialect.groups && strings.HasPrefix(parameter, "tools") {
		parameter = deferLoading
	}
	if match := toolParameter().FindStringSubmatch(parameter); match != nil {
		i, err := strconv.Atoi(match[1])
		if err != nil || i >= len(x.tools.tools) {
			return false
		}
		a.tools.exclude(&x.tools.tools[i])
		return true
	}
	switch tool := x.tools.sent[rejected.tool]; {
	case tool != nil:
		a.tools.exclude(tool)
		return true
	case rejected.keyword != "":
		return a.tools.dropKeyword(rejected.keyword)
	case !optional[parameter] || x.without[parameter]:
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.without = maps.Clone(a.without)
	a.without[parameter] = true
	a.logger.Debug("the model rejects a parameter", "parameter", parameter)
	return true
}

// rereadKey reads the key again, once, after the provider refused it. It reports whether the key has changed.
func (a *attempt) rereadKey(ctx context.Context, e *Error) bool {
	if e.Kind != Auth || a.key == nil || a.keyReread {
		return false
	}
	a.keyReread = true
	a.key.Forget()
	fresh, err := a.key.Read(ctx)
	return err == nil && fresh != a.usedKey
}
