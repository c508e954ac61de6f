package httpbroker

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
)

// TestPlaceholder: the secret takes the place of the call's placeholder in headers to the permission's server, and
// nowhere else. The server returns everything that it gets, and the guest never finds the secret in it.
func TestPlaceholder(t *testing.T) {
	t.Parallel()
	var arrived string // one request after the other
	echo := func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		var b strings.Builder
		_ = r.Write(&b)
		arrived = b.String()
		w.Header().Set("X-Echo", r.Header.Get("X-Key"))
		_, _ = io.WriteString(w, arrived)
	}
	granted, elsewhere := serve(t, echo), serve(t, echo)
	rule := credentialed(granted.URL)
	rule.Placeholder = "api_key"
	b := newBroker(t, &Options{Credentials: new(oneCredential)}, rule, everything(elsewhere.URL))
	other := newCall(t).Placeholder("api_key")
	for name, test := range map[string]struct {
		url, header, value, body string
		secret                   bool
	}{
		"a header":            {granted.URL, "X-Key", "{placeholder}", "", true},
		"within a header":     {granted.URL, "Authorization", "token {placeholder}", "", true},
		"twice":               {granted.URL, "Cookie", "a={placeholder}; b={placeholder}", "", true},
		"a redirect back":     {granted.URL + "/?to=/again", "X-Key", "{placeholder}", "", true},
		"the body":            {granted.URL, "X-Key", "none", "{placeholder}", false},
		"the path":            {granted.URL + "/{placeholder}", "X-Key", "none", "", false},
		"the query":           {granted.URL + "/?a={placeholder}", "X-Key", "none", "", false},
		"a header's name":     {granted.URL, "{placeholder}", "x", "", false},
		"another server":      {elsewhere.URL, "X-Key", "{placeholder}", "", false},
		"a redirect away":     {granted.URL + "/?to=" + elsewhere.URL, "X-Key", "{placeholder}", "", false},
		"a redirect to there": {elsewhere.URL + "/?to=" + granted.URL, "X-Key", "{placeholder}", "", false},
		"another call's":      {granted.URL, "X-Key", other, "", false},
		"nothing":             {granted.URL, "X-Key", "none", "", false},
		"encoded":             {granted.URL, "X-Key", "{encoded}", "", false},
	} {
		call := newCall(t)
		placeholder := call.Placeholder("api_key")
		fill := strings.NewReplacer("{placeholder}", placeholder, "{encoded}", "%70"+placeholder[1:]).Replace
		head := &abi.HTTPRequest{Method: "POST", URL: fill(test.url), Headers: map[string][]string{
			fill(test.header): {fill(test.value)}}}
		arrived = ""
		response, err := b.Do(t.Context(), call, head, []byte(fill(test.body)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Contains(arrived, secret); got != test.secret {
			t.Errorf("%s: the secret arrived: %v, in\n%s", name, got, arrived)
		}
		if test.secret && strings.Contains(arrived, placeholder) {
			t.Errorf("%s: a placeholder is left in\n%s", name, arrived)
		}
		if strings.Contains(string(body), secret) || strings.Contains(response.Header.Get("X-Echo"), secret) {
			t.Errorf("%s: the guest got the secret:\n%s", name, body)
		}
	}
	call := newCall(t)
	_, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: granted.URL, Headers: map[string][]string{
		"X-Key": {call.Placeholder("api_key")}, "Range": {"bytes=0-1"}}}, nil)
	wantCode(t, err, abi.CodeInvalid, "Range")
}
