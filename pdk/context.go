package pdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

type requestKey struct{}

// callContext is the context of one call. Its Err asks the host whether the call has been canceled: nothing can notify
// a running guest.
type callContext struct {
	context.Context
	request   *abi.Request
	deadline  time.Time
	done      chan struct{}
	closeDone sync.Once
}

// NewContext returns the context for handlers of request. The entry point calls it; so may a test that calls a handler
// directly.
func NewContext(parent context.Context, request *abi.Request) context.Context {
	ctx := &callContext{Context: parent, request: request, done: make(chan struct{})}
	if request.DeadlineMS > 0 {
		ctx.deadline = time.Now().Add(time.Duration(request.DeadlineMS) * time.Millisecond)
	}
	if parent.Done() != nil { // in tests; that of a guest never ends
		context.AfterFunc(parent, func() { ctx.Err() })
	}
	return ctx
}

func (c *callContext) Deadline() (time.Time, bool) {
	if c.deadline.IsZero() {
		return c.Context.Deadline()
	}
	return c.deadline, true
}

// Done returns a channel that is closed when the parent has ended, or Err has found that the call has.
func (c *callContext) Done() <-chan struct{} { return c.done }

func (c *callContext) Err() error {
	err := c.Context.Err()
	if err == nil && hostCanceled() {
		err = context.Canceled
		if !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
			err = context.DeadlineExceeded
		}
	}
	if err != nil {
		c.closeDone.Do(func() { close(c.done) })
	}
	return err
}

func (c *callContext) Value(key any) any {
	if key == (requestKey{}) {
		return c.request
	}
	return c.Context.Value(key)
}

func requestOf(ctx context.Context) *abi.Request {
	if request, ok := ctx.Value(requestKey{}).(*abi.Request); ok {
		return request
	}
	return &abi.Request{}
}

// Config decodes the plugin's configuration, with defaults filled in, into the value that into points to.
func Config(ctx context.Context, into any) error {
	raw := requestOf(ctx).Config
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// Roots returns where the plugin's mounts are, for plugins whose manifest asks for roots: the guest's paths by the
// host's, such as "/docs" by "/srv/docs". A mount may be there under several paths of the host. All of them are
// absolute, in the notation of the host's system.
func Roots(ctx context.Context) (map[string]string, error) {
	roots := map[string]string{}
	raw := requestOf(ctx).Roots
	if len(raw) == 0 {
		return roots, nil
	}
	if err := json.Unmarshal(raw, &roots); err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	return roots, nil
}

// Locale returns the caller's language as a BCP 47 tag such as "ja", or "" if it is not known.
func Locale(ctx context.Context) string { return requestOf(ctx).Locale }

// Progress reports the progress of the call to the caller; a total of 0 means unknown. The host sends at most 10
// reports a second.
func Progress(ctx context.Context, progress, total float64, message string) {
	hostProgress(ctx, progress, total, message)
}

// ResourceUpdated notifies clients that a resource has changed. uri is a resource of this plugin or matches one of its
// templates. Subscribers of the caller's tenant are notified after the call. The host accepts at most 256 different
// URIs per call.
func ResourceUpdated(ctx context.Context, uri string) { hostUpdated(ctx, uri) }

// Log returns a logger that writes to the host's log, marked with the name of the plugin. Records beyond the call's log
// limit are dropped.
func Log(ctx context.Context) *slog.Logger {
	buffer := new(bytes.Buffer)
	text := slog.NewTextHandler(buffer, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return a
		},
	})
	return slog.New(&logHandler{Handler: text, buffer: buffer})
}

// logHandler sends each record as message and attributes; the host adds time and level.
type logHandler struct {
	slog.Handler
	buffer *bytes.Buffer
}

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	h.buffer.Reset()
	if err := h.Handler.Handle(ctx, record); err != nil {
		return err
	}
	line := record.Message
	if attrs := bytes.TrimSpace(h.buffer.Bytes()); len(attrs) > 0 {
		line += " " + string(attrs)
	}
	hostLog(abi.LogLevel(record.Level), line)
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.Handler.WithAttrs(attrs), h.buffer}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name), h.buffer}
}
