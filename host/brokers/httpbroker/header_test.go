package httpbroker

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

func TestHostsOwnHeaders(t *testing.T) {
	t.Parallel()
	var seen http.Header
	var host string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen, host = r.Header, r.Host
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("X-End", "1")
	})
	guest := map[string][]string{"accept": {"a", "b"}, "User-Agent": {"mine"}, "X-Custom": {"1"}}
	for _, name := range []string{
		"host", "Content-Length", "connection", "Keep-Alive", "Proxy-Authorization", "proxy-connection", "TE",
		"Trailer", "Transfer-Encoding",
		"Upgrade", "Expect", "Accept-Encoding", "Via", "Forwarded", "X-Forwarded-For", "x-forwarded-host", "X-Real-IP",
		"X-HTTP-Method-Override",
		"X-Http-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "HTTP2-Settings",
		"X-ProxyUser-Ip", "x_proxyuser_ip", "True-Client-IP", "X-True-IP", "Fly-Client-IP", "X-Forward-For",
		"X-Auth-Request-User", "X-WebAuth-User", "X-Authenticated-Userid", "Metadata-Flavor", "Metadata",
		"X-aws-ec2-metadata-token", "X-aws-ec2-metadata-token-ttl-seconds", "X-Google-Metadata-Request",
	} {
		guest[name] = []string{"evil"}
	}
	b := newBroker(t, nil, everything(s.URL))
	a, err := do(t, b, &abi.HTTPRequest{URL: s.URL, Headers: guest}, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimPrefix(s.URL, "http://"); host != want {
		t.Errorf("Host %q, want %q", host, want)
	}
	want := http.Header{"Accept": {"a", "b"}, "Accept-Encoding": {"gzip, deflate"},
		"User-Agent": {"mine"}, "X-Custom": {"1"}}
	for name, values := range seen {
		if !slices.Equal(values, want[name]) {
			t.Errorf("%s: %q, want %q", name, values, want[name])
		}
	}
	if len(seen) != len(want) {
		t.Errorf("headers %v, want %v", seen, want)
	}
	for _, name := range []string{"Connection", "X-Hop", "Keep-Alive", "Proxy-Authenticate"} {
		if a.Header.Get(name) != "" {
			t.Errorf("the guest gets %s", name)
		}
	}
	if a.Header.Get("X-End") != "1" {
		t.Error("the guest does not get X-End")
	}
}

func TestRequestHeaderLimits(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil, everything("https://a.test"))
	for name, headers := range map[string]map[string][]string{
		"size":   {"X": {strings.Repeat("x", maxRequestHeader)}},
		"number": {"X": make([]string, maxRequestFields+1)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := do(t, b, &abi.HTTPRequest{URL: "https://a.test", Headers: headers}, "")
			wantCode(t, err, abi.CodeInvalid, "headers")
		})
	}
}
