package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/host/secret"
)

// pair returns a chain of two models of one provider, each with its own fake server.
func pair(t *testing.T, provider string, first, second []script.Step) (w *world, other side) {
	t.Helper()
	w = newWorld(t, provider, first...)
	other = providers[provider](&script.Script{Steps: second})
	a, b := spec(t, provider), spec(t, provider)
	a.Retries, b.Retries, b.Name = -1, -1, "second"
	a.BaseURL = "https://first.example/v1"
	if provider == Anthropic {
		a.BaseURL = "https://first.example/"
	}
	w.chain = w.newChain(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Host == "first.example" {
			w.ServeHTTP(rw, r)
			return
		}
		other.ServeHTTP(rw, r)
	}), a, b)
	return w, other
}

func TestFailover(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind string
		next bool
	}{
		{"rate_limit", true}, {"overloaded", true}, {"server", true}, {"key", true}, {"credit", true}, {"model", true},
		{"context", false}, {"invalid", false},
	} {
		eachProvider(t, func(t *testing.T, provider string) {
			w, _ := pair(t, provider, []script.Step{{Fail: &script.Failure{Kind: test.kind}}},
				[]script.Step{{Say: "second"}})
			request, next := asks("hello"), []string(nil)
			request.Retrying = func(r Retry) { next = append(next, r.Model) }
			response, _, err := w.complete(request)
			if test.next != slices.Equal(next, []string{"second"}) {
				t.Errorf("%s: retries with %q", test.kind, next)
			}
			if test.next != (err == nil) || test.next && (response.Name != "second" || response.Text != "second") {
				t.Errorf("%s: %+v %v", test.kind, response, err)
			}
			if warned := strings.Contains(w.log.String(), "failing over to the next model"); warned != test.next {
				t.Errorf("%s: log %s", test.kind, w.log.String())
			}
		})
	}
}

// TestCooldown checks that requests after a failure try the other model first.
func TestCooldown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := pair(t, Anthropic,
			[]script.Step{{Fail: &script.Failure{Kind: "overloaded", RetryAfter: "60"}, Times: 1},
				{Say: "first"}}, []script.Step{{Say: "second"}})
		asked := func() string {
			response, _ := w.must(asks("hello"))
			return response.Text
		}
		got := []string{asked(), asked()}
		time.Sleep(61 * time.Second)
		if got = append(got, asked()); !slices.Equal(got, []string{"second", "second", "first"}) {
			t.Errorf("answered by %v", got)
		}
	})
}

func TestNoFailoverOnceShown(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w, other := pair(t, provider, []script.Step{{When: regexp.MustCompile("warm"), Say: "x"},
			{Say: "a long answer that breaks off", Cut: true}}, nil)
		w.must(asks("warm up"))
		if _, deltas, err := w.complete(asks("hello")); !errors.Is(err, Unavailable) || len(deltas) == 0 {
			t.Errorf("%v %v", err, deltas)
		}
		if n := len(other.requests.All()); n != 0 {
			t.Errorf("the second model got %d requests", n)
		}
	})
}

func TestFirst(t *testing.T) {
	t.Parallel()
	w, _ := pair(t, OpenAICompatible, []script.Step{{Say: "first"}}, []script.Step{{Say: "second"}})
	if got := w.chain.Models(); !slices.Equal(got, []string{"first", "second"}) || w.chain.Name() != "first" {
		t.Errorf("models %v", got)
	}
	chain, err := w.chain.First("second")
	if err != nil || !slices.Equal(chain.Models(), []string{"second", "first"}) {
		t.Fatalf("%v %v", chain, err)
	}
	if response, err := chain.Complete(t.Context(), asks("hello"), nil); err != nil || response.Text != "second" {
		t.Errorf("%+v %v", response, err)
	}
	if _, err := w.chain.First("third"); err == nil || !strings.Contains(err.Error(), "first, second") {
		t.Errorf("%v", err)
	}
}

// TestKeyReplaced checks that a replaced key is read again.
func TestKeyReplaced(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider, script.Step{Say: "ok"})
		s := spec(t, provider)
		path := s.Key.File
		s.Key = secret.Source{Command: []string{"cat", path}}
		if err := os.WriteFile(path, []byte("an old key"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.chain = w.newChain(w.Handler, s)
		if _, _, err := w.complete(asks("hello")); !errors.Is(err, Auth) {
			t.Errorf("with the old key: %v", err)
		}
		if err := os.WriteFile(path, []byte(testKey), 0o600); err != nil {
			t.Fatal(err)
		}
		w.must(asks("hello"))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		w.chain = w.newChain(w.Handler, s)
		if _, _, err := w.complete(asks("hello")); !errors.Is(err, Auth) || strings.Contains(err.Error(), path) {
			t.Errorf("without a key: %v", err)
		}
	})
}

// TestKeyReplacedMeanwhile checks that a key replaced while the old one is being refused is used at once.
func TestKeyReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider, script.Step{Say: "ok"})
		s := spec(t, provider)
		path := s.Key.File
		if err := os.WriteFile(path, []byte("an old key"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.chain = w.newChain(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if err := os.WriteFile(path, []byte(testKey), 0o600); err != nil {
				t.Error(err)
			}
			w.Handler.ServeHTTP(out, r)
		}), s)
		w.must(asks("hello"))
	})
}

// TestRejectedTemperature checks that a parameter is omitted after the provider rejected it.
func TestRejectedTemperature(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider)
		r := asks("hello")
		warm := 0.5
		r.Temperature = &warm
		w.must(r)
		w.must(r)
		all := w.requests.All()
		last := string(all[len(all)-1].Body)
		if sent := strings.Contains(last, `"temperature":0.5`); sent != (provider == OpenAICompatible) {
			t.Errorf("%s", last)
		}
		if provider == OpenAI && len(all) != 3 {
			t.Errorf("%d requests: what the model does not take is not remembered", len(all))
		}
	})
}

func TestCaching(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Anthropic, script.Step{Say: "ok"})
	r := asks(strings.Repeat("a long text ", 100), weatherTool)
	r.Cache = true
	first, _ := w.must(r)
	r.Messages = append(r.Messages, first.Message(), Message{Role: RoleUser, Text: "and now?"})
	second, _ := w.must(r)
	if first.Usage.CacheWrite == 0 || first.Usage.CacheRead != 0 || second.Usage.CacheRead < first.Usage.CacheWrite {
		t.Errorf("%+v, then %+v", first.Usage, second.Usage)
	}
	if body := string(w.requests.All()[1].Body); strings.Count(body, "cache_control") != 3 {
		t.Errorf("%s", body)
	}
	if response, _ := newWorld(t, OpenAI).must(asks(strings.Repeat("long ", 100))); response.Usage.CacheRead == 0 {
		t.Errorf("%+v", response.Usage)
	}
}

// TestRefusedTool checks that a refused tool is omitted, and the other tools are still offered.
func TestRefusedTool(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider)
		refuses := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			request := new(strings.Builder)
			body, err := r.GetBody()
			if err != nil {
				t.Error(err)
			}
			if _, err := fmt.Fprint(request, readAll(t, body)); err != nil {
				t.Error(err)
			}
			if at := strings.Index(request.String(), "get_odd"); at >= 0 {
				i := strings.Count(request.String()[:at], "get_weather")
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(400)
				_, _ = fmt.Fprintf(rw,
					`{"type":"error","error":{"type":"invalid_request_error","message":"tools.%d.custom.input_schema: no","param":"tools[%d].function.parameters"}}`, i, i)
				return
			}
			w.ServeHTTP(rw, r)
		})
		w.chain = w.newChain(refuses, spec(t, provider))
		odd := Tool{Name: "get_odd", Schema: weatherTool.Schema}
		w.must(asks("hello", weatherTool, odd))
		sent := len(w.requests.All())
		w.must(asks("hello", odd, weatherTool))
		if n := strings.Count(w.log.String(), "tool=get_odd"); n != 1 {
			t.Errorf("warned %d times: %s", n, w.log.String())
		}
		if len(w.requests.All()) != sent+1 {
			t.Error("the refused tool was sent again")
		}
	})
}

func TestManyTools(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider)
		var tools []Tool
		for i := range 140 {
			tools = append(tools, Tool{Name: fmt.Sprintf("tool_%03d", i), Description: strings.Repeat("長い説明。", 300)})
		}
		w.chain.models[0].spec.ContextWindow = 1 << 20
		r := asks("hello", tools...)
		sent := w.chain.models[0].tools.adaptAll(r.Tools).tools
		want := map[string]int{OpenAI: 128}[provider]
		if len(sent) != cmp.Or(want, 140) {
			t.Errorf("%d tools", len(sent))
		}
		if left := strings.Count(w.log.String(), "takes at most 128 tools"); left != 140-len(sent) {
			t.Errorf("warned of %d", left)
		}
	})
}

func TestSpecCheck(t *testing.T) {
	t.Parallel()
	valid := Spec{Provider: Anthropic, Model: "m", Key: secret.Source{Env: "KEY"}}
	for _, test := range []struct {
		name   string
		change func(*Spec)
		want   string // of the error; empty: none
	}{
		{"valid", func(*Spec) {}, ""},
		{"no provider", func(s *Spec) { s.Provider = "" }, "unknown provider"},
		{"no model", func(s *Spec) { s.Model = "" }, "model is missing"},
		{"no key", func(s *Spec) { s.Key = secret.Source{} }, "key needs one of"},
		{"two keys", func(s *Spec) { s.Key.File = "f" }, "key needs one of"},
		{"a local server without a key", func(s *Spec) {
			s.Provider, s.Key, s.BaseURL = OpenAICompatible, secret.Source{}, "http://ollama:11434/v1"
		}, ""},
		{"a local server without an address", func(s *Spec) { s.Provider = OpenAICompatible }, "baseUrl is missing"},
		{"a key in the clear", func(s *Spec) { s.BaseURL = "http://gateway.example/" }, "in the clear"},
		{"a key to this machine", func(s *Spec) { s.BaseURL = "http://127.0.0.1:8080/" }, ""},
		{"another scheme", func(s *Spec) { s.BaseURL = "ftp://x/" }, "not an http"},
		{"a port without a host", func(s *Spec) { s.BaseURL = "https://:443/v1" }, "not an http"},
		{"a password", func(s *Spec) { s.BaseURL = "https://u:p@x/" }, "has a user"},
		{"a query", func(s *Spec) { s.BaseURL = "https://x/?key=1" }, "has a user"},
		{"an empty query", func(s *Spec) { s.BaseURL = "https://x/v1?" }, "has a user"},
		{"an empty fragment", func(s *Spec) { s.BaseURL = "https://x/v1#" }, "has a user"},
		{"negative tokens", func(s *Spec) { s.MaxTokens = -1 }, "negative"},
		{"negative prices", func(s *Spec) { s.Prices.Output = -1 }, "negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := valid
			test.change(&s)
			err := s.Check()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if _, err := New(Options{Specs: []Spec{valid, valid}}); err == nil || !strings.Contains(err.Error(), "two models") {
		t.Errorf("two of one name: %v", err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("none is configured, and that is fine")
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	p := Prices{Input: 3, Output: 15, CacheRead: 0.25, CacheWrite: 4}
	if got := p.Cost(Usage{Input: 1_000_000, Output: 100_000, CacheRead: 2_000_000,
		CacheWrite: 500_000}); got != 3+1.5+0.5+2 {
		t.Errorf("cost %v", got)
	}
	if got := (Usage{1, 2, 3, 4}).Add(Usage{Input: 1}); got.Total() != 11 {
		t.Errorf("sum %+v", got)
	}
}

func TestRetryAfterMilliseconds(t *testing.T) {
	t.Parallel()
	for ms, want := range map[string]time.Duration{"1500": 1500 * time.Millisecond, "": 9 * time.Second,
		"-1": 9 * time.Second, "1e300": 9 * time.Second} {
		if got := retryAfter(http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {ms}}); got != want {
			t.Errorf("%q: %v, want %v", ms, got, want)
		}
	}
}

// TestConcurrent shares a chain between concurrent conversations.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		w := newWorld(t, provider,
			script.Step{When: regexp.MustCompile("call"),
				Call: []script.Call{{Tool: "get_weather", Arguments: `{"location":"x"}`}}})
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				text := fmt.Sprintf("%d %s", i, []string{"call", "say"}[i%2])
				response, err := w.chain.Complete(t.Context(),
					asks(text, weatherTool, Tool{Name: fmt.Sprintf("tool.%d", i)}), func(Delta) {})
				if err != nil || len(response.Calls) != 1-i%2 || i%2 == 1 && response.Text != text {
					t.Errorf("%+v %v", response, err)
				}
			})
		}
		all.Wait()
		if len(w.seen) != 30 {
			t.Errorf("%d completions", len(w.seen))
		}
	})
}

func BenchmarkComplete(b *testing.B) {
	for _, provider := range []string{Anthropic, OpenAI, OpenAICompatible} {
		b.Run(provider, func(b *testing.B) {
			answer := recordStream(b, provider, script.Step{Say: "ok"})
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write(answer)
			})
			s := Spec{Name: "m", Provider: provider, Model: "m", BaseURL: "https://model.example/v1"}.withDefaults()
			m := newModel(s, newVendor(&s, &http.Client{Transport: &transport{inMemory{handler}, s.Timeout}}),
				fuzzOptions())
			var tools []Tool
			for i := range 50 {
				tools = append(tools,
					Tool{Name: fmt.Sprintf("tool_%d", i), Description: "Does a thing.", Schema: weatherTool.Schema})
			}
			r := asks("hello", tools...)
			for b.Loop() {
				if _, _, err := m.complete(b.Context(), r, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
