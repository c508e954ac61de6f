package httpbroker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/pdk/abi"
)

func parse(t testing.TB, text string) *Recordings {
	t.Helper()
	rec, err := ParseRecordings([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestParseRecordings(t *testing.T) {
	t.Parallel()
	rec := parse(t, `{
		"note": "made up", "clock": "2026-01-02T03:04:05+09:00",
		"exchanges": [
			{"request": {"method": "GET", "url": "https://a.test/x"},
			 "response": {"status": 200, "headers": {"content-type": "text/x", "X": ["1", "2"]}, "body": "hello"}},
			{"request": {"method": "POST", "url": "https://a.test/x", "body": "{}"}, "response": {"status": 201, "bodyBase64": "/w=="}}
		]}`)
	if rec.Note != "made up" || !rec.Clock.Equal(time.Date(2026, 1, 1, 18, 4, 5, 0, time.UTC)) ||
		len(rec.Exchanges) != 2 {
		t.Errorf("got %+v", rec)
	}
	if h := rec.Exchanges[0].Response.header(); h.Get("Content-Type") != "text/x" || len(h["X"]) != 2 {
		t.Errorf("headers %v", h)
	}
	if body := rec.Exchanges[1].Response.body(); !bytes.Equal(body, []byte{0xff}) {
		t.Errorf("body %q", body)
	}
}

func TestParseRecordingsRefuses(t *testing.T) {
	t.Parallel()
	exchange := func(request, response string) string {
		return fmt.Sprintf(`{"exchanges":[{"request":{%s},"response":{%s}}]}`, request, response)
	}
	get, ok := `"method":"GET","url":"https://a.test/"`, `"status":200`
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":    {"exchanges:", "invalid character"},
		"empty":       {"", "ends early"},
		"cut":         {`{"exchanges":[`, "ends early"},
		"unknown key": {`{"exchange":[]}`, `unknown key "exchange"`},
		"unknown inside": {exchange(get+`,"header":{}`, ok),
			`the value at "/exchanges/0/request" has the unknown key "header"`},
		"a key twice":     {`{"exchanges":[],"exchanges":[]}`, `the duplicate key "exchanges"`},
		"a header twice":  {exchange(get, ok+`,"headers":{"X":"1","X":"2"}`), `the duplicate key "X"`},
		"more":            {`{"exchanges":[]} {}`, "after top-level value"},
		"wrong type":      {`{"exchanges":{}}`, "must be an array"},
		"clock":           {`{"clock":"yesterday","exchanges":[]}`, `the value at "/clock"`},
		"no method":       {exchange(`"url":"https://a.test/"`, ok), "exchange 0: method"},
		"small method":    {exchange(`"method":"get","url":"https://a.test/"`, ok), "upper case"},
		"no URL":          {exchange(`"method":"GET"`, ok), "exchange 0"},
		"URL":             {exchange(`"method":"GET","url":"https://a.test/..%2f"`, ok), "encoded dot segments"},
		"no status":       {exchange(get, ``), "status 0"},
		"status":          {exchange(get, `"status":100`), "status 100"},
		"header type":     {exchange(get, ok+`,"headers":{"X":1}`), `header "X"`},
		"header name":     {exchange(get, ok+`,"headers":{"X Y":"1"}`), "not a valid header name"},
		"header value":    {exchange(get, ok+`,"headers":{"X":"1\n2"}`), "control characters"},
		"two bodies":      {exchange(get, ok+`,"body":"x","bodyBase64":"eA=="`), "both"},
		"base64":          {exchange(get, ok+`,"bodyBase64":"!"`), "is not Base64"},
		"too large":       {`{"note":"` + strings.Repeat("x", maxRecordings) + `"}`, "more than the limit"},
		"too many":        {`{"exchanges":[{}` + strings.Repeat(",{}", maxExchanges) + `]}`, "10001 exchanges"},
		"deeply nested":   {strings.Repeat("[", 100_000), "must be an object"},
		"nested, unknown": {`{"x":` + strings.Repeat("[", 100_000), `unknown key "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRecordings([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func FuzzParseRecordings(f *testing.F) {
	f.Add([]byte(`{"note":"n","clock":"2026-01-02T03:04:05Z","exchanges":[{"request":{"method":"GET","url":"https://a.test/?b=1&a=2"},"response":{"status":200,"headers":{"A":"b","C":["d","e"]},"body":"x"}}]}`))
	f.Add([]byte(`{"exchanges":[{"request":{"method":"POST","url":"http://[::1]/","body":"{}"},"response":{"status":204,"bodyBase64":"eA=="}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := ParseRecordings(data)
		if err != nil {
			return
		}
		encoded, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseRecordings(encoded); err != nil {
			t.Fatalf("%v, after encoding as %s", err, encoded)
		}
	})
}

// replaying returns a broker on recordings that fails the test if it dials.
func replaying(t *testing.T, recordings string) *Broker {
	t.Helper()
	b := newBroker(t, &Options{Replay: parse(t, recordings)}, everything("https://a.test"))
	network(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s went to the network", r.URL)
		return nil, http.ErrServerClosed
	}).under(b)
	return b
}

func TestReplay(t *testing.T) {
	t.Parallel()
	b := replaying(t, `{"exchanges":[
		{"request":{"method":"GET","url":"https://a.test/q?b=2&a=1&a=0"},"response":{"status":200,"headers":{"content-type":"text/x"},"body":"query"}},
		{"request":{"method":"GET","url":"https://a.test/key?token=REDACTED"},"response":{"status":200,"body":"key"}},
		{"request":{"method":"GET","url":"https://a.test/moved"},"response":{"status":302,"headers":{"Location":"/q?a=1&a=0&b=2"}}},
		{"request":{"method":"GET","url":"https://a.test/away"},"response":{"status":302,"headers":{"Location":"https://b.test/"}}},
		{"request":{"method":"POST","url":"https://a.test/p","body":"{\"a\":1,\"b\":[2]}"},"response":{"status":200,"body":"json"}},
		{"request":{"method":"POST","url":"https://a.test/p","body":"text"},"response":{"status":200,"body":"text"}},
		{"request":{"method":"POST","url":"https://a.test/any"},"response":{"status":200,"body":"any"}}
	]}`)
	for name, c := range map[string]struct{ method, url, body, want, code string }{
		"query in another order":    {"GET", "https://A.test:443/x/../q?a=1&b=2&a=0", "", "query", ""},
		"values in another order":   {"GET", "https://a.test/q?a=0&a=1&b=2", "", "", abi.CodeInvalid},
		"less query":                {"GET", "https://a.test/q?a=1", "", "", abi.CodeInvalid},
		"secret":                    {"GET", "https://a.test/key?token=abc", "", "key", ""},
		"redirect":                  {"GET", "https://a.test/moved", "", "query", ""},
		"redirect without a grant":  {"GET", "https://a.test/away", "", "", abi.CodeNotGranted},
		"other method":              {"DELETE", "https://a.test/p", "", "", abi.CodeInvalid},
		"JSON body":                 {"POST", "https://a.test/p", `{"b": [2], "a": 1}`, "json", ""},
		"other JSON body":           {"POST", "https://a.test/p", `{"b": [2], "a": 2}`, "", abi.CodeInvalid},
		"text body":                 {"POST", "https://a.test/p", "text", "text", ""},
		"any body":                  {"POST", "https://a.test/any", "whatever", "any", ""},
		"no grant, not a recording": {"GET", "https://b.test/", "", "", abi.CodeNotGranted},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := do(t, b, &abi.HTTPRequest{Method: c.method, URL: c.url}, c.body)
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil || a.body != c.want || a.source != SourceRecording {
				t.Errorf("got %q, %v; want %q", a.body, err, c.want)
			}
		})
	}
}

func TestReplayMissing(t *testing.T) {
	t.Parallel()
	_, err := get(t, replaying(t, `{"exchanges":[]}`), "https://a.test/x?q=1&token=abc")
	wantCode(t, err, abi.CodeInvalid, "no recording answers GET https://a.test/x?q=1&token=REDACTED",
		"docs/recordings.md")
}

func TestReplayInOrder(t *testing.T) {
	t.Parallel()
	b := replaying(t, `{"exchanges":[
		{"request":{"method":"GET","url":"https://a.test/job"},"response":{"status":200,"body":"waiting"}},
		{"request":{"method":"GET","url":"https://a.test/job"},"response":{"status":200,"body":"done"}}]}`)
	for range 2 { // each call sees the same
		call := newCall(t)
		if call.Replayed {
			t.Error("replayed before the first request")
		}
		for _, want := range []string{"waiting", "done", "done"} {
			resp, err := b.Do(t.Context(), call, &abi.HTTPRequest{URL: "https://a.test/job"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var body bytes.Buffer
			if _, err := body.ReadFrom(resp.Body); err != nil || body.String() != want {
				t.Errorf("got %q, %v; want %q", &body, err, want)
			}
		}
		if !call.Replayed {
			t.Error("the call does not know that it was replayed")
		}
	}
}

// What is recorded replays, and holds none of the secrets.
func TestRecord(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "sid=hush")
		w.Header().Set("X-Auth-Token", "hush")
		w.Header().Set("Cache-Control", "max-age=60")
		switch r.URL.Path {
		case "/moved":
			w.Header().Set("Location", "/data?api_key=hush#hush")
			w.WriteHeader(302)
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0})
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token": "hush", "nextPageToken": "p2", "items": [{"key": "K-1", "password": "hush", "n": 12345678901234567890}]}`)
		}
	})
	rec := &Recordings{Note: "a test"}
	b := newBroker(t, &Options{Record: func(x Exchange) { rec.Exchanges = append(rec.Exchanges, x) }},
		everything(s.URL))
	requests := []struct {
		head *abi.HTTPRequest
		body string
	}{
		{&abi.HTTPRequest{URL: s.URL + "/moved", Headers: map[string][]string{"Authorization": {"Bearer hush"},
			"Cookie": {"hush"}, "X-Key": {"hush"}}}, ""},
		{&abi.HTTPRequest{URL: s.URL + "/data?q=1&Access-Token=hush&key=hush&pageToken=p1"}, ""},
		{&abi.HTTPRequest{URL: s.URL + "/binary"}, ""},
		{&abi.HTTPRequest{URL: s.URL + "/binary"}, ""},
		{&abi.HTTPRequest{Method: "POST", URL: s.URL + "/token",
			Headers: map[string][]string{"Content-Type": {"application/x-www-form-urlencoded"}}},
			"grant_type=x&client_secret=hush&code=hush"},
		{&abi.HTTPRequest{Method: "POST", URL: s.URL + "/login",
			Headers: map[string][]string{"Content-Type": {"application/json"}}},
			`{"user":"u","password":"hush"}`},
	}
	var bodies []string
	for _, r := range requests {
		a, err := do(t, b, r.head, r.body)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, a.body)
	}
	if len(rec.Exchanges) != 7 {
		t.Errorf("%d exchanges, want 7: redirects count, the cache is off", len(rec.Exchanges))
	}
	encoded, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(encoded, []byte("hush")) {
		t.Errorf("a secret was recorded: %s", encoded)
	}
	for _, want := range []string{"pageToken=p1", "nextPageToken", "K-1", "12345678901234567890", "grant_type=x"} {
		if !bytes.Contains(encoded, []byte(want)) {
			t.Errorf("%s is missing: %s", want, encoded)
		}
	}
	if !strings.Contains(bodies[0], "hush") {
		t.Errorf("the guest's own answer was changed: %s", bodies[0])
	}

	s.Close()
	replay := newBroker(t, &Options{Replay: parse(t, string(encoded))}, everything(s.URL))
	for i, r := range requests {
		a, err := do(t, replay, r.head, r.body)
		if err != nil {
			t.Errorf("replay %s: %v", r.head.URL, err)
		}
		if want := strings.ReplaceAll(bodies[i], "hush", redacted); len(a.body) == 0 || i == 2 && a.body != want {
			t.Errorf("replay %s: got %q, want %q", r.head.URL, a.body, want)
		}
	}
}

func TestRecordedFailures(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "too long") })
	b := newBroker(t, &Options{Limits: Limits{ResponseBody: 3},
		Record: func(Exchange) { t.Error("a failure was recorded") }}, everything(s.URL))
	_, err := get(t, b, s.URL)
	wantCode(t, err, abi.CodeLimit)
}
