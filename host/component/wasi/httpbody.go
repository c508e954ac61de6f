package wasi

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// outgoingBody is wasi:http/types.outgoing-body. The host keeps what is written until the body is complete.
type outgoingBody struct {
	web      *web
	declared int64 // the Content-Length of the request; -1 if there is none
	data     []byte
	written  bool            // the guest has taken the stream
	ended    bool            // by finish or drop
	err      error           // if it has ended incompletely
	future   *futureResponse // of the request, once it is handled
}

// contentLength returns the declared length of the body; -1 if there is none.
func (f *fields) contentLength() int64 {
	for _, own := range f.list {
		if strings.EqualFold(own.name, "Content-Length") {
			if n, err := strconv.ParseInt(string(own.value), 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// take returns the content, whose memory the http broker then bounds.
func (b *outgoingBody) take() []byte {
	if b == nil {
		return nil
	}
	data := b.data
	b.web.bodies -= int64(len(data))
	b.data = nil
	return data
}

// end ends the body: its request is sent, or fails with err.
func (b *outgoingBody) end(c caller, err error) {
	b.ended, b.err = true, err
	switch {
	case err != nil:
		b.take()
		if b.future != nil {
			b.future.fail(err)
		}
	case b.future != nil:
		b.future.send(c, b.take())
	}
}

// Drop implements component.Dropper. A body that is not finished makes its request fail.
func (b *outgoingBody) Drop() {
	if !b.ended {
		b.end(caller{}, &abi.Error{Code: abi.CodeInvalid, Message: "the component dropped the request's body without " +
			"outgoing-body.finish"})
	}
}

func (h *host) finishBody(c caller, b *outgoingBody, trailers component.Case) any {
	var err error
	switch n := int64(len(b.data)); {
	case b.ended:
		return component.Failed(h.httpError(c, errClosed))
	case trailers.Number != 0 && len(arg[*fields]([]any{trailers.Value}, 0).list) > 0:
		err = &abi.Error{Code: abi.CodeInvalid, Message: "hako sends no trailers with a request"}
	case b.declared >= 0 && n != b.declared:
		err = &sizeError{fmt.Sprintf("the request's body has %d bytes, and its Content-Length is %d", n, b.declared), n}
	}
	b.end(c, err)
	if err != nil {
		return component.Failed(h.httpError(c, err))
	}
	return component.OK(nil)
}

// bodyOutput is the stream of a request body.
type bodyOutput struct {
	body   *outgoingBody
	closed bool
}

func (o *bodyOutput) check(caller) error {
	if o.closed || o.body.ended {
		return errClosed
	}
	return nil
}

// write keeps p. All bodies of a call that are not sent yet are bounded together.
func (o *bodyOutput) write(c caller, p []byte) error {
	w := o.body.web
	if limit := w.host.maxRequestBody(); w.bodies+int64(len(p)) > limit {
		o.closed = true
		err := &sizeError{fmt.Sprintf("the request body is larger than the limit of %d bytes", limit), limit}
		return &ioError{text: err.text, http: component.Some(w.host.httpError(c, err))}
	}
	w.bodies += int64(len(p))
	o.body.data = append(o.body.data, p...)
	return nil
}

func (*bodyOutput) flush(caller) error { return nil }

// maxRequestBody bounds the request bodies that a call has not sent yet. Without a grant none can be sent.
func (h *host) maxRequestBody() int64 {
	if h.HTTP == nil {
		return 0
	}
	return h.HTTP.MaxRequestBody()
}

// incomingResponse is wasi:http/types.incoming-response.
type incomingResponse struct {
	status   uint64
	headers  *fields
	body     *incomingBody
	consumed bool
}

// Drop implements component.Dropper.
func (r *incomingResponse) Drop() {
	r.headers.Drop()
	if !r.consumed {
		r.body.Drop()
	}
}

// incomingBody is wasi:http/types.incoming-body.
type incomingBody struct {
	web         *web
	transaction *httpbroker.Transaction
	between     uint64 // the longest wait for a part, in nanoseconds; 0: the broker's limit
	taken       bool   // the guest has taken the stream
	err         error  // of reading, except for the end
}

// Drop implements component.Dropper.
func (b *incomingBody) Drop() { b.transaction.Cancel() }

func (h *host) responseFunctions() functions {
	return functions{
		"[method]incoming-response.status": func1(func(_ caller, r *incomingResponse) any { return r.status }),
		"[method]incoming-response.headers": func1(func(_ caller, r *incomingResponse) any {
			return r.headers.frozen()
		}),
		"[method]incoming-response.consume": func1(func(_ caller, r *incomingResponse) any {
			if r.consumed {
				return component.Failed(nil)
			}
			r.consumed = true
			return component.OK(r.body)
		}),
		"[method]incoming-body.stream": func1(func(_ caller, b *incomingBody) any {
			if b.taken {
				return component.Failed(nil)
			}
			b.taken = true
			return component.OK(&bodyInput{body: b})
		}),
		"[static]incoming-body.finish": func1(func(_ caller, b *incomingBody) any {
			b.Drop()
			return &futureTrailers{err: b.err}
		}),
		"[method]future-trailers.subscribe": func1(func(caller, *futureTrailers) any { return always{} }),
		"[method]future-trailers.get":       func1(h.trailers),

		"[method]future-incoming-response.subscribe": func1(func(_ caller, f *futureResponse) any {
			return subscribed(f)
		}),
		"[method]future-incoming-response.get": func1(func(c caller, f *futureResponse) any { return f.get(c) }),

		"[method]outgoing-body.write": func1(func(_ caller, b *outgoingBody) any {
			if b.written || b.ended {
				return component.Failed(nil)
			}
			b.written = true
			return component.OK(&bodyOutput{body: b})
		}),
		"[static]outgoing-body.finish": func2(h.finishBody),
	}
}

// bodyInput is the stream of a response body. It reads the next part in the background.
type bodyInput struct {
	body   *incomingBody
	buffer []byte
	data   []byte // read and not returned yet
	err    error
	until  uint64 // when the wait for a part ends; 0: with the broker's limit
}

// fetchBytes is the size of a part that is read at once.
const fetchBytes = 64 << 10

// ready starts to read if nothing is there, and takes what has been read.
func (i *bodyInput) ready(c caller) bool {
	t, h := i.body.transaction, i.body.web.host
	if len(i.data) > 0 || i.err != nil {
		return true
	}
	if t.Done() == nil {
		if i.buffer == nil {
			i.buffer = make([]byte, fetchBytes)
		}
		t.Fetch(i.buffer)
		if i.body.between != 0 {
			i.until = saturatingAdd(h.Monotonic(), i.body.between)
		}
	}
	select {
	case <-t.Done():
		n, err := t.Fetched()
		i.data = i.buffer[:n]
		i.end(c, err)
	default:
		if i.until == 0 || h.Monotonic() < i.until {
			return false
		}
		t.Cancel()
		i.end(c, errBetweenBytes)
	}
	return true
}

// errBetweenBytes is the error of a body that did not go on within the guest's own timeout.
var errBetweenBytes = &abi.Error{Code: abi.CodeTimeout, Message: "the response body did not continue within " +
	"between-bytes-timeout of request-options"}

// end sets the error that follows the data.
func (i *bodyInput) end(c caller, err error) {
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		i.err = errClosed
	default:
		i.body.err = err
		i.err = &ioError{text: err.Error(), http: component.Some(i.body.web.host.httpError(c, err))}
	}
}

func (i *bodyInput) event() (<-chan struct{}, uint64) { return i.body.transaction.Done(), i.until }

func (i *bodyInput) read(c caller, n int) ([]byte, error) {
	if n == 0 && (i.err == nil || len(i.data) > 0) || !i.ready(c) {
		return nil, nil
	}
	if len(i.data) == 0 {
		err := i.err
		i.err = errClosed // after a failure the stream is closed
		return nil, err
	}
	n = min(n, len(i.data))
	data := append([]byte(nil), i.data[:n]...)
	i.data = i.data[n:]
	return data, nil
}

// futureTrailers is wasi:http/types.future-trailers. hako passes on no trailers.
type futureTrailers struct {
	err error // of the body
	got bool
}

// trailers returns option<result<result<option<trailers>, error-code>>>.
func (h *host) trailers(c caller, f *futureTrailers) any {
	if f.got {
		return component.Some(component.Failed(nil))
	}
	f.got = true
	if f.err != nil {
		return component.Some(component.OK(component.Failed(h.httpError(c, f.err))))
	}
	return component.Some(component.OK(component.OK(component.None)))
}
