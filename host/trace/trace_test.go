package trace_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hako-run/hako/host/trace"
)

// receiver is an OTLP receiver that speaks protobuf over HTTP.
type receiver struct {
	url string

	mu       sync.Mutex
	resource []string
	spans    map[string]*spans.Span
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{spans: map[string]*spans.Span{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var request collector.ExportTraceServiceRequest
		body, err := io.ReadAll(q.Body)
		if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			t.Errorf("%s %s: %v", q.Method, q.URL, err)
		}
		r.take(&request)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) take(request *collector.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, from := range request.ResourceSpans {
		for _, attribute := range from.Resource.Attributes {
			r.resource = append(r.resource, attribute.Key+"="+attribute.Value.GetStringValue())
		}
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				r.spans[span.Name] = span
			}
		}
	}
}

const remoteTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

var remote = trace.Remote{Parent: "00-" + remoteTrace + "-00f067aa0ba902b7-01", State: "vendor=1"}

// TestSpans sends a small trace to a receiver: what is below what, and what is said of it.
func TestSpans(t *testing.T) {
	t.Parallel()
	r := receive(t)
	tracer, err := trace.New(t.Context(),
		trace.Options{Endpoint: r.url, Protocol: trace.HTTP, Version: "v1", Instance: "i1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, frontend := tracer.Start(t.Context(), "tools/call", trace.Server, remote)
	frontend.Name("tools/call echo")
	frontend.Text(trace.Tool, "echo")
	frontend.Text(trace.Prompt, "")
	inner, work := trace.Start(ctx, "sandbox", trace.Internal)
	work.Int(trace.Steps, 7)
	work.Fail("timeout")
	work.End()
	frontend.End()
	if trace.ID(inner) != remoteTrace || !strings.Contains(trace.From(inner).Parent, remoteTrace) ||
		trace.From(inner).State != "vendor=1" {
		t.Errorf("trace %s, passed on as %+v", trace.ID(inner), trace.From(inner))
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	above, below := r.spans["tools/call echo"], r.spans["sandbox"]
	if above == nil || below == nil {
		t.Fatalf("got %v", r.spans)
	}
	if string(below.ParentSpanId) != string(above.SpanId) || above.Kind != spans.Span_SPAN_KIND_SERVER {
		t.Errorf("above %v, below %v", above, below)
	}
	if len(above.Attributes) != 1 || above.Attributes[0].Key != "gen_ai.tool.name" ||
		below.Status.Code != spans.Status_STATUS_CODE_ERROR {
		t.Errorf("attributes %v, status %v", above.Attributes, below.Status)
	}
	for _, want := range []string{"service.name=hako", "service.version=v1", "service.instance.id=i1"} {
		if !strings.Contains(strings.Join(r.resource, " "), want) {
			t.Errorf("no %s in %v", want, r.resource)
		}
	}
}

// TestRemote begins traces under what clients say of theirs: a malformed one begins a new trace, one that is not
// recorded is not.
func TestRemote(t *testing.T) {
	t.Parallel()
	r := receive(t)
	tracer, err := trace.New(t.Context(), trace.Options{Endpoint: r.url})
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close(t.Context())
	for name, test := range map[string]struct {
		remote trace.Remote
		id     string // "": a new one
		nobody bool
	}{
		"none":     {remote: trace.Remote{}},
		"recorded": {remote: remote, id: remoteTrace},
		"not recorded": {remote: trace.Remote{Parent: "00-" + remoteTrace + "-00f067aa0ba902b7-00"},
			id: remoteTrace, nobody: true},
		"malformed":      {remote: trace.Remote{Parent: "00-" + strings.ToUpper(remoteTrace) + "-00f067aa0ba902b7-01"}},
		"all zeros":      {remote: trace.Remote{Parent: "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"}},
		"version ff":     {remote: trace.Remote{Parent: "ff-" + remoteTrace + "-00f067aa0ba902b7-01"}},
		"a broken state": {remote: trace.Remote{Parent: remote.Parent, State: "=\x00,,="}, id: remoteTrace},
		"too long":       {remote: trace.Remote{Parent: strings.Repeat("0", 1<<16)}},
	} {
		ctx, span := tracer.Start(t.Context(), "call", trace.Server, test.remote)
		id := trace.ID(ctx)
		if (span == nil) != test.nobody || len(id) != 32 || test.id != "" && id != test.id || test.id == "" &&
			id == remoteTrace {
			t.Errorf("%s: span %v, trace %q", name, span, id)
		}
		span.End()
	}
}

// TestOptions refuses what cannot work at once.
func TestOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]trace.Options{
		"no URL":            {Endpoint: "localhost:4318"},
		"another scheme":    {Endpoint: "ftp://localhost"},
		"a secret":          {Endpoint: "https://user:secret@localhost"},
		"unknown protocol":  {Endpoint: "http://localhost", Protocol: "http/json"},
		"a ratio above 1":   {Endpoint: "http://localhost", Ratio: 1.1},
		"a negative ratio":  {Endpoint: "http://localhost", Ratio: -1},
		"a port that isn't": {Endpoint: "http://localhost:x"},
	} {
		if _, err := trace.New(t.Context(), o); err == nil || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProxy: spans go through the proxy that is configured, and never through the environment's.
func TestProxy(t *testing.T) {
	asked := make(chan string, 100)
	proxy := func(name string) *url.URL {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked <- name
			w.WriteHeader(http.StatusBadRequest)
		}))
		t.Cleanup(s.Close)
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	environment, configured := proxy("the environment's"), proxy("the configured one")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, environment.String())
	}
	t.Setenv("NO_PROXY", "")
	for _, protocol := range []string{trace.HTTP, trace.GRPC} {
		for name, c := range map[string]struct {
			proxy *url.URL
			to    string
			want  string
		}{
			"no proxy":                      {nil, "http://collector.invalid:4318", ""},
			"no proxy, over TLS":            {nil, "https://collector.invalid:4318", ""},
			"a proxy":                       {configured, "http://collector.invalid:4318", "the configured one"},
			"a proxy, over TLS":             {configured, "https://collector.invalid:4318", "the configured one"},
			"a proxy, but for this machine": {configured, "http://127.0.0.1:1", ""},
		} {
			t.Run(protocol+" with "+name, func(t *testing.T) {
				tracer, err := trace.New(t.Context(),
					trace.Options{Endpoint: c.to, Protocol: protocol, Proxy: func() *url.URL { return c.proxy }})
				if err != nil {
					t.Fatal(err)
				}
				_, span := tracer.Start(t.Context(), "tools/call", trace.Server, trace.Remote{})
				span.End()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.want == "" { // it is tried again and again
					time.AfterFunc(100*time.Millisecond, cancel)
				}
				closed := make(chan struct{})
				go func() { _ = tracer.Close(ctx); close(closed) }()
				var got []string
				select {
				case who := <-asked:
					got = append(got, who)
					cancel()
					<-closed
				case <-closed:
				}
				for len(asked) > 0 {
					got = append(got, <-asked)
				}
				if got = slices.Compact(got); strings.Join(got, " and ") != c.want {
					t.Errorf("asked: %q", got)
				}
			})
		}
	}
}

// TestOff says what traces cost where there are none: nothing is allocated.
func TestOff(t *testing.T) {
	var off *trace.Tracer
	ctx := t.Context()
	allocated := testing.AllocsPerRun(100, func() {
		inside, span := off.Start(ctx, "tools/call", trace.Server, remote)
		span.Text(trace.Tool, "echo")
		_, below := trace.Start(inside, "sandbox", trace.Internal)
		below.Int(trace.Steps, 1)
		below.Fail("timeout")
		below.End()
		span.End()
		if trace.ID(inside) != "" || trace.From(inside) != (trace.Remote{}) {
			t.Error("there is a trace")
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
	if err := off.Close(ctx); err != nil {
		t.Error(err)
	}
}
