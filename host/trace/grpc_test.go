package trace

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hako-run/hako/dev/kit/testcert"
)

// grpcReceiver is an OTLP receiver of the gRPC module.
type grpcReceiver struct {
	collector.UnimplementedTraceServiceServer
	address string
	err     error                                // of all calls
	names   chan string                          // of the spans
	headers chan metadata.MD                     // of the calls
	answer  *collector.ExportTracePartialSuccess // of all calls
}

func newGRPCReceiver(t *testing.T, network, address string, options ...grpc.ServerOption) *grpcReceiver {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	r := &grpcReceiver{
		names: make(chan string, 10), headers: make(chan metadata.MD, 10), address: listener.Addr().String(),
	}
	server := grpc.NewServer(options...)
	collector.RegisterTraceServiceServer(server, r)
	done := make(chan struct{})
	go func() { _ = server.Serve(listener); close(done) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return r
}

func (r *grpcReceiver) Export(
	ctx context.Context, request *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	r.headers <- headers
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				r.names <- span.Name
			}
		}
	}
	return &collector.ExportTraceServiceResponse{PartialSuccess: r.answer}, r.err
}

// export exports one span and returns what is logged meanwhile.
func export(t *testing.T, o Options) string {
	t.Helper()
	var log strings.Builder
	o.Protocol, o.Logger = GRPC, slog.New(slog.NewTextHandler(&log, nil))
	tracer, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "tools/call", Server, Remote{})
	span.End()
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return log.String()
}

// TestGRPC sends spans to a receiver of the gRPC module: over TCP and a socket in the file system, with and without
// TLS, compressed, and with the headers of the environment.
func TestGRPC(t *testing.T) {
	dir := t.TempDir()
	pool := testcert.Write(t, dir, 1)
	certificate, key, socket := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "socket")
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	mutual := grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAnyClientCert,
	}))
	for name, c := range map[string]struct {
		receiver *grpcReceiver
		endpoint string   // ADDRESS is that of the receiver
		env      []string // NAME=VALUE, less OTEL_EXPORTER_OTLP_
	}{
		"http":              {endpoint: "http://ADDRESS"},
		"https":             {receiver: newGRPCReceiver(t, "tcp", "127.0.0.1:0", mutual), endpoint: "https://ADDRESS"},
		"a variable":        {env: []string{"TRACES_ENDPOINT=http://ADDRESS", "ENDPOINT=http://127.0.0.1:1"}},
		"an address":        {env: []string{"ENDPOINT=ADDRESS", "INSECURE=true"}},
		"an address of DNS": {env: []string{"ENDPOINT=dns:///ADDRESS", "TRACES_INSECURE=true"}},
		"an address with TLS": {receiver: newGRPCReceiver(t, "tcp", "127.0.0.1:0", mutual),
			env: []string{"ENDPOINT=ADDRESS"}},
		"a socket": {receiver: newGRPCReceiver(t, "unix", socket), env: []string{"ENDPOINT=unix://" + socket}},
		"without TLS, though there is a certificate": {endpoint: "http://ADDRESS", env: []string{"CERTIFICATE=" + certificate}},
		"compressed":   {endpoint: "http://ADDRESS", env: []string{"COMPRESSION=gzip"}},
		"with headers": {endpoint: "http://ADDRESS", env: []string{"HEADERS=x-team=search,authorization=Bearer%20a"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.receiver
			if r == nil {
				r = newGRPCReceiver(t, "tcp", "127.0.0.1:0")
			}
			if r == c.receiver && c.receiver.address != socket {
				c.env = append(c.env, "CERTIFICATE="+certificate, "CLIENT_CERTIFICATE="+certificate, "CLIENT_KEY="+key)
			}
			for _, variable := range c.env {
				name, value, _ := strings.Cut(strings.ReplaceAll(variable, "ADDRESS", r.address), "=")
				t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
			}
			if log := export(t, Options{Endpoint: strings.ReplaceAll(c.endpoint, "ADDRESS", r.address)}); log != "" {
				t.Error(log)
			}
			select {
			case name := <-r.names:
				if name != "tools/call" {
					t.Errorf("received %q", name)
				}
			default:
				t.Fatal("nothing was received")
			}
			headers := <-r.headers
			got := strings.Join(append(headers["x-team"], headers["authorization"]...), " ")
			if want := map[string]string{"with headers": "search Bearer a"}[name]; got != want {
				t.Errorf("headers %q, want %q", got, want)
			}
		})
	}
}

// TestGRPCErrors sends to receivers that refuse spans or do not keep to gRPC. The loss is logged with its reason, by
// the error handler of the process, so the cases are not parallel.
func TestGRPCErrors(t *testing.T) {
	refusing := func(err error) string {
		r := newGRPCReceiver(t, "tcp", "127.0.0.1:0")
		r.err, r.answer = err, &collector.ExportTracePartialSuccess{ErrorMessage: "full", RejectedSpans: 1}
		return "http://" + r.address
	}
	answering := func(handler http.HandlerFunc) string {
		server := httptest.NewUnstartedServer(handler)
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, c := range map[string]struct{ endpoint, want string }{
		"some rejected": {refusing(nil), "full (1 spans rejected)"},
		"refused":       {refusing(status.Error(codes.PermissionDenied, "用户\n")), `code = PermissionDenied desc = 用户\n`},
		"another page":  {answering(http.NotFound), "404 (Not Found)"},
		"a redirection": {answering(http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP), "302 (Found)"},
		"a long response": {answering(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = w.Write([]byte{0, 0, 1, 0, 1})
			_, _ = w.Write(make([]byte, maxGRPCResponse+1))
		}), "received message larger than max"},
	} {
		t.Run(name, func(t *testing.T) {
			if log := export(t, Options{Endpoint: c.endpoint}); !strings.Contains(log, c.want) {
				t.Errorf("%s, want %s", log, c.want)
			}
		})
	}
}

// TestEnvironment refuses values that the exporters would ignore.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"TIMEOUT", "10s", `"10s": give a number of milliseconds`},
		{"CERTIFICATE", filepath.Join(t.TempDir(), "missing"), "OTEL_EXPORTER_OTLP_CERTIFICATE: open"},
		{"TRACES_CERTIFICATE", "grpc_test.go", "has no certificates in PEM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_"+c.name, c.value)
			for _, protocol := range []string{HTTP, GRPC} {
				_, err := New(t.Context(), Options{Endpoint: "http://127.0.0.1:1", Protocol: protocol})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want %s", protocol, err, c.want)
				}
			}
		})
	}
}
