package llm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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
			for _, quoted := range []string{testKey, "hello", "context length", "quota"} {
				if strings.Contains(err.Error()+w.log.String(), quoted) {
					t.Errorf("%v quotes the server", err)
				}
			}
		})
	}
}

// TestNonconformingCalls parses tool calls as some servers send them: all with the same index or the same ID, in one
// chunk, without IDs.
func TestNonconformingCalls(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string]string{
		"one number":                `[{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"location\":\"東京\"}"}},{"index":0,"id":"b","function":{"name":"get_weather","arguments":"{\"location\":\"大阪\"}"}}]`,
		"without IDs":               `[{"index":0,"function":{"name":"get_weather","arguments":"{\"location\":\"東京\"}"}},{"index":1,"function":{"name":"get_weather","arguments":"{\"location\":\"大阪\"}"}}]`,
		"without IDs and numbers":   `[{"function":{"name":"get_weather","arguments":"{\"location\":\"東京\"}"}},{"function":{"name":"get_weather","arguments":"{\"location\":\"大阪\"}"}}]`,
		"one ID and number":         `[{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"location\":\"東京\"}"}},{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"location\":\"大阪\"}"}}]`,
		"the ID after the name":     `[{"index":0,"function":{"name":"get_weather"}},{"index":0,"id":"a","function":{"arguments":"{\"location\":\"東京\"}"}},{"index":1,"id":"b","function":{"name":"get_weather","arguments":"{\"location\":\"大阪\"}"}}]`,
		"mixed parts of one number": `[{"index":0,"id":"a","function":{"name":"get_weather"}},{"index":0,"id":"b","function":{"name":"get_weather"}},{"index":0,"id":"a","function":{"arguments":"{\"location\":\"東京\"}"}},{"index":0,"id":"b","function":{"arguments":"{\"location\":\"大阪\"}"}}]`,
		"without types":             `[{"index":0,"id":"a","function":{"name":"get_weather","arguments":"{\"location\":\"東京\"}"}},{"index":1,"id":"b","function":{"name":"get_weather","arguments":"{\"location\":\"大阪\"}"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, OpenAICompatible)
			w.chain = w.newChain(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(rw,
					`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":`+calls+
						`},"finish_reason":"stop"}]}`+"\n\n")
			}), spec(t, OpenAICompatible))
			response, _ := w.must(asks("hello", weatherTool))
			if len(response.Calls) != 2 || response.Stop != StopTools || response.Calls[0].ID == response.Calls[1].ID ||
				response.Calls[1].ID == "" || string(response.Calls[0].Arguments) != `{"location":"東京"}` ||
				string(response.Calls[1].Arguments) != `{"location":"大阪"}` || response.Model != "thinker" {
				t.Errorf("%+v", response)
			}
		})
	}
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
