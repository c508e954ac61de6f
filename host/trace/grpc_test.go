package trace

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // the receiver decompresses
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

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
		"a socket":     {receiver: newGRPCReceiver(t, "unix", socket), env: []string{"ENDPOINT=unix://" + socket}},
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

// TestGRPCResults has each result of a call as a response of HTTP, on which the exporter acts.
func TestGRPCResults(t *testing.T) {
	t.Parallel()
	exhausted := status.New(codes.ResourceExhausted, "slow down")
	delayed, err := exhausted.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err    error
		status int
		after  string
		body   string
	}{
		"accepted":              {status: http.StatusOK, body: "\n\x06\x12\x04full"},
		"unavailable":           {err: status.Error(codes.Unavailable, "restart"), status: 503, body: `14: "restart"`},
		"exhausted":             {err: exhausted.Err(), status: 500, body: `8: "slow down"`},
		"exhausted for a while": {err: delayed.Err(), status: 429, after: "2", body: `8: "slow down"`},
		"refused":               {err: status.Error(codes.PermissionDenied, "用户\n"), status: 500, body: `7: "用户\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newGRPCReceiver(t, "tcp", "127.0.0.1:0")
			r.err, r.answer = c.err, &collector.ExportTracePartialSuccess{ErrorMessage: "full"}
			response := post(t, "http://"+r.address)
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != c.status || response.Header.Get("Retry-After") != c.after ||
				!strings.HasSuffix(string(body), c.body) {
				t.Errorf("%s, %v, %q, %v", response.Status, response.Header, body, err)
			}
		})
	}
}

func post(t *testing.T, endpoint string) *http.Response {
	t.Helper()
	client, err := (&Options{Proxy: func() *url.URL { return nil }}).grpcClient("")
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/v1/traces", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return &http.Response{Status: err.Error(), Body: http.NoBody}
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// TestNotGRPC sends to servers that do not keep to gRPC, and to none.
func TestNotGRPC(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"no status":     {func(http.ResponseWriter, *http.Request) {}, "does not speak gRPC"},
		"another page":  {http.NotFound, "404 Not Found"},
		"a redirection": {http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP, "302 Found"},
		"no message": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Grpc-Status", "0")
		}, "not one message"},
		"a length that is wrong": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
			_, _ = io.WriteString(w, "\x00\xff\xff\xff\xffx")
		}, "not one message"},
		"a long response": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, maxGRPCResponse+1))
		}, "more than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(c.handler)
			server.Config.Protocols = new(http.Protocols)
			server.Config.Protocols.SetUnencryptedHTTP2(true)
			server.Start()
			defer server.Close()
			if response := post(t, server.URL); !strings.Contains(response.Status, c.want) {
				t.Errorf("%s, want %s", response.Status, c.want)
			}
		})
	}
	if response := post(t, "http://127.0.0.1:1"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("nobody listens: %s", response.Status)
	}
}

// TestGRPCEnvironment refuses what no exporter could use.
func TestGRPCEnvironment(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"TIMEOUT", "10s", `"10s": give a number of milliseconds`},
		{"CERTIFICATE", filepath.Join(t.TempDir(), "missing"), "OTEL_EXPORTER_OTLP_CERTIFICATE: open"},
		{"TRACES_CERTIFICATE", "grpc_test.go", "has no certificates in PEM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_"+c.name, c.value)
			_, err := New(t.Context(), Options{Endpoint: "http://127.0.0.1:1", Protocol: GRPC})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
