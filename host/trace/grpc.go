package trace

import (
	"context"
	"net"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/hako-run/hako/host/outbound"
)

// maxGRPCResponse bounds a response and its headers, in bytes. A response names at most how many spans were rejected,
// and why.
const maxGRPCResponse = 64 << 10

// grpcOptions returns the options of the exporter for OTLP over gRPC. It reads the rest from the environment.
func (o *Options) grpcOptions() []otlptracegrpc.Option {
	dial := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxGRPCResponse)),
		grpc.WithMaxHeaderListSize(maxGRPCResponse),
	}
	var options []otlptracegrpc.Option
	endpoint := o.Endpoint
	if endpoint != "" {
		options = append(options, otlptracegrpc.WithEndpointURL(endpoint))
	} else if endpoint = exporterVariable("ENDPOINT"); strings.HasPrefix(endpoint, "unix:") {
		return append(options, otlptracegrpc.WithDialOption(dial...))
	}
	if strings.HasPrefix(endpoint, "http://") { // the exporter would use TLS if the environment names a certificate
		options = append(options, otlptracegrpc.WithTLSCredentials(insecure.NewCredentials()))
	}
	// With this dialer and without its resolver, the gRPC module does not use the proxies in the environment, and
	// the configured proxy resolves the name.
	dial = append(dial, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return outbound.Connect(ctx, o.Proxy, address)
	}))
	return append(options, otlptracegrpc.WithEndpoint("passthrough:///"+hostPort(endpoint)),
		otlptracegrpc.WithDialOption(dial...))
}

// hostPort returns the address of an endpoint, which is a URL or a gRPC name such as localhost:4317.
func hostPort(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return outbound.HostPort(u)
	}
	return strings.TrimPrefix(endpoint, "dns:///")
}
