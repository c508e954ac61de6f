package server

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/hako-run/hako/host/app/config"
)

// TestDraining: /readyz reports the shutdown before connections are closed.
func TestDraining(t *testing.T) {
	t.Parallel()
	w := &web{server: new(Server)}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		answer := httptest.NewRecorder()
		w.health().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if answer.Code != want {
			t.Errorf("status %d, want %d", answer.Code, want)
		}
		w.server.draining.Store(true)
	}
}

// TestListenerFails: if one of several addresses fails, the server ends and drains the others.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Source{Dir: t.TempDir(), Default: []byte("locale: en\n")})
	if err != nil {
		t.Fatal(err)
	}
	s := testServer(c)
	s.plugins, s.reloader = new(plugins), newReloader(s, nil)
	w := &web{server: s}
	s.parts = []part{w}
	for range 2 {
		if _, err := w.listen("http.address", "127.0.0.1:0", w.health(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.listeners[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, ErrServing) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v", err)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", w.listeners[1].Addr().String()); err == nil {
		t.Error("the other address is still open")
	}
}

// TestListenError: the error names the remedy.
func TestListenError(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]string{syscall.EACCES: "choose a higher port", syscall.EADDRNOTAVAIL: "no network interface", syscall.EMFILE: syscall.EMFILE.Error()} {
		err := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", errno)}
		if got := listenError("http.address", "192.0.2.1:80", err); !errors.Is(got, errno) ||
			!strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", errno, got)
		}
	}
}

// TestIcon: what clients get as the icon is a URI without characters that RFC 3986 excludes, and an SVG picture.
func TestIcon(t *testing.T) {
	t.Parallel()
	encoded, ok := strings.CutPrefix(icon, "data:image/svg+xml;base64,")
	picture, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || xml.Unmarshal(picture, new(struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	})) != nil {
		t.Errorf("%s: %v", icon, err)
	}
}
