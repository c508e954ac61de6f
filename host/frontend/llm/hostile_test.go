package llm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHostileProvider checks that a redirect by the provider does not send the key or the conversation to another host.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(fmt.Sprint("redirects with ", status), func(t *testing.T) {
			t.Parallel()
			evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("the key came along: %q", r.Header.Get("x-api-key"))
			}))
			defer evil.Close()
			provider := httptest.NewServer(http.RedirectHandler(evil.URL, status))
			defer provider.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, provider.URL,
				strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("x-api-key", "secret")
			response, err := newHTTPClient(nil, time.Minute).Do(request)
			if err == nil {
				response.Body.Close()
			}
		})
	}
}
