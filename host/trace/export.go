package trace

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/hako-run/hako/host/outbound"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/hako-run/hako"

// Protocols of OTLP.
const (
	HTTP = "http/protobuf"
	GRPC = "grpc"
)

// Options configures a Tracer. Unset options fall back to OpenTelemetry's standard environment variables, which the
// exporters read: OTEL_EXPORTER_OTLP_*, OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME.
type Options struct {
	// Endpoint is the base URL of an OTLP receiver, http or https. Over HTTP "/v1/traces" is added unless it has a
	// path. Empty means that of the environment.
	Endpoint string
	// Protocol is HTTP or GRPC. Empty means that of the environment, else HTTP.
	Protocol string
	// Ratio is the share of the local traces to sample, above 0 and at most 1. Traces with a remote parent are sampled
	// if the parent is. Zero means that of the environment, else 1.
	Ratio float64
	// Proxy returns the proxy for the export, or nil for none; it is called for each connection. Nil means none.
	// Loopback addresses are reached directly, and proxies of the environment are ignored.
	Proxy func() *url.URL
	// Version is the program's version. Instance identifies the process.
	Version, Instance string
	// Logger receives export errors. Nil discards them.
	Logger *slog.Logger
}

// New returns a Tracer that exports in the background until Close. It fails for an invalid endpoint URL, an unknown
// protocol, a ratio out of range and a malformed variable of OpenTelemetry. It does not connect: if the receiver is not
// reachable, spans are dropped and the loss is logged. The logger becomes OpenTelemetry's error handler in the whole
// process.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Proxy == nil {
		o.Proxy = func() *url.URL { return nil }
	}
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	described, err := o.resource(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w: correct OTEL_RESOURCE_ATTRIBUTES, a list such as team=search,stage=test",
			err)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Warn("traces are lost", "err", err) }))
	options := []sdk.TracerProviderOption{sdk.WithBatcher(exporter), sdk.WithResource(described)}
	if o.Ratio > 0 {
		options = append(options, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))))
	}
	provider := sdk.NewTracerProvider(options...)
	return &Tracer{tracer: provider.Tracer(scope), shutdown: provider.Shutdown}, nil
}

// Close exports the remaining spans, until ctx ends. A nil Tracer may be closed.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// client returns the OTLP client.
func (o *Options) client() (otlptrace.Client, error) {
	if o.Ratio < 0 || o.Ratio > 1 {
		return nil, fmt.Errorf("the ratio of traces is %g: give one above 0 and at most 1", o.Ratio)
	}
	if err := o.checkEndpoint(); err != nil {
		return nil, err
	}
	if err := checkEnvironment(); err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// Each exporter has one protocol, so the environment is read here.
	switch protocol := cmp.Or(o.Protocol, exporterVariable("PROTOCOL"), HTTP); protocol {
	case HTTP:
		options := []otlptracehttp.Option{otlptracehttp.WithProxy(outbound.Through(o.Proxy))}
		if o.Endpoint != "" {
			options = append(options, otlptracehttp.WithEndpointURL(withPath(o.Endpoint)))
		}
		return otlptracehttp.NewClient(options...), nil
	case GRPC:
		return otlptracegrpc.NewClient(o.grpcOptions()...), nil
	default:
		return nil, fmt.Errorf("the protocol of traces is %q: use %s or %s", protocol, HTTP, GRPC)
	}
}

// checkEndpoint validates the endpoint: the exporters would only log that it is not a URL.
func (o *Options) checkEndpoint() error {
	if o.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return errors.New("the endpoint of traces is not a URL such as http://localhost:4318, without a user: " +
			"secrets belong into OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// withPath adds the path of OTLP's specification to a base URL.
func withPath(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err == nil && (u.Path == "" || u.Path == "/") {
		u.Path = "/v1/traces"
		return u.String()
	}
	return endpoint
}

// checkEnvironment validates the variables that the exporters would ignore if they are wrong.
func checkEnvironment() error {
	if value := exporterVariable("TIMEOUT"); value != "" {
		if milliseconds, err := strconv.Atoi(value); err != nil || milliseconds <= 0 {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: give a number of milliseconds", value)
		}
	}
	if file := exporterVariable("CERTIFICATE"); file != "" {
		certificates, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(certificates) {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificates in PEM", file)
		}
	}
	if file, key := exporterVariable("CLIENT_CERTIFICATE"), exporterVariable("CLIENT_KEY"); file != "" && key != "" {
		if _, err := tls.LoadX509KeyPair(file, key); err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
		}
	}
	return nil
}

// exporterVariable returns a variable of the exporters. The one for traces takes precedence.
func exporterVariable(name string) string {
	return cmp.Or(strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name)),
		strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_"+name)))
}

// resource describes the process. The environment takes precedence.
func (o *Options) resource(ctx context.Context) (*resource.Resource, error) {
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "hako"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Instance),
	), resource.WithFromEnv())
}
