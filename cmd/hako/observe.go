package main

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
	"github.com/hako-run/hako/host/chat"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/metrics"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/config"
)

// flushTime is how long the last traces may take to be sent.
const flushTime = 3 * time.Second

// observation is what tells operators how calls go: metrics, and traces where they are wanted.
type observation struct {
	numbers *metrics.Metrics
	tracer  *trace.Tracer // nil: no traces
	proxy   atomic.Pointer[url.URL]
	off     bool // nothing is counted
	logger  *slog.Logger
}

// observe makes what the configuration and the variables of OpenTelemetry want; the caller closes it.
func observe(ctx context.Context, c *config.Config, logger *slog.Logger) (*observation, error) {
	o := &observation{numbers: metrics.New(thisBuild().Version), off: c.MetricsDisabled, logger: logger}
	o.proxy.Store(c.ProxyURL())
	if !wantsTraces(c, os.Getenv) {
		return o, nil
	}
	name, _ := os.Hostname() // it may be empty
	var err error
	o.tracer, err = trace.New(ctx, trace.Options{
		Endpoint: c.Traces.Endpoint, Protocol: c.Traces.Protocol, Ratio: c.Traces.Ratio, Proxy: o.proxy.Load,
		Version: thisBuild().Version, Instance: fmt.Sprintf("%s-%d", name, os.Getpid()), Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return o, nil
}

// wantsTraces reports whether there is somebody to send traces to, and they are not turned off (OpenTelemetry
// specification, environment variables).
func wantsTraces(c *config.Config, env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return c.Traces.Endpoint != "" || env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// apply makes a host tell of its calls.
func (o *observation) apply(options *host.Options) {
	options.Tracer = o.tracer
	if !o.off {
		options.Observer = o.numbers
	}
}

// frontend makes an MCP server tell of its requests. A nil observation does nothing.
func (o *observation) frontend(options *mcpserver.Options) {
	if o == nil {
		return
	}
	options.Tracer = o.tracer
	if !o.off {
		options.Observer = o.numbers
	}
}

// chat makes conversations tell of their turns. A nil observation does nothing.
func (o *observation) chat(options *chat.Options) {
	if o != nil {
		options.Tracer, options.Observe, options.Rated = o.tracer, o.numbers.TurnEnded, o.numbers.AnswerRated
	}
}

// show adds how the host stands, and what stands around it.
func (o *observation) show(h *host.Host, credentials *credential.Broker, g *government, r *reloader) {
	o.numbers.Show(h)
	o.numbers.ShowCredentials(credentials)
	o.numbers.ShowGovernance(g.policy, g.approvals)
	if g.audit != nil {
		o.numbers.ShowAudit(g.audit)
	}
	o.numbers.ShowReloads(r.last)
}

// showFrontend adds how busy the frontend is.
func (o *observation) showFrontend(frontend *mcpserver.Server) {
	o.numbers.ShowFrontend(func() metrics.FrontendLoad { return metrics.FrontendLoad(frontend.Load()) },
		mcpserver.RefusalReasons)
}

// handler serves the metrics; nil if there are none.
func (o *observation) handler() http.Handler {
	if o.off {
		return nil
	}
	return o.numbers.Handler()
}

// close sends the last traces. What cannot be sent is logged: it is no reason to fail.
func (o *observation) close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := o.tracer.Close(ctx); err != nil {
		o.logger.Warn("traces are lost", "err", err)
	}
}
