package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host/secret"
)

// TestErrorForms parses the errors of OpenAI-compatible servers.
func TestErrorForms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, body string
		status     int
		want       Kind
	}{
		{"llama.cpp", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}`, 400, ContextWindow},
		{"vLLM", `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9000","type":"BadRequestError","param":null,"code":400}`, 400, ContextWindow},
		{"LM Studio", `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}`, 400, ContextWindow},
		{"Ollama", `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, 404, Invalid},
		{"a gateway", `{"error":{"message":"slow down","type":"rate_limit_error"}}`, 400, RateLimited},
		{"no more credit", `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`, 429, Auth},
		{"nothing", ``, 422, Invalid},
		{"a number", `{"error":7}`, 500, Unavailable},
		{"a quotation", `{"error":{"message":"hello: ` + testKey + `","param":"hello ` + testKey + `"}}`, 400, Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, OpenAICompatible)
			s := spec(t, OpenAICompatible)
			s.Retries = -1
			w.chain = w.newChain(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(test.status)
				_, _ = io.WriteString(rw, test.body)
			}), s)
			_, _, err := w.complete(asks("hello"))
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %s", err, test.want)
			}
			shown := err.Error()
			for line := range strings.Lines(w.log.String()) {
				if !strings.Contains(line, "level=DEBUG") {
					shown += line
				}
			}
			for _, quoted := range []string{"hello", "context length", "quota"} {
				if strings.Contains(shown, quoted) {
					t.Errorf("%v quotes the server", err)
				}
			}
			if said := parseAPIError([]byte(test.body)).Message; said != "" {
				said, _, _ := strings.Cut(string(said), " ")
				if !strings.Contains(w.log.String(), said) || strings.Contains(w.log.String(), testKey) {
					t.Errorf("the log at level debug lacks the server's words, or has the key: %s", w.log.String())
				}
			}
		})
	}
}

// TestNonconformingCalls parses tool calls as some servers send them: all with the same index or the same ID, in one
// chunk, without IDs, with the name in every part.
func TestNonconformingCalls(t *testing.T) {
	t.Parallel()
	tools := []Tool{weatherTool, {Name: "get"}, {Name: "now"}}
	// A part is written as index, ID, name and arguments, with a space between two. "-" leaves one out.
	const tokyo, osaka = `{"location":"東京"}`, `{"location":"大阪"}`
	both := []string{"get_weather " + tokyo, "get_weather " + osaka}
	for name, test := range map[string]struct {
		chunks [][]string
		want   []string
	}{
		"one number":              {[][]string{{"0 a get_weather " + tokyo, "0 b get_weather " + osaka}}, both},
		"without IDs":             {[][]string{{"0 - get_weather " + tokyo, "1 - get_weather " + osaka}}, both},
		"without IDs and numbers": {[][]string{{"- - get_weather " + tokyo, "- - get_weather " + osaka}}, both},
		"without them, apart":     {[][]string{{"- - get_weather " + tokyo}, {"- - get_weather " + osaka}}, both},
		"one ID and number":       {[][]string{{"0 a get_weather " + tokyo, "0 a get_weather " + osaka}}, both},
		"the ID after the name": {[][]string{{"0 - get_weather -"}, {"0 a - " + tokyo}, {"1 b get_weather " + osaka}},
			both},
		"mixed parts of one number": {[][]string{{"0 a get_weather -"}, {"0 b get_weather -"}, {"0 a - " + tokyo},
			{"0 b - " + osaka}}, both},
		"mixed parts":            {[][]string{{"0 a get_weather -", "1 b get_weather -"}, {"0 - - " + tokyo}, {"1 - - " + osaka}}, both},
		"the number as text":     {[][]string{{`"0" a get_weather ` + tokyo}, {`"1" b get_weather ` + osaka}}, both},
		"an object as arguments": {[][]string{{"0 a get_weather =" + tokyo}, {"0 b get_weather =" + osaka}}, both},
		"arguments encoded twice": {[][]string{{`0 a get_weather "{\"location\":\"東京\"}"`},
			{`1 b get_weather "{\"location\":\"大阪\"}"`}}, both},
		"a name in every part": {[][]string{{"0 a get_weather -"}, {`0 a get_weather {"location":`},
			{`0 a get_weather "東京"}`}}, both[:1]},
		"a name in every part, first without arguments": {[][]string{{"0 a get_weather -"}, {"0 a get_weather -"},
			{`0 a get_weather {"location":`}, {`0 a get_weather "東京"}`}, {"0 a get_weather -"}}, both[:1]},
		"a name in parts": {[][]string{{"0 a get -"}, {"0 - _weat -"}, {"0 - her -"}, {"0 - - " + tokyo}}, both[:1]},
		"another ID in every part": {[][]string{{`0 a get_weather {"location":`}, {`0 b - "東京"}`}},
			both[:1]},
		"no arguments, in one chunk":     {[][]string{{"0 a now -", "0 a now -"}}, []string{"now {}", "now {}"}},
		"no arguments, apart":            {[][]string{{"0 a now -"}, {"0 a now -"}}, []string{"now {}", "now {}"}},
		"no arguments, two tools":        {[][]string{{"0 a now -"}, {"0 a get -"}}, []string{"now {}", "get {}"}},
		"no arguments, a prefix":         {[][]string{{"0 a now -"}, {"0 a get_weather -"}}, []string{"now {}", "get_weather {}"}},
		"no arguments, then some":        {[][]string{{"0 a now -"}, {"0 a get_weather " + tokyo}}, []string{"now {}", both[0]}},
		"one after another, one ID":      {[][]string{{"0 a get_weather -"}, {"0 - - " + tokyo}, {"0 a get_weather -"}, {"0 - - " + osaka}}, both},
		"white space around a name":      {[][]string{{`0 a get_weather\n ` + tokyo}}, both[:1]},
		"a call of nothing after a call": {[][]string{{"0 a get_weather " + tokyo}, {"1 b - -"}}, both[:1]},
		"a call of nothing alone":        {[][]string{{"0 a - -"}}, []string{" {}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stream strings.Builder
			for _, chunk := range test.chunks {
				var parts []string
				for _, part := range chunk {
					parts = append(parts, callPart(part))
				}
				stream.WriteString(`data: {"choices":[{"delta":{"content":null,"tool_calls":[` + strings.Join(parts, ",") + "]}}]}\n\n")
			}
			stream.WriteString("data: " + `{"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n")
			w := newWorld(t, OpenAICompatible)
			w.chain = w.newChain(w.answering(stream.String()), spec(t, OpenAICompatible))
			response, _ := w.must(asks("hello", tools...))
			var got []string
			ids := map[string]bool{"": true}
			for _, call := range response.Calls {
				got = append(got, call.Name+" "+string(call.Arguments))
				if ids[call.ID] {
					t.Errorf("the ID %q is repeated", call.ID)
				}
				ids[call.ID] = true
			}
			if !slices.Equal(got, test.want) || response.Stop != StopTools {
				t.Errorf("%q, want %q: %+v", got, test.want, response)
			}
		})
	}
}

// callPart returns a part of a call as JSON: "index id name arguments". Arguments after "=" are not a string.
func callPart(text string) string {
	var members, function []string
	fields := strings.SplitN(text, " ", 4)
	if fields[0] != "-" {
		members = append(members, `"index":`+fields[0])
	}
	if fields[1] != "-" {
		members = append(members, `"id":"`+fields[1]+`"`)
	}
	if fields[2] != "-" {
		function = append(function, `"name":"`+fields[2]+`"`)
	}
	if object, ok := strings.CutPrefix(fields[3], "="); ok {
		function = append(function, `"arguments":`+object)
	} else if fields[3] != "-" {
		quoted, _ := json.Marshal(fields[3]) // a string always encodes
		function = append(function, `"arguments":`+string(quoted))
	}
	return "{" + strings.Join(append(members, `"function":{`+strings.Join(function, ",")+"}"), ",") + "}"
}

// TestEnvironmentIsIgnored sets the variables that the SDKs would read.
func TestEnvironmentIsIgnored(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "from the environment", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Odd: odd",
		"OPENAI_API_KEY":           "from the environment", "OPENAI_BASE_URL": "http://127.0.0.1:1",
		"OPENAI_CUSTOM_HEADERS": "X-Odd: odd", "OPENAI_ORG_ID": "odd",
		"HTTPS_PROXY": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	for _, provider := range []string{Anthropic, OpenAI, OpenAICompatible} {
		w := newWorld(t, provider)
		w.must(asks("hello"))
		header := w.requests.All()[0].Header
		if header.Get("X-Odd") != "" || header.Get("Openai-Organization") != "" ||
			header.Get("Authorization") != "Bearer "+testKey {
			t.Errorf("%s: %v", provider, header)
		}
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	through := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through <- r.URL.String()
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	defer server.Close()
	proxy, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := newHTTPClient(proxy, time.Minute)
	for address, want := range map[string]string{"http://model.example/v1": "http://model.example/v1",
		server.URL + "/direct": "/direct"} {
		response, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if got := <-through; got != want {
			t.Errorf("%s arrived as %s", address, got)
		}
	}
}

// TestCloseIdleConnections: a connection that no request uses is not kept for the next one.
func TestCloseIdleConnections(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	remotes := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		remotes[r.RemoteAddr] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	defer server.Close()
	one := spec(t, OpenAICompatible)
	one.BaseURL, one.Retries = server.URL, -1
	chain, err := New(Options{Specs: []Spec{one}})
	if err != nil {
		t.Fatal(err)
	}
	const requests = 5
	for range requests {
		_, _ = chain.Complete(t.Context(), asks("hello"), nil) // an empty stream is no answer
		chain.CloseIdleConnections()
	}
	mu.Lock()
	defer mu.Unlock()
	if len(remotes) < requests {
		t.Errorf("%d requests came over %d connections", requests, len(remotes))
	}
}

// TestLocalServerWithoutKey checks that no key is sent if none is configured.
func TestLocalServerWithoutKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, OpenAICompatible)
	s := spec(t, OpenAICompatible)
	s.Key = secret.Source{}
	sent := make(chan string, 1)
	w.chain = w.newChain(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		sent <- strings.Join(r.Header.Values("Authorization"), ",")
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, `data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}`+
			"\n\n")
	}), s)
	w.must(asks("hello"))
	if got := <-sent; got != "" {
		t.Errorf("sent %q", got)
	}
}

func TestManyCalls(t *testing.T) {
	t.Parallel()
	for _, n := range []int{maxCalls, maxCalls + 1} {
		stream := `data: {"choices":[{"finish_reason":"tool_calls","delta":{"tool_calls":[`
		for i := range n {
			stream += fmt.Sprintf(`{"index":%d,"function":{"name":"f"}},`, i)
		}
		stream = strings.TrimSuffix(stream, ",") + "]}}]}\n\n"
		response, _, err := completeStream(t, OpenAICompatible, []byte(stream), func(Delta) {})
		if n <= maxCalls && (err != nil || len(response.Calls) != n) ||
			n > maxCalls && (!errors.Is(err, Unavailable) || !strings.Contains(err.Error(), "more than 256 tool calls")) {
			t.Errorf("%d calls: %v", n, err)
		}
	}
}
