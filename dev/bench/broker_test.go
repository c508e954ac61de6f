package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

// broker compares a small GET through the HTTP broker, without its cache, with one by net/http's client, both over
// keep-alive connections. It excludes the transfer to a guest.
func (r *results) broker(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, `{"temperature":15}`)
	}))
	defer server.Close()
	brokered, err := httpbroker.New([]grant.HTTPRule{{Name: "bench", URL: server.URL}},
		&httpbroker.Options{CacheBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer brokered.Close()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	through := func() {
		call := &broker.Call{Plugin: "bench"}
		response, err := brokered.Do(t.Context(), call, &abi.HTTPRequest{URL: server.URL + "/"}, nil)
		drain(t, err, func() io.ReadCloser { return response.Body })
		_ = call.Close()
	}
	direct := func() {
		response, err := client.Get(server.URL + "/")
		drain(t, err, func() io.ReadCloser { return response.Body })
	}
	slow, fast := time.Hour, time.Hour
	for range 10 {
		slow, fast = min(slow, each(200, through)), min(fast, each(200, direct))
	}
	r.add(t, "http_call_ratio", float64(slow)/float64(fast), "broker/direct")
	r.add(t, "http_call_overhead_us", us(slow-fast), "us")
}

func drain(t *testing.T, err error, body func() io.ReadCloser) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, body()); err != nil {
		t.Fatal(err)
	}
	_ = body().Close()
}

// each returns the duration of one of n.
func each(n int, do func()) time.Duration {
	start := time.Now()
	for range n {
		do()
	}
	return time.Since(start) / time.Duration(n)
}
