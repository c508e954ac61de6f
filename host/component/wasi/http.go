package wasi

import (
	"cmp"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// http is wasi:http for outgoing requests, which the http broker sends: with its rules, credentials, limits, redirects,
// cache and recordings. A plugin is called through tools, so there are no incoming requests.
func (h *host) http() []broker.Interface {
	return []broker.Interface{
		wasi("http/outgoing-handler", functions{"handle": func2(h.handle)}),
		wasi("http/types", join(functions{
			"http-error-code": func1(func(_ caller, e *ioError) any { return e.http }),
		}, h.fieldFunctions(), requestFunctions(), h.responseFunctions(), incomingFunctions())),
	}
}

// web is the state of wasi:http in one call.
type web struct {
	host *host
	// fields and bodies are the bytes of headers, and of request bodies that are not sent yet.
	fields, bodies int64
}

type webKey struct{ host *host }

func (h *host) web(c caller) *web {
	return broker.State(c.Call, webKey{h}, func() *web { return &web{host: h} })
}

// Close implements io.Closer for broker.State. The http broker ends the requests of a call.
func (*web) Close() error { return nil }

// noIncoming is the reason for which functions for incoming requests end the call.
const noIncoming = "hako calls a component through its tools, not with HTTP requests: it offers no wasi:http for " +
	"incoming requests"

// incomingFunctions are the functions of resources that only a server has.
func incomingFunctions() functions {
	refused := func0(func(caller) any { panic(errors.New(noIncoming)) })
	all := functions{}
	for _, name := range []string{
		"[method]incoming-request.method", "[method]incoming-request.path-with-query",
		"[method]incoming-request.scheme", "[method]incoming-request.authority", "[method]incoming-request.headers",
		"[method]incoming-request.consume", "[method]response-outparam.send-informational",
		"[static]response-outparam.set", "[constructor]outgoing-response", "[method]outgoing-response.status-code",
		"[method]outgoing-response.set-status-code", "[method]outgoing-response.headers",
		"[method]outgoing-response.body",
	} {
		all[name] = refused
	}
	return all
}

// outgoingRequest is wasi:http/types.outgoing-request.
type outgoingRequest struct {
	headers                         *fields
	method, path, scheme, authority component.Case // the last three are options
	texts                           int64          // bytes of their texts, which count as headers
	body                            *outgoingBody  // nil until the guest takes it
	handled                         bool
}

// Drop implements component.Dropper. A component that imports functions with other types than WASI's may still hold r.
func (r *outgoingRequest) Drop() {
	r.headers.Drop()
	r.headers.web.fields -= r.texts
	*r = outgoingRequest{headers: r.headers, body: r.body, handled: r.handled}
}

// set sets a field of the request if the value is valid.
func (r *outgoingRequest) set(field *component.Case, value component.Case, valid bool) component.Case {
	if !valid {
		return component.Failed(nil)
	}
	more := textBytes(value) - textBytes(*field)
	r.headers.web.hold(more)
	r.texts += more
	*field = value
	return component.OK(nil)
}

// textBytes returns the bytes of the text that a value is or holds. Other values than texts end the call: a component
// may import a function with other types than WASI's.
func textBytes(value any) int64 {
	switch value := value.(type) {
	case nil:
		return 0
	case string:
		return int64(len(value))
	case component.Case:
		return textBytes(value.Value)
	}
	panic(errType)
}

// requestFunctions are those of outgoing-request and request-options.
func requestFunctions() functions {
	return functions{
		"[constructor]outgoing-request": func1(func(_ caller, headers *fields) any {
			headers.immutable = true
			return &outgoingRequest{headers: headers}
		}),
		"[method]outgoing-request.body": func1(func(_ caller, r *outgoingRequest) any {
			if r.body != nil {
				return component.Failed(nil)
			}
			r.body = &outgoingBody{web: r.headers.web, declared: r.headers.contentLength()}
			return component.OK(r.body)
		}),
		"[method]outgoing-request.headers": func1(func(_ caller, r *outgoingRequest) any { return r.headers.frozen() }),
		"[method]outgoing-request.method":  func1(func(_ caller, r *outgoingRequest) any { return r.method }),
		"[method]outgoing-request.set-method": func2(func(_ caller, r *outgoingRequest, method component.Case) any {
			return r.set(&r.method, method, validMethod(method))
		}),
		"[method]outgoing-request.path-with-query": func1(func(_ caller, r *outgoingRequest) any { return r.path }),
		"[method]outgoing-request.set-path-with-query": func2(func(_ caller, r *outgoingRequest,
			path component.Case) any {
			return r.set(&r.path, path, path.Number == 0 || validPath(text(path)))
		}),
		"[method]outgoing-request.scheme": func1(func(_ caller, r *outgoingRequest) any { return r.scheme }),
		"[method]outgoing-request.set-scheme": func2(func(_ caller, r *outgoingRequest, scheme component.Case) any {
			return r.set(&r.scheme, scheme, scheme.Number == 0 || validScheme(scheme))
		}),
		"[method]outgoing-request.authority": func1(func(_ caller, r *outgoingRequest) any { return r.authority }),
		"[method]outgoing-request.set-authority": func2(func(_ caller, r *outgoingRequest, host component.Case) any {
			return r.set(&r.authority, host, host.Number == 0 || validAuthority(text(host)))
		}),

		"[constructor]request-options":                      func0(func(caller) any { return new(requestOptions) }),
		"[method]request-options.connect-timeout":           timeout(0),
		"[method]request-options.first-byte-timeout":        timeout(1),
		"[method]request-options.between-bytes-timeout":     timeout(2),
		"[method]request-options.set-connect-timeout":       setTimeout(0),
		"[method]request-options.set-first-byte-timeout":    setTimeout(1),
		"[method]request-options.set-between-bytes-timeout": setTimeout(2),
	}
}

// text returns the text that an option or variant holds.
func text(c component.Case) string { return arg[string]([]any{c.Value}, 0) }

// methodNames are the cases of method, without the last one, "other".
var methodNames = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func methodName(method component.Case) string {
	if int(method.Number) < len(methodNames) {
		return methodNames[method.Number]
	}
	return text(method)
}

func validMethod(method component.Case) bool {
	return httpguts.ValidHeaderFieldName(methodName(method))
}

func validPath(path string) bool {
	invalid := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }
	return (path == "" || path[0] == '/' || path[0] == '?') && !strings.ContainsFunc(path, invalid)
}

// schemeName returns the scheme of an option.
func schemeName(scheme component.Case) string {
	if scheme.Number == 0 {
		return "https"
	}
	switch v := arg[component.Case]([]any{scheme.Value}, 0); v.Number {
	case 0:
		return "http"
	case 1:
		return "https"
	default:
		return text(v)
	}
}

func validScheme(scheme component.Case) bool {
	name := schemeName(scheme)
	u, err := url.Parse(name + "://host/")
	return err == nil && u.Scheme == strings.ToLower(name) && name != ""
}

// validAuthority reports whether a text is a host with or without a port.
func validAuthority(authority string) bool {
	u, err := url.Parse("http://" + authority + "/")
	if err != nil || u.Host != authority || u.Hostname() == "" {
		return false
	}
	port, err := strconv.Atoi(cmp.Or(u.Port(), "80"))
	return err == nil && port <= 65535
}

// requestOptions is wasi:http/types.request-options: the timeouts for connecting, the first byte and between bytes.
type requestOptions struct{ timeouts [3]component.Case }

func timeout(number int) broker.InterfaceFunc {
	return func1(func(_ caller, o *requestOptions) any { return o.timeouts[number] })
}

func setTimeout(number int) broker.InterfaceFunc {
	return func2(func(_ caller, o *requestOptions, d component.Case) any {
		if d.Number != 0 {
			arg[uint64]([]any{d.Value}, 0)
		}
		o.timeouts[number] = d
		return component.OK(nil)
	})
}

// get returns a timeout in nanoseconds; 0 if it is not set.
func (o *requestOptions) get(number int) uint64 {
	if o == nil || o.timeouts[number].Number == 0 {
		return 0
	}
	return max(1, arg[uint64]([]any{o.timeouts[number].Value}, 0))
}

// handle is outgoing-handler.handle. The request is sent once its body is complete, because redirects and retries
// repeat the body.
func (h *host) handle(c caller, r *outgoingRequest, option component.Case) any {
	if r.handled { // a component that imports handle with other types than WASI's still has the request
		panic(errType)
	}
	r.handled = true
	waiting := false
	defer func() {
		if !waiting {
			r.Drop()
		}
	}()
	var options *requestOptions
	if option.Number != 0 {
		options = arg[*requestOptions]([]any{option.Value}, 0)
	}
	if h.HTTP == nil {
		return component.Failed(h.httpError(c, &abi.Error{Code: abi.CodeNotGranted, Message: "plugin " + c.Plugin +
			" has no grant for HTTP requests: " +
			"ask for them in the manifest's permissions.http and have the plugin approved"}))
	}
	scheme, authority, path := schemeName(r.scheme), "", "/"
	if r.authority.Number != 0 {
		authority = text(r.authority)
	}
	if r.path.Number != 0 {
		path = text(r.path)
	}
	f := &futureResponse{web: h.web(c), options: options, head: &abi.HTTPRequest{
		Method: methodName(r.method), URL: scheme + "://" + authority + path, Headers: r.headers.header()}}
	if body := r.body; body != nil && !body.ended {
		body.future, f.body, f.request, waiting = f, body, r, true
		return component.OK(f)
	} else if body != nil && body.err != nil {
		return component.Failed(h.httpError(c, body.err))
	}
	f.send(c, r.body.take())
	if f.err != nil {
		return component.Failed(h.httpError(c, f.err))
	}
	return component.OK(f)
}

// futureResponse is wasi:http/types.future-incoming-response.
type futureResponse struct {
	web     *web
	head    *abi.HTTPRequest
	options *requestOptions
	// body is the part that the guest still writes, and request keeps its headers counted; nil if the body is complete.
	body    *outgoingBody
	request *outgoingRequest

	transaction *httpbroker.Transaction // nil until it is sent
	err         error                   // instead of a transaction
	until       uint64                  // when the wait for the response ends; 0: with the broker's limit
	got         bool
}

// send sends the request.
func (f *futureResponse) send(c caller, body []byte) {
	f.release()
	if first := f.options.get(1); first != 0 {
		f.until = saturatingAdd(f.web.host.Monotonic(), saturatingAdd(f.options.get(0), first))
	}
	f.transaction, f.err = f.web.host.HTTP.Start(c.ctx, c.Call, f.head, body)
	f.head = nil
}

func (f *futureResponse) fail(err error) {
	if f.body != nil {
		f.body.future = nil // finishing it sends nothing
	}
	f.release()
	f.head, f.err = nil, err
}

// release ends the wait for the body.
func (f *futureResponse) release() {
	if f.request != nil {
		f.request.Drop()
	}
	f.body, f.request = nil, nil
}

// errFirstByte is the error of a request whose response did not come within the guest's own timeout.
var errFirstByte = &abi.Error{Code: abi.CodeTimeout, Message: "the response did not begin within the timeouts of " +
	"request-options"}

func (f *futureResponse) ready(caller) bool {
	switch {
	case f.got, f.err != nil:
		return true
	case f.transaction == nil:
		return false
	}
	select {
	case <-f.transaction.Done():
		return true
	default:
	}
	if f.until == 0 || f.web.host.Monotonic() < f.until {
		return false
	}
	f.transaction.Cancel()
	f.fail(errFirstByte)
	return true
}

func (f *futureResponse) event() (<-chan struct{}, uint64) {
	if f.transaction == nil {
		return nil, 0
	}
	return f.transaction.Done(), f.until
}

// stall implements staller for a request that the guest has not finished.
func (f *futureResponse) stall(caller) {
	f.fail(&abi.Error{Code: abi.CodeInvalid, Message: "the component waits for a response before it has finished the " +
		"request's body: call outgoing-body.finish first, because hako sends a request when its body is complete"})
}

// get returns option<result<result<incoming-response, error-code>>>.
func (f *futureResponse) get(c caller) any {
	if !f.ready(c) {
		return component.None
	}
	if f.got {
		return component.Some(component.Failed(nil))
	}
	f.got = true
	var response *httpbroker.Response
	if f.err == nil {
		response, f.err = f.transaction.Wait()
	}
	if f.err != nil {
		return component.Some(component.OK(component.Failed(f.web.host.httpError(c, f.err))))
	}
	return component.Some(component.OK(component.OK(&incomingResponse{
		status: uint64(response.Status), headers: responseFields(c, f.web, response.Header),
		body: &incomingBody{web: f.web, transaction: f.transaction, between: f.options.get(2)},
	})))
}

// Drop implements component.Dropper.
func (f *futureResponse) Drop() {
	if !f.got && f.transaction != nil {
		f.transaction.Cancel()
	}
}
