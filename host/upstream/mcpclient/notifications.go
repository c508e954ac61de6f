package mcpclient

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/hako-run/hako/internal/retry"
)

// firstReopen and lastReopen bound the exponential backoff between attempts to reopen the stream for notifications.
const firstReopen, lastReopen = time.Second, time.Minute

// notifications is the body of the stream on which a server sends what belongs to no call. Servers and proxies end it
// at will. It is reopened for as long as the session lasts, with the id of the last event: the SDK would end the session
// after some attempts, and with it calls whose own streams are fine.
type notifications struct {
	remote *remote
	ctx    context.Context // of the request
	req    *http.Request
	// events reads body.
	events *eventReader
	body   io.Closer
	// began is the time at which the stream was opened, failed the number of short streams and failed attempts since.
	began  time.Time
	failed int
}

// newNotifications returns the body. The stream ends with ctx.
func (r *remote) newNotifications(ctx context.Context, req *http.Request, body io.ReadCloser) *notifications {
	n := &notifications{remote: r, ctx: ctx, req: req}
	n.open(body)
	return n
}

func (n *notifications) open(body io.ReadCloser) {
	id := ""
	if n.events != nil {
		id = n.events.lastID
	}
	in := inbound{requests: new(requests), noise: n.remote.noise}
	n.events, n.body = &eventReader{stream: n.remote.stream(body, in), lastID: id}, body
	n.began = time.Now()
}

func (n *notifications) Read(p []byte) (int, error) {
	for {
		read, err := n.events.Read(p)
		if read > 0 || err == nil {
			return read, nil
		}
		if !n.reopen() {
			return 0, io.EOF
		}
	}
}

// reopen opens the stream again. It reports false if the session is over or the server has no such stream any more, which
// the SDK finds out too.
func (n *notifications) reopen() bool {
	_ = n.body.Close()
	if time.Since(n.began) > lastReopen {
		n.failed = 0
	}
	for {
		if retry.Wait(n.ctx, retry.Backoff(n.failed, firstReopen, lastReopen)) != nil {
			return false
		}
		n.failed++
		req := n.req.Clone(n.ctx)
		if n.events.lastID != "" {
			req.Header.Set("Last-Event-ID", n.events.lastID)
		}
		resp, err := n.remote.authorized(req)
		switch {
		case err != nil:
			continue
		case resp.StatusCode == http.StatusOK && isEventStream(resp):
			n.open(resp.Body)
			return true
		}
		_ = resp.Body.Close()
		if sessionGone(n.req, resp.StatusCode) {
			return false
		}
	}
}

func (n *notifications) Close() error { return n.body.Close() }
