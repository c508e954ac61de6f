package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/metrics"
	"github.com/hako-run/hako/host/frontend/chat"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/trace"
)

// flushTimeout bounds the sending of the last traces.
const flushTimeout = 3 * time.Second

// observability is the part that measures and traces calls.
type observability struct {
	config  *config.Config
	version string
	logger  *slog.Logger
	metrics *metrics.Metrics
	tracer  *trace.Tracer // nil: no traces
	proxy   atomic.Pointer[url.URL]
}

func newObservability(c *config.Config, version string, logger *slog.Logger) *observability {
	return &observability{config: c, version: version, logger: logger, metrics: metrics.New(version)}
}

// start opens the tracer if the configuration or the variables of OpenTelemetry ask for traces.
func (o *observability) start(ctx context.Context) (err error) {
	c := o.config
	o.proxy.Store(c.ProxyURL())
	if !wantsTraces(c, os.Getenv) {
		return nil
	}
	name, _ := os.Hostname() // it may be empty
	o.tracer, err = trace.New(ctx, trace.Options{
		Endpoint: c.Traces.Endpoint, Protocol: c.Traces.Protocol, Ratio: c.Traces.Ratio, Proxy: o.proxy.Load,
		Version: o.version, Instance: fmt.Sprintf("%s-%d", name, os.Getpid()), Logger: o.logger,
	})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// wantsTraces reports whether an endpoint for traces is known and tracing is not disabled (OpenTelemetry specification,
// environment variables).
func wantsTraces(c *config.Config, env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return c.Traces.Endpoint != "" || env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// stop sends the last traces. Traces that cannot be sent are logged and are no failure.
func (o *observability) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := o.tracer.Close(ctx); err != nil {
		o.logger.Warn("traces are lost", "err", err)
	}
	return nil
}

func (*observability) keys() []string { return []string{"outbound.proxy"} }

func (o *observability) prepare(_ context.Context, next *config.Config) (*change, error) {
	return silently(func() { o.proxy.Store(next.ProxyURL()) }), nil
}

// observeHost measures and traces the calls of a host.
func (o *observability) observeHost(options *host.Options) {
	options.Tracer = o.tracer
	if !o.config.MetricsDisabled {
		options.Observer = o.metrics
	}
}

// observeMCP measures and traces the requests of an MCP server.
func (o *observability) observeMCP(options *mcpserver.Options) {
	options.Tracer = o.tracer
	if !o.config.MetricsDisabled {
		options.Observer = o.metrics
	}
}

// observeChat measures and traces the turns of conversations.
func (o *observability) observeChat(options *chat.Options) {
	options.Tracer, options.Observe, options.Rated = o.tracer, o.metrics.TurnEnded, o.metrics.AnswerRated
}

// showGovernance adds metrics about policy, approvals and the audit log.
func (o *observability) showGovernance(g *Governance) {
	o.metrics.ShowGovernance(g.policy, g.Approvals)
	if g.audit != nil {
		o.metrics.ShowAudit(g.audit)
	}
}

// handler serves the metrics; nil if they are disabled.
func (o *observability) handler() http.Handler {
	if o.config.MetricsDisabled {
		return nil
	}
	return o.metrics.Handler()
}

// showMCP adds metrics about the load of an MCP server.
func (o *observability) showMCP(server *mcpserver.Server) {
	o.metrics.ShowFrontend(server.Load, mcpserver.RefusalReasons)
}
