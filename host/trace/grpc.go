package trace

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hako-run/hako/host/outbound"
)

const (
	exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	// grpcPrefix is the size of what precedes a message: whether it is compressed, and its length.
	grpcPrefix = 5
	// maxGRPCResponse bounds a response, in bytes. It names at most how many spans were rejected, and why.
	maxGRPCResponse = 64 << 10
	// defaultExportTimeout is the default in the specification of the exporters.
	defaultExportTimeout = 10 * time.Second
)

// grpcTransport sends the requests of the exporter for OTLP over HTTP as calls of one gRPC method, and returns gRPC's
// status as that of HTTP. The exporter retries after 429 and 503.
type grpcTransport struct{ http2 *http.Transport }

// RoundTrip sends one request. A receiver that cannot be reached has the status 503, as with other clients of gRPC.
func (t *grpcTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	message, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	response, err := t.http2.RoundTrip(grpcRequest(r, message))
	switch {
	case r.Context().Err() != nil && err != nil:
		return nil, err
	case err != nil:
		return httpResponse(r, http.StatusServiceUnavailable, nil, []byte(err.Error())), nil
	case response.StatusCode != http.StatusOK: // of a proxy or a server that does not speak gRPC
		return response, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxGRPCResponse+1)) // the status follows the body
	if err != nil {
		return nil, err
	}
	if len(body) > maxGRPCResponse {
		return nil, fmt.Errorf("the gRPC response has more than %d KiB", maxGRPCResponse>>10)
	}
	trailer := response.Trailer
	if response.Header.Get("Grpc-Status") != "" {
		trailer = response.Header
	}
	return resultOf(r, trailer, body)
}

// grpcRequest returns the request r, whose body is message, as a call.
func grpcRequest(r *http.Request, message []byte) *http.Request {
	call := r.Clone(r.Context())
	call.URL.Path = exportMethod
	frame := make([]byte, grpcPrefix, grpcPrefix+len(message))
	if encoding := call.Header.Get("Content-Encoding"); encoding != "" {
		call.Header.Del("Content-Encoding")
		call.Header.Set("Grpc-Encoding", encoding)
		frame[0] = 1
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(message)))
	frame = append(frame, message...)
	call.Header.Set("Content-Type", "application/grpc+proto")
	call.Header.Set("Te", "trailers")
	call.ContentLength = int64(len(frame))
	call.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(frame)), nil }
	call.Body, _ = call.GetBody()
	return call
}

// resultOf returns the result of a call as a response to r.
func resultOf(r *http.Request, trailer http.Header, body []byte) (*http.Response, error) {
	code, err := strconv.Atoi(trailer.Get("Grpc-Status"))
	if err != nil {
		return nil, errors.New("the receiver of traces does not speak gRPC: its response has no grpc-status")
	}
	if code == 0 {
		if len(body) < grpcPrefix || body[0] != 0 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-grpcPrefix {
			return nil, errors.New("the gRPC response is not one message without compression")
		}
		header := http.Header{"Content-Type": {"application/x-protobuf"}}
		return httpResponse(r, http.StatusOK, header, body[grpcPrefix:]), nil
	}
	text := trailer.Get("Grpc-Message")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	header := http.Header{}
	after, named := retryDelay(trailer.Get("Grpc-Status-Details-Bin"))
	if after > 0 {
		header.Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
	}
	return httpResponse(r, httpStatus(code, named), header, fmt.Appendf(nil, "gRPC status %d: %q", code, text)), nil
}

// httpStatus returns the status of HTTP for an error of gRPC. It is one that is retried where the specification of OTLP
// says so.
func httpStatus(code int, namesDelay bool) int {
	switch code {
	case 1, 4, 10, 11, 14, 15: // canceled, deadline exceeded, aborted, out of range, unavailable, data loss
		return http.StatusServiceUnavailable
	case 8: // resource exhausted
		if namesDelay {
			return http.StatusTooManyRequests
		}
	}
	return http.StatusInternalServerError
}

// retryDelay returns the delay before a retry that the details of a status name, if they do.
func retryDelay(details string) (delay time.Duration, named bool) {
	encoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(details, "="))
	var detailed status.Status
	if err != nil || proto.Unmarshal(encoded, &detailed) != nil {
		return 0, false
	}
	for _, detail := range detailed.Details {
		var retry errdetails.RetryInfo
		if detail.MessageIs(&retry) && detail.UnmarshalTo(&retry) == nil {
			return retry.RetryDelay.AsDuration(), true
		}
	}
	return 0, false
}

func httpResponse(r *http.Request, code int, header http.Header, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// grpcOptions returns the options with which the exporter for OTLP over HTTP speaks gRPC.
func (o *Options) grpcOptions() ([]otlptracehttp.Option, error) {
	endpoint, socket := o.grpcEndpoint()
	client, err := o.grpcClient(socket)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	options := []otlptracehttp.Option{otlptracehttp.WithHTTPClient(client)}
	if endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(endpoint))
	}
	return options, nil
}

// grpcClient returns a client that connects to a socket in the file system unless its path is empty. It has the timeout
// and the certificates of the environment, which the exporter does not give to a client that is not its own.
func (o *Options) grpcClient(socket string) (*http.Client, error) {
	timeout := defaultExportTimeout
	if value := exporterVariable("TIMEOUT"); value != "" {
		milliseconds, err := strconv.Atoi(value)
		if err != nil || milliseconds <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: give a number of milliseconds", value)
		}
		timeout = time.Duration(milliseconds) * time.Millisecond
	}
	certificates, err := exporterTLS()
	if err != nil {
		return nil, err
	}
	http2 := outbound.NewTransport(nil)
	http2.Proxy, http2.TLSClientConfig, http2.MaxResponseHeaderBytes = nil, certificates, maxGRPCResponse
	http2.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		if socket != "" {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
		return outbound.Connect(ctx, o.Proxy, address)
	}
	http2.Protocols = new(http.Protocols)
	http2.Protocols.SetHTTP2(true)
	http2.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{
		Transport: &grpcTransport{http2}, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// grpcEndpoint returns the URL of the receiver, and the path if it is a socket in the file system. The URL is empty if
// the exporter reads it from the environment.
func (o *Options) grpcEndpoint() (endpoint, socket string) {
	if o.Endpoint != "" {
		return o.Endpoint, ""
	}
	endpoint = strings.TrimPrefix(exporterVariable("ENDPOINT"), "dns:///")
	if path, isPath := strings.CutPrefix(endpoint, "unix:"); isPath {
		return "http://localhost", strings.TrimPrefix(path, "//")
	}
	if endpoint == "" || strings.Contains(endpoint, "://") {
		return "", ""
	}
	if strings.EqualFold(exporterVariable("INSECURE"), "true") {
		return "http://" + endpoint, ""
	}
	return "https://" + endpoint, ""
}

// exporterTLS returns the certificates that the environment names.
func exporterTLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := exporterVariable("CERTIFICATE"); file != "" {
		certificates, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificates in PEM", file)
		}
	}
	file, key := exporterVariable("CLIENT_CERTIFICATE"), exporterVariable("CLIENT_KEY")
	if file == "" || key == "" {
		return config, nil
	}
	certificate, err := tls.LoadX509KeyPair(file, key)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
	}
	config.Certificates = []tls.Certificate{certificate}
	return config, nil
}

// exporterVariable returns a variable of the exporters. The one for traces takes precedence.
func exporterVariable(name string) string {
	return cmp.Or(strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name)),
		strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_"+name)))
}
