package httpbroker

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"announced": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 101)) },
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			for range 101 {
				fmt.Fprint(w, "x")
				w.(http.Flusher).Flush()
			}
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := fmt.Fprint(w, strings.Repeat("x", 1<<12)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			_, err := get(t, newBroker(t, &Options{Limits: Limits{ResponseBody: 100}}, everything(s.URL)), s.URL)
			wantCode(t, err, abi.CodeLimit, s.URL, "limit of 100 bytes")
		})
	}
}

func TestBodyOfExactlyTheLimit(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100)) })
	b := newBroker(t, &Options{Limits: Limits{ResponseBody: 100}}, everything(s.URL))
	if a := mustGet(t, b, s.URL); len(a.body) != 100 {
		t.Errorf("%d bytes", len(a.body))
	}
	a, err := do(t, b, &abi.HTTPRequest{Method: "HEAD", URL: s.URL}, "")
	if err != nil || a.Header.Get("Content-Length") != "100" {
		t.Errorf("HEAD: %v, %v", a.Header, err)
	}
}

// compressed serves body in a content coding, if that was asked for.
func compressed(coding string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", coding)
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip, deflate") {
			w.Header().Del("Content-Encoding")
		}
		_, _ = w.Write(body)
	}
}

func compress(t testing.TB, open func(io.Writer) io.WriteCloser, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := open(&b)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asGzip(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
func asZlib(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
func asFlate(w io.Writer) io.WriteCloser {
	f, _ := flate.NewWriter(w, flate.BestCompression)
	return f
}

func TestDecompression(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("hako ", 100))
	for name, c := range map[string]struct {
		coding string
		body   []byte
		want   string
		left   string // Content-Encoding that the guest sees
	}{
		"gzip":           {"gzip", compress(t, asGzip, text), string(text), ""},
		"gzip, old name": {"X-GZIP", compress(t, asGzip, text), string(text), ""},
		"two gzip parts": {"gzip", append(compress(t, asGzip, text), compress(t, asGzip, text)...),
			string(text) + string(text), ""},
		"deflate":         {"deflate", compress(t, asZlib, text), string(text), ""},
		"deflate, bare":   {"deflate", compress(t, asFlate, text), string(text), ""},
		"empty":           {"gzip", nil, "", "gzip"},
		"not understood":  {"br", []byte("raw"), "raw", "br"},
		"several codings": {"gzip, gzip", []byte("raw"), "raw", "gzip, gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, compressed(c.coding, c.body))
			a := mustGet(t, newBroker(t, nil, everything(s.URL)), s.URL)
			if a.body != c.want || a.Header.Get("Content-Encoding") != c.left {
				t.Errorf("got %q with %v", a.body, a.Header)
			}
			if length := a.Header.Get("Content-Length"); c.left == "" && length != "" {
				t.Errorf("Content-Length %s of the compressed body", length)
			}
		})
	}
}

func TestPartsAreNotDecompressed(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusPartialContent)
		fmt.Fprintf(w, "%s|%s", r.Header.Get("Range"), r.Header.Get("Accept-Encoding"))
	})
	a, err := do(t, newBroker(t, nil, everything(s.URL)), &abi.HTTPRequest{URL: s.URL,
		Headers: map[string][]string{"Range": {"bytes=0-1"}}}, "")
	if err != nil || a.body != "bytes=0-1|" {
		t.Errorf("got %q, %v", a.body, err)
	}
}

func TestBombs(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 1<<20)
	for name, h := range map[string]http.HandlerFunc{
		"gzip":          compressed("gzip", compress(t, asGzip, zeros)),
		"deflate":       compressed("deflate", compress(t, asZlib, zeros)),
		"many gzips":    compressed("gzip", bytes.Repeat(compress(t, asGzip, zeros[:1<<10]), 200)),
		"bare deflates": compressed("deflate", compress(t, asFlate, zeros)),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			b := newBroker(t, &Options{Limits: Limits{Decompressed: 100 << 10}}, everything(s.URL))
			_, err := get(t, b, s.URL)
			wantCode(t, err, abi.CodeLimit, "102400 bytes once it is decompressed")
		})
	}
}

func TestBrokenCompression(t *testing.T) {
	t.Parallel()
	whole := compress(t, asGzip, []byte(strings.Repeat("hako", 100)))
	for name, body := range map[string][]byte{"not gzip": []byte("plain text"),
		"cut": whole[:len(whole)-10], "one byte": {1}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, compressed("gzip", body))
			_, err := get(t, newBroker(t, nil, everything(s.URL)), s.URL)
			wantCode(t, err, abi.CodeNetwork)
		})
	}
}

func TestBrokenBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "short")
	})
	_, err := get(t, newBroker(t, nil, everything(s.URL)), s.URL)
	wantCode(t, err, abi.CodeNetwork, "closed the connection")
}

func TestResponseHeaderLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		http2 bool
		size  int
	}{"HTTP/1.1": {false, 12 << 10}, "HTTP/2": {true, 12 << 10}, "HTTP/2, far too large": {true, 64 << 10}} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X", strings.Repeat("x", c.size))
			}))
			s.EnableHTTP2 = c.http2
			s.StartTLS()
			t.Cleanup(s.Close)
			roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			b := newBroker(t, &Options{RootCAs: roots, Limits: Limits{Header: 10 << 10}}, everything(s.URL))
			_, err := get(t, b, s.URL)
			wantCode(t, err, abi.CodeLimit, "header", "10240")
		})
	}
}

func TestRequestBodyLimit(t *testing.T) {
	t.Parallel()
	b := newBroker(t, &Options{Limits: Limits{RequestBody: 10}}, everything("https://a.test"))
	_, err := do(t, b, &abi.HTTPRequest{Method: "POST", URL: "https://a.test"}, strings.Repeat("x", 11))
	wantCode(t, err, abi.CodeLimit, "11 bytes", "limit of 10")
}

// stuck never gets further until the client has gone. With head it sends that much first.
func stuck(head bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if head {
			fmt.Fprint(w, "x")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]bool{"no answer": false, "slow body": true} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, stuck(head))
			b := newBroker(t, &Options{Limits: Limits{Time: 30 * time.Millisecond}}, everything(s.URL))
			_, err := get(t, b, s.URL)
			wantCode(t, err, abi.CodeTimeout, "time limit of 30ms")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v is not context.DeadlineExceeded", err)
			}
			b = newBroker(t, nil, everything(s.URL))
			_, err = do(t, b, &abi.HTTPRequest{URL: s.URL, TimeoutMS: 20}, "")
			wantCode(t, err, abi.CodeTimeout, "time limit of 20ms")
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = doCtx(t, ctx, b, &abi.HTTPRequest{URL: s.URL}, "")
			wantCode(t, err, abi.CodeTimeout, "the call's time is up")
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	t.Run("request", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		})
		_, err := doCtx(t, ctx, newBroker(t, nil, everything(s.URL)), &abi.HTTPRequest{URL: s.URL}, "")
		wantCode(t, err, abi.CodeCanceled)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v is not context.Canceled", err)
		}
	})
	t.Run("body", func(t *testing.T) {
		s := serve(t, stuck(true))
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := newBroker(t, nil, everything(s.URL)).Do(ctx, newCall(t), &abi.HTTPRequest{URL: s.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		read := make(chan error)
		go func() {
			_, err := resp.Body.Read(make([]byte, 10))
			read <- err
		}()
		cancel()
		wantCode(t, <-read, abi.CodeCanceled)
		_, err = resp.Body.Read(make([]byte, 10))
		wantCode(t, err, abi.CodeCanceled)
	})
	t.Run("before", func(t *testing.T) {
		s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := doCtx(t, ctx, newBroker(t, nil, everything(s.URL)), &abi.HTTPRequest{URL: s.URL}, "")
		wantCode(t, err, abi.CodeCanceled)
	})
}

func TestRequestsPerCall(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	b := newBroker(t, &Options{Limits: Limits{PerCall: 2}}, everything(s.URL))
	call := newCall(t)
	for i := range 3 {
		resp, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: s.URL}, nil)
		if i == 2 {
			wantCode(t, err, abi.CodeLimit, "2 requests")
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	mustGet(t, b, s.URL) // another call has its own count
}

func TestOpenResponses(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "body") })
	b := newBroker(t, &Options{CacheBytes: -1}, everything(s.URL))
	call := newCall(t)
	open := func() (*Response, error) { return b.Do(t.Context(), call, &abi.HTTPRequest{URL: s.URL}, nil) }
	var last *Response
	for range maxOpen {
		var err error
		if last, err = open(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := open()
	wantCode(t, err, abi.CodeLimit, "16 open responses")
	_, _ = io.ReadAll(last.Body) // read to the end is as good as closed
	if last, err = open(); err != nil {
		t.Fatal(err)
	}
	_ = last.Body.Close()
	if _, err = open(); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "body") })
	b := newBroker(t, &Options{Limits: Limits{Concurrent: 2}}, everything(s.URL))
	one, two := newCall(t), newCall(t)
	for _, call := range []*broker.Call{one, two} {
		if _, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: s.URL}, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := get(t, b, s.URL)
	wantCode(t, err, abi.CodeLimit, "2 running requests")
	_ = one.Close()
	mustGet(t, b, s.URL)
	mustGet(t, b, s.URL) // a failed or finished one gives its slot back
}

func TestClosedBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "body") })
	resp, err := newBroker(t, nil, everything(s.URL)).Do(t.Context(), newCall(t), &abi.HTTPRequest{URL: s.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(resp.Body.Close(), resp.Body.Close()); err != nil {
		t.Error(err)
	}
	_, err = resp.Body.Read(make([]byte, 1))
	wantCode(t, err, abi.CodeInvalid, "closed")
}

// Many calls of a plugin at once, some of them canceled in the middle.
func TestHammer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, r.URL.Query().Get("n"))
	})
	b := newBroker(t, &Options{CacheBytes: 4 << 10, Limits: Limits{Concurrent: 200}}, everything(s.URL))
	done := make(chan error)
	const calls = 40
	for i := range calls {
		go func() {
			var errs []error
			for n := range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+n)%7 == 0 {
					cancel()
				}
				want := fmt.Sprint(n % 8)
				a, err := doCtx(t, ctx, b, &abi.HTTPRequest{URL: s.URL + "?n=" + want}, "")
				if err == nil && a.body != want {
					err = fmt.Errorf("got %q, want %q", a.body, want)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					errs = append(errs, err)
				}
				cancel()
			}
			done <- errors.Join(errs...)
		}()
	}
	for range calls {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(b.slots); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}
