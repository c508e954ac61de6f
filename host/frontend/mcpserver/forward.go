package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// Forwarding: a request that continues a pending call (from 2026-07-28) is served by the replica that holds the call.
// The replica that receives it verifies the sender, forwards the request by mail, and sends the answer from the store,
// as for a resumed stream. The replica of the call serves it like a request of its own client. Both directions are
// sealed under the requestState, which the client has and the store has not.

// forwardHeader precedes a forwarded request body, as one line of JSON.
type forwardHeader struct {
	Header http.Header
	// Identity is the sender. It has been verified.
	Identity *auth.Identity
	Address  string
	Toolset  string
}

// answerHeader precedes the first part of its answer.
type answerHeader struct {
	Status int
	Header http.Header
}

// answerHeaders are the header fields of an answer that are passed on. All others are for this replica to set.
var answerHeaders = []string{"Content-Type", "Cache-Control", "Retry-After", "X-Accel-Buffering"}

// pass writes the header of another replica's answer. It reports false for one that no replica gives.
func (a *answerHeader) pass(w http.ResponseWriter) bool {
	if a.Status < 200 || a.Status > 599 || a.Status/100 == 3 {
		return false
	}
	for _, name := range answerHeaders {
		if values := a.Header[name]; len(values) == 1 {
			w.Header().Set(name, values[0])
		}
	}
	w.WriteHeader(a.Status)
	return true
}

// withHeader puts v before a body, on a line of its own.
func withHeader(v any, body []byte) []byte {
	return bytes.Join([][]byte{mustJSON(v), body}, []byte("\n"))
}

// cutHeader is the reverse of withHeader.
func cutHeader(data []byte, v any) (body []byte, err error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	return body, json.Unmarshal(head, v)
}

// forward serves a request that continues a call at another replica. It reports false if there is no such call.
func (rs *replicas) forward(w http.ResponseWriter, r *http.Request, x *exchange, body *transport.Body) bool {
	state := body.RequestState()
	replica := replicaOf(state)
	if rs.shared == nil || replica == "" || replica == rs.own() {
		return false
	}
	ctx, cancel := rs.server.bound(r.Context(), nil)
	defer cancel()
	request := forwardHeader{Header: r.Header.Clone(), Identity: x.identity, Address: x.address,
		Toolset: x.toolset}
	request.Header.Del("Authorization") // nobody needs them from here on
	request.Header.Del("Cookie")
	mail := sessionstore.Mail{ID: rand.Text(), Kind: sessionstore.Request, Session: sessionstore.Key(state)}
	mail.Body = sessionstore.Seal(state, sessionstore.MailPlace(mail.Kind, mail.ID), withHeader(request, body.Raw))
	a := &awaited{tail: tail{replicas: rs, id: state, stream: mail.ID}, w: w, message: body.ID()}
	sent, err := rs.ask(ctx, replica, mail)
	if err == nil && !sent {
		return false
	}
	defer a.drop(replica)
	if err != nil {
		rs.unreachable(w, err) // the other replica may have received the request
		return true
	}
	return a.serve(ctx)
}

// ask sends a request even if its client leaves meanwhile. Otherwise it would be unknown whether the other replica
// serves the request and has to be notified that the client has left.
func (rs *replicas) ask(ctx context.Context, replica string, mail sessionstore.Mail) (sent bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
	defer cancel()
	return rs.shared.Ask(ctx, replica, mail)
}

// awaited is the answer to a forwarded request.
type awaited struct {
	tail
	w       http.ResponseWriter
	message jsonrpc.ID
	// started: the client was sent something. gone: nothing more can be sent to it. ended: the answer is complete.
	started, gone, ended bool
}

// serve sends the answer until it ends. It reports false if there is none.
func (a *awaited) serve(ctx context.Context) bool {
	for {
		lost, err := a.follow(ctx, a.write)
		switch {
		case err == nil && lost == nil:
			a.ended = true
			return a.started
		case lost != nil, errors.Is(err, sessionstore.ErrNone), errors.Is(err, errMissing):
			a.ended = true
			a.fail(lostText)
			return true
		case a.gone || ctx.Err() != nil:
			a.fail(canceledText)
			return true
		}
		// The other replica continues while this one cannot reach the store.
		a.server.options.Logger.Warn("the answer of another replica cannot be read at the moment", "err", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// write sends parts of the answer.
func (a *awaited) write(parts [][]byte) error {
	for _, part := range parts {
		if !a.started {
			var head answerHeader
			body, err := cutHeader(part, &head)
			if err != nil || !head.pass(a.w) {
				return errMissing
			}
			a.started, part = true, body
		}
		if _, err := a.w.Write(part); err != nil {
			a.gone = true
			return err
		}
	}
	if len(parts) == 0 {
		return nil
	}
	err := http.NewResponseController(a.w).Flush()
	a.gone = err != nil
	return err
}

// fail answers with an error, if the client can still be answered.
func (a *awaited) fail(text string) {
	if !a.started {
		writeError(a.w, http.StatusOK, a.message, jsonrpc.CodeInternalError, text)
		return
	}
	data, _ := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: a.message,
		Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}})
	_, _ = a.w.Write(transport.Event(data)) // a client that has gone misses nothing
}

// drop removes the answer from the store. If it is not complete, the replica that writes it is notified that nobody
// waits for it.
func (a *awaited) drop(replica string) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	var err error
	if !a.ended {
		_, err = a.shared.SendTo(ctx, replica, sessionstore.Mail{Kind: sessionstore.Left,
			Session: sessionstore.Key(a.id), Body: a.stream})
	}
	if err = errors.Join(err, a.shared.Drop(ctx, sessionstore.Key(a.id), a.stream)); err != nil {
		// It is deleted when it is old.
		a.server.options.Logger.Debug("the answer of another replica cannot be deleted", "err", err)
	}
}

// forwardedRequests are those of other replicas that this one serves, by the ID of their mail.
type forwardedRequests struct {
	mu   sync.Mutex
	byID map[string]context.CancelFunc
}

func (l *forwardedRequests) begin(id string) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]context.CancelFunc{}
	}
	l.byID[id] = cancel
	return ctx, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.byID, id)
	}
}

// cancel cancels a request whose client has left.
func (l *forwardedRequests) cancel(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.byID[id]; cancel != nil {
		cancel()
	}
}

// serveForwarded serves a request that another replica has forwarded. It does not wait for it.
func (rs *replicas) serveForwarded(mail sessionstore.Mail) {
	ctx, end := rs.forwarded.begin(mail.ID)
	rs.server.pending.work.Go(func() {
		defer end()
		w := &forwardedAnswer{replicas: rs, key: mail.Session, stream: mail.ID}
		defer w.close()
		if p := rs.server.pending.of(mail.Session); p != nil {
			w.state = p.id
			rs.serveFor(ctx, w, mail)
		}
	})
}

func (rs *replicas) serveFor(ctx context.Context, w *forwardedAnswer, mail sessionstore.Mail) {
	data, err := sessionstore.Unseal(w.state, sessionstore.MailPlace(mail.Kind, mail.ID), mail.Body)
	if err != nil {
		return
	}
	var request forwardHeader
	raw, err := cutHeader(data, &request)
	if err != nil {
		return
	}
	body, refused := transport.Decode(raw)
	if refused != nil || body.Batch {
		return
	}
	x := &exchange{identity: request.Identity, under: rs.server.now(), address: request.Address,
		toolset:   request.Toolset,
		requestID: textOfID(body.ID().Raw())}
	leave, err := rs.server.limiter.Enter(clientKey(x), 1)
	if err != nil {
		rs.server.refuse(w, refusedBusy, err)
		return
	}
	// Shutdown waits for requests that have entered, and their answers must be in the store by then.
	defer leave()
	defer w.close()
	defer rs.server.recoverHTTP(w)
	r := &http.Request{Method: http.MethodPost, Header: request.Header}
	rs.server.serveSessionless(w, r.WithContext(ctx), x, body)
}

// forwardedAnswer is the ResponseWriter for a forwarded request. What is written goes to the store.
type forwardedAnswer struct {
	*replicas
	// key identifies the call in the store, state at the client. stream is the stream of the answer.
	key, state, stream string

	mu     sync.Mutex // guards what follows
	header http.Header
	status int
	// part is the text since the last flush. parts are not in the store yet; number is the number of the last part in
	// the store.
	part   []byte
	parts  [][]byte
	number int
	closed bool
}

func (w *forwardedAnswer) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *forwardedAnswer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(status)
}

func (w *forwardedAnswer) start(status int) {
	if w.status == 0 {
		w.status = status
		w.part = withHeader(answerHeader{status, w.header}, nil)
	}
}

func (w *forwardedAnswer) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(http.StatusOK)
	w.part = append(w.part, data...)
	return len(data), nil
}

// Flush implements http.Flusher.
func (w *forwardedAnswer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut()
	_ = w.keep(false) // the next one tries again
}

// cut ends a part.
func (w *forwardedAnswer) cut() {
	if len(w.part) > 0 {
		w.parts, w.part = append(w.parts, w.part), nil
	}
}

// keep stores the parts. A part whose write failed is written again unchanged, because it may be there.
func (w *forwardedAnswer) keep(last bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	for len(w.parts) > 0 {
		ends := last && len(w.parts) == 1
		part := sessionstore.Event{Number: w.number + 1,
			Data: sessionstore.Seal(w.state, sessionstore.EventPlace(w.stream, w.number+1), w.parts[0])}
		if err := w.shared.Append(ctx, w.key, w.stream, part, ends); err != nil || ends {
			return err
		}
		w.parts, w.number = w.parts[1:], w.number+1
	}
	if !last {
		return nil
	}
	return w.shared.End(ctx, w.key, w.stream)
}

// close ends the answer, also when the store cannot be reached for a while: the other replica waits as long as this one
// lives.
func (w *forwardedAnswer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	w.cut()
	for w.keep(true) != nil {
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}
