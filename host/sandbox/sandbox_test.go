package sandbox_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// patience is the time limit in tests that are not about it: guests may run in the interpreter, under the race
// detector, on a busy machine.
const patience = 10 * time.Minute

func newPlugin(t *testing.T, options sandbox.Options, spec sandbox.Spec) *sandbox.Plugin {
	t.Helper()
	options.CacheDir = guesttest.CacheDir(t)
	engine, err := sandbox.New(&options)
	if err != nil {
		t.Fatal(err)
	}
	spec.Name = "probe"
	if spec.Wasm == nil {
		spec.Wasm = probe(t)
	}
	spec.Modules = append(spec.Modules, deniedHTTP)
	spec.Limits.Time = cmp.Or(spec.Limits.Time, patience)
	plugin := engine.Load(spec)
	t.Cleanup(func() {
		if err := errors.Join(plugin.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := plugin.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return plugin
}

func probe(t testing.TB) func() ([]byte, error) {
	wasm := guesttest.Build(t, "dev/kit/guesttest/guests/probe")
	return func() ([]byte, error) { return wasm, nil }
}

func call(t *testing.T, plugin *sandbox.Plugin, tool string, arguments any) (*abi.Response, error) {
	t.Helper()
	return limitedCall(t, plugin, tool, arguments, manifest.Limits{})
}

func limitedCall(t *testing.T, plugin *sandbox.Plugin, tool string, arguments any,
	limits manifest.Limits) (*abi.Response, error) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return plugin.Call(t.Context(), &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: tool,
		Arguments: raw}, Limits: limits})
}

func text(t *testing.T, plugin *sandbox.Plugin, tool string, arguments any) string {
	t.Helper()
	response, err := call(t, plugin, tool, arguments)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if len(response.Content) == 0 {
		return ""
	}
	return response.Content[0].Text
}

type object map[string]any

func TestCall(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	if got := text(t, plugin, "echo", object{"text": "日本語 <&>"}); got != "日本語 <&>" {
		t.Errorf("echo = %q", got)
	}
	if response, err := call(t, plugin, "fail", object{"text": "why"}); err != nil || !response.IsError ||
		response.Content[0].Text != "no: why" {
		t.Errorf("fail = %+v, %v", response, err)
	}
	if response, err := call(t, plugin, "structured", object{"text": "x"}); err != nil ||
		string(response.StructuredContent) != `{"text":"x"}` {
		t.Errorf("structured = %+v, %v", response, err)
	}
	if response, err := call(t, plugin, "absent", object{}); err != nil || response.Error == nil ||
		response.Error.Code != abi.CodeNotFound {
		t.Errorf("absent = %+v, %v", response, err)
	}
	if response, err := call(t, plugin, "panic", object{}); err != nil || !response.IsError ||
		!strings.Contains(response.Content[0].Text, "on purpose") {
		t.Errorf("panic = %+v, %v", response, err)
	}
	response, err := call(t, plugin, "image", object{})
	if err != nil || len(response.Content) != 4 || string(response.Content[0].Data) != "\x89PNG\r\n\x1a\n" ||
		response.Content[1].Text != "caption" || string(response.Content[3].Resource.Data) != "\x00\x01" {
		t.Errorf("image = %+v, %v", response, err)
	}
}

// TestFailureBeforeTheEnd: a guest that reports a failure and then breaks off has answered. Any other response before a
// break is not used.
func TestFailureBeforeTheEnd(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	response, err := call(t, plugin, "garbage",
		object{"text": `{"isError":true,"content":[{"type":"text","text":"index out of bounds"}]}`})
	if err != nil || !response.IsError || response.Content[0].Text != "index out of bounds" {
		t.Errorf("failure of a tool = %+v, %v", response, err)
	}
	response, err = call(t, plugin, "garbage", object{"text": `{"error":{"code":"internal","message":"out of memory"}}`})
	if err != nil || response.Error == nil || response.Error.Message != "out of memory" {
		t.Errorf("error = %+v, %v", response, err)
	}
	for _, other := range []string{`{"content":[]}`, `{"isError":true,"content":[{"type":"text","blob":7}]}`, "{", ""} {
		var guest *catalog.GuestError
		if response, err := call(t, plugin, "garbage", object{"text": other}); !errors.As(err, &guest) {
			t.Errorf("%s: %+v, %v, want that the guest exited", other, response, err)
		}
	}
	if got := text(t, plugin, "echo", object{"text": "still here"}); got != "still here" {
		t.Errorf("the next call gives %q", got)
	}
}

func TestCallsShareNothing(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	random := map[string]bool{}
	for range 20 {
		if got := text(t, plugin, "count", object{}); got != "1" {
			t.Errorf("count = %s: something of an earlier call is left", got)
		}
		random[text(t, plugin, "random", object{})] = true
		for _, number := range strings.Fields(text(t, plugin, "math_random", object{})) {
			random[number] = true
		}
	}
	if len(random) != 20*4 {
		t.Errorf("random numbers repeat: %v", random)
	}
	got := text(t, plugin, "environment", object{})
	if !regexp.MustCompile(`^\[GOMEMLIMIT=\d{8} GODEBUG=gcstoptheworld=1 GOGC=400\] \[probe\]$`).MatchString(got) {
		t.Errorf("environment = %s", got)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	pinned := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{Clock: func() time.Time { return pinned }})
	if got := text(t, plugin, "clock", object{}); got != pinned.Format(time.RFC3339) {
		t.Errorf("clock = %s", got)
	}
}

// anyLimit is for guests that may exceed any of several limits.
const anyLimit = "any"

// TestHostileGuests checks every limit with a guest that tries to exceed it.
func TestHostileGuests(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{
		Limits: manifest.Limits{Memory: 32 << 20, Output: 1 << 20, Input: 1 << 20},
	})
	for _, test := range []struct {
		name, tool string
		arguments  any
		limit      string // of a limit.Error
		reason     string // of a catalog.GuestError
	}{
		{"endless loop", "loop", object{}, limit.Time, ""},
		{"recursion without a loop", "recurse", object{"n": 60}, limit.Time, ""},
		{"endless recursion", "recurse_forever", object{}, anyLimit, ""},
		{"long sleep", "sleep", object{"n": 60_000}, limit.Time, ""},
		{"host call flood", "host_flood", object{}, limit.Time, ""},
		{"huge bulk operations", "clear_flood", object{}, limit.Time, ""},
		{"huge random numbers", "random_flood", object{}, limit.Time, ""},
		{"clock flood", "clock_flood", object{}, limit.Time, ""},
		{"computing too much", "recurse", object{"n": 60}, limit.CPU, ""},
		{"computing too much in a loop", "loop", object{}, limit.CPU, ""},
		{"computing too much in bulk", "clear_flood", object{}, limit.CPU, ""},
		{"blob flood", "blob_flood", object{}, "", "attached more than 256 blobs"},
		{"memory flood", "eat_memory", object{"n": 4096}, limit.Memory, ""},
		{"output too large", "big", object{"n": 2 << 20}, limit.Output, ""},
		{"input too large", "echo", object{"text": strings.Repeat("x", 1<<20)}, limit.Input, ""},
		{"exit", "exit", object{"n": 7}, "", "exited with code 7"},
		{"exit with success", "exit", object{"n": 0}, "", "exited with code 0"},
		{"pointer outside memory", "trap", object{}, "", "outside the guest's memory"},
		{"length of 1 GiB", "lie", object{"n": 1 << 30}, limit.Output, ""},
		{"length outside memory", "lie", object{"n": 1<<32 - 1}, limit.Output, ""},
		{"answered twice", "lie", object{"n": 2}, "", "responded twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var limits manifest.Limits
			if test.limit == limit.Time {
				limits.Time = 300 * time.Millisecond
			}
			if test.limit == limit.CPU {
				limits.CPU = 50
			}
			_, err := limitedCall(t, plugin, test.tool, test.arguments, limits)
			var exceeded *limit.Error
			var guest *catalog.GuestError
			switch {
			case test.limit == anyLimit:
				if err == nil {
					t.Error("it ended well")
				}
				return
			case test.limit != "" && (!errors.As(err, &exceeded) || exceeded.Limit != test.limit):
				t.Errorf("error = %v, want the %s limit", err, test.limit)
			case test.limit == "" && (!errors.As(err, &guest) || !strings.Contains(guest.Error(), test.reason)):
				t.Errorf("error = %v, want a guest that %s", err, test.reason)
			}
			if errors.Is(err, context.DeadlineExceeded) != (test.limit == limit.Time) {
				t.Errorf("%v: is it a deadline?", err)
			}
			if got := text(t, plugin, "echo", object{"text": "still here"}); got != "still here" {
				t.Errorf("the next call gives %q", got)
			}
		})
	}
}

func TestCancelStopsTheGuest(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	for _, tool := range []string{"loop", "sleep", "poll", "recurse"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: tool,
				Arguments: json.RawMessage(`{"n":60000}`)}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want context.Canceled", err)
			}
		})
	}
}

// TestInvalidResponses decodes responses that break ABI 1.
func TestInvalidResponses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, data, want string }{
		{"nothing", "", "did not call respond"},
		{"not JSON", "hello", "not the expected JSON"},
		{"not UTF-8", "\"\xff\"", "not UTF-8"},
		{"wrong type", `{"content":"x"}`, "not the expected JSON"},
		{"unknown block", `{"content":[{"type":"video"}]}`, `type "video" is not one of`},
		{"image without data", `{"content":[{"type":"image","mimeType":"image/png"}]}`, "needs a blob"},
		{"blob not attached", `{"content":[{"type":"image","mimeType":"image/png","blob":3}]}`,
			"blob 3 was not attached"},
		{"negative blob", `{"content":[{"type":"text","blob":-1}]}`, "blob -1 was not attached"},
		{"link without name", `{"content":[{"type":"resource_link","uri":"x:"}]}`, "needs a uri and a name"},
		{"empty resource", `{"content":[{"type":"resource"}]}`, "needs a resource"},
		{"role", `{"messages":[{"role":"system","content":{"type":"text","text":"x"}}]}`, `role "system"`},
		{"priority", `{"content":[{"type":"text","text":"x","annotations":{"priority":2}}]}`, "priority 2"},
		{"resource without uri", `{"contents":[{"text":"x"}]}`, "needs a uri"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var data []byte
			if test.data != "" {
				data = []byte(test.data)
			}
			_, err := sandbox.Decode("p", data, nil)
			var guest *catalog.GuestError
			if !errors.As(err, &guest) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}

// TestHostileReferences refers to one blob many times, in each place of a response that can have one.
func TestHostileReferences(t *testing.T) {
	t.Parallel()
	const resource = `{"type":"resource","resource":{"uri":"a:b","blob":0}}`
	for name, test := range map[string]struct{ list, item string }{
		"text":                   {"content", `{"type":"text","blob":0}`},
		"embedded resource":      {"content", resource},
		"contents of a resource": {"contents", `{"uri":"a:b","blob":0}`},
		"message":                {"messages", `{"role":"user","content":{"type":"text","blob":0}}`},
		"resource in a message":  {"messages", `{"role":"user","content":` + resource + `}`},
		"structured text":        {"structuredText", `{"name":"n","blob":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := strings.Repeat(test.item+",", 1000)
			response := `{"` + test.list + `":[` + strings.TrimSuffix(items, ",") + `]}`
			_, err := sandbox.Decode("p", []byte(response), [][]byte{[]byte("text")})
			if err == nil || !strings.Contains(err.Error(), "it refers to 4000 bytes of blobs and has attached 4") {
				t.Errorf("error = %v", err)
			}
		})
	}
}

// TestHostileResponsesAtOnce: a call whose response is refused does not look at the instance, which another call has.
func TestHostileResponsesAtOnce(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{Wasm: smallGuest, // which does not respond
		Limits: manifest.Limits{Concurrency: 2, Queue: 64, QueueWait: patience, Rate: 100_000},
	})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				var guest *catalog.GuestError
				if _, err := call(t, plugin, "any", object{}); !errors.As(err, &guest) {
					t.Errorf("error = %v, want that of a guest without a response", err)
				}
			}
		})
	}
	group.Wait()
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","blob":0},{"type":"resource","resource":{"uri":"a:b","blob":1}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		response, err := sandbox.Decode("p", data, [][]byte{[]byte("text"), {0xff}})
		if (response == nil) == (err == nil) {
			t.Errorf("response %v, error %v", response, err)
		}
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{
		Limits: manifest.Limits{Concurrency: 2, Queue: 3, QueueWait: patience, Rate: 100_000},
	})
	const callers = 200
	var busy, done int
	var mu sync.Mutex
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			_, err := call(t, plugin, "sleep", object{"n": 20})
			mu.Lock()
			defer mu.Unlock()
			var exceeded *limit.Error
			switch {
			case err == nil:
				done++
			case errors.As(err, &exceeded) && exceeded.Limit == limit.Queue:
				busy++
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if done+busy != callers || done < 5 || busy == 0 {
		t.Errorf("%d done, %d busy of %d", done, busy, callers)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{Limits: manifest.Limits{Rate: 2}})
	var exceeded *limit.Error
	for i := range 3 {
		_, err := call(t, plugin, "echo", object{"text": "x"})
		if limited := errors.As(err, &exceeded); limited != (i == 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var buffer syncBuffer
	logger := slog.New(slog.NewTextHandler(&buffer, nil))
	plugin := newPlugin(t, sandbox.Options{Logger: logger}, sandbox.Spec{Limits: manifest.Limits{Log: 10_000}})
	text(t, plugin, "log", object{"text": "hello\nworld"})
	for _, want := range []string{`msg="hello\nworld key=value" plugin=probe tool=log`, `msg="to stdout"`} {
		if !strings.Contains(buffer.String(), want) {
			t.Errorf("no %s in\n%s", want, buffer.String())
		}
	}
	before := len(buffer.String())
	text(t, plugin, "log_flood", object{"n": 1000})
	if n := len(buffer.String()) - before; n > 20_000 {
		t.Errorf("a flood of 2 MB left %d bytes in the log", n)
	}
	if n := strings.Count(buffer.String(), "passed its log limit"); n != 1 {
		t.Errorf("the limit is mentioned %d times", n)
	}
}

// TestRedact checks that redacted records, and records that become empty, are not logged.
func TestRedact(t *testing.T) {
	t.Parallel()
	var buffer syncBuffer
	logger := slog.New(slog.NewTextHandler(&buffer, nil))
	plugin := newPlugin(t, sandbox.Options{Logger: logger, Redact: func(text string) string {
		if strings.Contains(text, "stdout") {
			return ""
		}
		return strings.ReplaceAll(text, "hello", "***")
	}}, sandbox.Spec{})
	text(t, plugin, "log", object{"text": "hello"})
	if got := buffer.String(); !strings.Contains(got, `msg="*** key=value"`) || strings.Contains(got, "hello") ||
		strings.Contains(got, "stdout") {
		t.Errorf("logged\n%s", got)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	var reports []abi.Progress
	_, err := plugin.Call(t.Context(), &catalog.Invocation{
		Request:  &abi.Request{Method: abi.CallTool, Name: "progress", Arguments: json.RawMessage(`{"n":1000}`)},
		Progress: func(p abi.Progress) { reports = append(reports, p) },
	})
	if err != nil || len(reports) < 2 || len(reports) > 500 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	if last := reports[len(reports)-1]; last != (abi.Progress{Progress: 1000, Total: 1000, Message: "step 1000"}) {
		t.Errorf("last = %+v", last)
	}
}

func TestCloseWaitsForCalls(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	plugin := engine.Load(sandbox.Spec{Name: "probe", Wasm: probe(t), Modules: []brokerModule{deniedHTTP},
		Limits: manifest.Limits{Time: patience}})
	started := make(chan struct{})
	result := make(chan error)
	go func() {
		once := sync.OnceFunc(func() { close(started) })
		_, err := plugin.Call(t.Context(), &catalog.Invocation{
			Request:  &abi.Request{Method: abi.CallTool, Name: "progress", Arguments: json.RawMessage(`{"n":100000}`)},
			Progress: func(abi.Progress) { once() },
		})
		result <- err
	}()
	<-started
	closed := make(chan error)
	go func() { closed <- plugin.Close() }()
	if err := <-result; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := call(t, plugin, "echo", object{"text": "x"}); !errors.Is(err, catalog.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestSpinningGuestDoesNotStopTheProcess runs the garbage collector while guests spin. Without metering it would wait
// for them.
func TestSpinningGuestDoesNotStopTheProcess(t *testing.T) {
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: abi.CallTool, Name: "loop"}})
		})
	}
	for range 10 {
		runtime.GC()
	}
	cancel()
	group.Wait()
}

type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func TestOtherMethods(t *testing.T) {
	t.Parallel()
	plugin := newPlugin(t, sandbox.Options{}, sandbox.Spec{})
	for _, test := range []struct {
		request abi.Request
		want    string
	}{
		{abi.Request{Method: abi.ReadResource, URI: "probe://fixed"}, "fixed"},
		{abi.Request{Method: abi.ReadResource, URI: "probe://item/7", Template: "probe://item/{id}",
			Variables: map[string]string{"id": "7"}}, "7"},
		{abi.Request{Method: abi.GetPrompt, Name: "ask", Arguments: json.RawMessage(`{"topic":"rain"}`)}, "about rain"},
		{abi.Request{Method: abi.Complete, Ref: &abi.Ref{Type: "ref/prompt", Name: "ask"},
			Argument: &abi.Argument{Name: "topic", Value: "w"}}, "[weather wind work]"},
		{abi.Request{Method: abi.ListHandlers}, "ask"},
	} {
		r, err := plugin.Call(t.Context(), &catalog.Invocation{Request: &test.request})
		if err != nil {
			t.Errorf("%+v: %v", test.request, err)
			continue
		}
		var got string
		switch {
		case r.Contents != nil:
			got = r.Contents[0].Text + string(r.Contents[0].Data)
		case r.Messages != nil:
			got = r.Messages[0].Content.Text
		case r.Completion != nil:
			got = fmt.Sprint(r.Completion.Values)
		case r.Handlers != nil:
			got = strings.Join(r.Handlers.Prompts, ",")
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.request.Method, got, test.want)
		}
	}
}
