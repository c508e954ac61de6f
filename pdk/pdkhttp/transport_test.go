package pdkhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/pdkhttp"
)

func TestTransport(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.Header.Get("X-Asked")+" "+string(body))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "made")
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Asked", "yes")
	response, err := pdkhttp.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "made" || response.Status != "201 Created" ||
		response.Header.Get("X-Seen") != "POST yes body" {
		t.Errorf("%s %q %v %v", response.Status, body, response.Header, err)
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.New("broken") }
func (brokenBody) Close() error             { return nil }

func TestBrokenBody(t *testing.T) {
	t.Parallel()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1", brokenBody{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (pdkhttp.Transport{}).RoundTrip(request); err == nil ||
		!strings.Contains(err.Error(), "read the request body: broken") {
		t.Errorf("error = %v", err)
	}
}
