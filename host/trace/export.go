package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/hako-run/hako/host/broker/outbound"
)

// scope is the name of what makes the spans.
const scope = "github.com/hako-run/hako"

// Protocols of OTLP.
const (
	HTTP = "http/protobuf"
	GRPC = "grpc"
)

// Options configures a Tracer. What they leave out, the standard variables of OpenTelemetry may say (OTEL_EXPORTER_OTLP_HEADERS and its
// like, OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME): the exporters read them.
type Options struct {
	// Endpoint is the base URL of an OTLP receiver, http or https. Over HTTP "/v1/traces" is added unless it has a path. Empty means what
	// the variables say.
	Endpoint string
	// Protocol is HTTP or GRPC. Empty means what the variables say, else HTTP.
	Protocol string
	// Ratio is the share of the traces begun here that is kept, above 0 and at most 1. Traces begun elsewhere are kept if they are
	// there. Zero means what the variables say, else all.
	Ratio float64
	// Proxy returns the proxy that spans are sent through, at each connection; it may return nil. Nil means none. Addresses of this machine are
	// reached without it, and the environment's proxies play no part.
	Proxy func() *url.URL
	// Version is the program's, Instance tells this process from others.
	Version, Instance string
	// Logger receives what goes wrong with sending. Nil discards it.
	Logger *slog.Logger
}

// New returns a Tracer that sends in the background; Close ends it. It fails for an endpoint that is no URL, for a protocol that is unknown,
// for a ratio out of its range, and for a malformed OTEL_RESOURCE_ATTRIBUTES. Nothing is sent yet, so a receiver that is not there is no error: spans are dropped then, which the
// logger is told of. The logger becomes that of OpenTelemetry in the whole process.
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
		return nil, fmt.Errorf("traces: %w: mend OTEL_RESOURCE_ATTRIBUTES, which is a list such as team=search,stage=test", err)
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

// Close sends what is left, until ctx ends. A nil Tracer may be closed.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// client is what speaks to the receiver.
func (o *Options) client() (otlptrace.Client, error) {
	if o.Ratio < 0 || o.Ratio > 1 {
		return nil, fmt.Errorf("the ratio of traces is %g: give one above 0 and at most 1", o.Ratio)
	}
	if err := o.checkEndpoint(); err != nil {
		return nil, err
	}
	switch protocol := o.protocol(); protocol {
	case HTTP:
		options := []otlptracehttp.Option{otlptracehttp.WithProxy(outbound.Through(o.Proxy))}
		if o.Endpoint != "" {
			options = append(options, otlptracehttp.WithEndpointURL(withPath(o.Endpoint)))
		}
		return otlptracehttp.NewClient(options...), nil
	case GRPC:
		options := []otlptracegrpc.Option{otlptracegrpc.WithDialOption(grpc.WithContextDialer(o.dial), grpc.WithResolvers(unresolved{}))}
		if o.Endpoint != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(o.Endpoint))
		}
		return otlptracegrpc.NewClient(options...), nil
	default:
		return nil, fmt.Errorf("the protocol of traces is %q: use %s or %s", protocol, HTTP, GRPC)
	}
}

// dial connects to a receiver that speaks gRPC. The address is a host and port, or "unix://" and a path.
func (o *Options) dial(ctx context.Context, address string) (net.Conn, error) {
	if path, isPath := strings.CutPrefix(address, "unix://"); isPath {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return outbound.Connect(ctx, o.Proxy, address)
}

// unresolved takes the place of gRPC's resolver for "dns", its default: it leaves names to dial, because a proxy may know some that are not known
// here.
type unresolved struct{}

func (unresolved) Scheme() string { return "dns" }

func (unresolved) Build(target resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	return unresolved{}, conn.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: target.Endpoint()}}})
}

func (unresolved) ResolveNow(resolver.ResolveNowOptions) {}

func (unresolved) Close() {}

// checkEndpoint holds the endpoint to being a URL, which the exporters only log.
func (o *Options) checkEndpoint() error {
	if o.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("the endpoint of traces is not a URL such as http://localhost:4318, without a user: secrets belong into OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// withPath is the endpoint as the specification of OTLP has it, for a base URL.
func withPath(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err == nil && (u.Path == "" || u.Path == "/") {
		u.Path = "/v1/traces"
		return u.String()
	}
	return endpoint
}

// protocol is the one to use. The exporters are one for each protocol, so the variables are read here.
func (o *Options) protocol() string {
	for _, value := range []string{o.Protocol, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")} {
		if value != "" {
			return value
		}
	}
	return HTTP
}

// resource says what the spans are from. The variables have the last word.
func (o *Options) resource(ctx context.Context) (*resource.Resource, error) {
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "hako"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Instance),
	), resource.WithFromEnv())
}
