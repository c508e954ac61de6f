package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

// folders are the directories that the runs of a test share.
type folders struct{ dir, cache string }

func newFolders(t *testing.T) folders {
	return folders{t.TempDir(), filepath.Join(t.TempDir(), "upstreams")}
}

func (f folders) use(o *mcpclient.Options) { o.Dir, o.CacheDir = f.dir, f.cache }

// run makes a rig for one run, which ends with stop.
func (f folders) run(t *testing.T, specs ...mcpclient.Spec) (r *rig, stop func()) {
	t.Helper()
	r = newRigWith(t, f.use)
	if err := r.upstreams.Apply(specs); err != nil {
		t.Fatal(err)
	}
	return r, func() {
		t.Helper()
		if err := r.upstreams.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// fill makes the cache of a server.
func (f folders) fill(t *testing.T, specs ...mcpclient.Spec) {
	t.Helper()
	r, stop := f.run(t, specs...)
	r.ready()
	stop()
}

func lazily(s mcpclient.Spec) mcpclient.Spec {
	s.Start = mcpclient.Lazy
	return s
}

func init() {
	serverKinds["forty"] = func(context.Context) error {
		var tools []any
		for i := range fleetTools {
			tools = append(tools, toolNamed(fmt.Sprintf("t%d", i)))
		}
		return listing(tools...)
	}
}

const fleetSize, fleetTools = 50, 40

// fleet has servers over HTTP in this process.
type fleet struct {
	*httptest.Server
	requests atomic.Int64
	// trouble is true once the servers of that name hang, are down, or wait for open.
	trouble atomic.Bool
	open    chan struct{}
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{open: make(chan struct{})}
	ended := make(chan struct{})
	var mu sync.Mutex
	handlers := map[string]http.Handler{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.Add(1)
		name := strings.Trim(r.URL.Path, "/")
		if f.trouble.Load() {
			switch name {
			case "hangs":
				<-ended
			case "down":
				http.Error(w, "down", http.StatusServiceUnavailable)
				return
			case "slow":
				<-f.open
			}
		}
		mu.Lock()
		h := handlers[name]
		if h == nil {
			s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
			for i := range fleetTools {
				s.AddTool(&mcp.Tool{Name: fmt.Sprintf("t%d", i), Description: "one of many",
					InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)},
					func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
					})
			}
			h = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
			handlers[name] = h
		}
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	t.Cleanup(func() { close(ended) })
	return f
}

// specs are those of 50 servers: 45 over HTTP that are fine, two programs, and three that get into trouble.
func (f *fleet) specs(start mcpclient.Start) (specs []mcpclient.Spec) {
	names := []string{"hangs", "down", "slow"}
	for i := range fleetSize - 5 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	for _, name := range names {
		specs = append(specs, mcpclient.Spec{Name: name, URL: f.URL + "/" + name, Start: start})
	}
	for _, name := range []string{"p1", "p2"} {
		spec := child(name, "forty")
		spec.Start = start
		specs = append(specs, spec)
	}
	return specs
}

// TestFiftyUpstreams: 2,000 tools of 50 servers are on offer at once from the cache, while one server hangs, one is down
// and one is slow. The calls of the others work. Lazy servers are connected for their calls only.
func TestFiftyUpstreams(t *testing.T) {
	t.Parallel()
	f, dirs := newFleet(t), newFolders(t)
	dirs.fill(t, f.specs(mcpclient.Eager)...)
	f.trouble.Store(true)

	r, stop := dirs.run(t, f.specs(mcpclient.Eager)...)
	if n := len(r.tools()); n != fleetSize*fleetTools {
		t.Fatalf("%d tools from the cache", n)
	}
	for i := range fleetSize - 5 {
		if got, want := text(r.call(fmt.Sprintf("s%d_t7", i), "{}")), fmt.Sprintf("s%d", i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, name := range []string{"p1_t0", "p2_t39"} {
		if got := text(r.call(name, "{}")); got != "ok" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := r.call("down_t0", "{}"); !got.Response.IsError || !strings.Contains(text(got), "nothing was called") {
		t.Errorf("a server that is down: %+v", got.Response)
	}
	answer := make(chan string, 1)
	go func() { answer <- text(r.call("slow_t0", "{}")) }()
	close(f.open)
	if got := <-answer; got != "slow" {
		t.Errorf("a slow server: %q", got)
	}
	for name, want := range map[string]mcpclient.State{"s0": mcpclient.Up, "slow": mcpclient.Up,
		"down": mcpclient.Down, "hangs": mcpclient.Connecting} {
		if got := r.status(name); got.State != want || got.Tools != fleetTools && name != "down" {
			t.Errorf("%s is %+v", name, got)
		}
	}
	if s := r.status("hangs"); !s.Listed || !s.Cached {
		t.Errorf("a server that hangs: %+v", s)
	}
	stop()

	before, requests := runtime.NumGoroutine(), f.requests.Load()
	r, stop = dirs.run(t, f.specs(mcpclient.Lazy)...)
	r.ready()
	if n := len(r.tools()); n != fleetSize*fleetTools {
		t.Errorf("%d tools of lazy servers", n)
	}
	if n := f.requests.Load() - requests; n != 0 {
		t.Errorf("%d requests to servers that nobody uses", n)
	}
	if n := runtime.NumGoroutine() - before; n > 3*fleetSize { // the race detector and other tests have their own
		t.Errorf("%d goroutines for %d idle servers", n, fleetSize)
	}
	if got := text(r.call("s3_t1", "{}")); got != "s3" {
		t.Errorf("got %q", got)
	}
	up := 0
	for _, s := range r.upstreams.Status() {
		if s.State == mcpclient.Up {
			up++
		} else if s.State != mcpclient.Idle || s.Tools != fleetTools {
			t.Errorf("status is %+v", s)
		}
	}
	if up != 1 {
		t.Errorf("%d servers are connected after a call of one", up)
	}
	stop()
}

// TestSingleFlight: eight calls start an idle server once. When it dies, its call is an error, and the next call starts
// it again.
func TestSingleFlight(t *testing.T) {
	t.Parallel()
	dirs, spec := newFolders(t), lazily(child("plain", "plain"))
	dirs.fill(t, spec)
	r, _ := dirs.run(t, spec)
	r.ready()
	if s := r.status("plain"); s.State != mcpclient.Idle || !s.Cached || s.Tools == 0 {
		t.Fatalf("status is %+v", s)
	}
	pids := make([]string, 8)
	var group sync.WaitGroup
	for i := range pids {
		group.Go(func() { pids[i] = text(r.call("plain_pid", "{}")) })
	}
	group.Wait()
	if slices.Sort(pids); len(slices.Compact(pids)) != 1 {
		t.Errorf("the calls reached processes %v", pids)
	}
	if s := r.status("plain"); s.State != mcpclient.Up || s.Cached || s.Restarts != 0 {
		t.Errorf("status is %+v", s)
	}
	if got := r.call("plain_die", "{}"); !got.Response.IsError || !strings.Contains(text(got), "the connection broke") {
		t.Errorf("got %+v", got.Response)
	}
	r.eventually("the server to be idle", func() bool { return r.status("plain").State == mcpclient.Idle })
	if s := r.status("plain"); s.Error == "" || s.Tools == 0 {
		t.Errorf("status is %+v", s)
	}
	if got := text(r.call("plain_pid", "{}")); got == "" || got == pids[0] {
		t.Errorf("process %q after %q", got, pids[0])
	}
	if s := r.status("plain"); s.State != mcpclient.Up || s.Restarts != 1 || s.Error != "" {
		t.Errorf("status is %+v", s)
	}
}

// TestIdleTimeout: a lazy server is disconnected when no call has used it, and not while one runs.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	spec := lazily(child("plain", "plain"))
	spec.IdleTimeout = 20 * time.Millisecond
	r := newRig(t, spec) // without a cache the server is connected for its lists
	r.eventually("the server to be idle", func() bool { return r.status("plain").State == mcpclient.Idle })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps := 0
	_, err := r.pipeline.Call(ctx, &pipeline.Call{
		Request: abi.Request{Method: abi.CallTool, Name: "plain_progress", Arguments: json.RawMessage("{}")},
		Progress: func(abi.Progress) {
			if steps++; steps == 200 { // one takes at least a millisecond
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v after %d steps", err, steps)
	}
	r.eventually("the server to be idle again", func() bool { return r.status("plain").State == mcpclient.Idle })
	if s := r.status("plain"); s.Restarts != 0 || s.Error != "" || s.Tools == 0 {
		t.Errorf("status is %+v", s)
	}
	if _, ok := r.catalog.View().Tool("plain_echo"); !ok {
		t.Error("the tools of an idle server are gone")
	}
}

// TestLazyServerThatDies: a lazy server that ends soon after each start is started at growing intervals, however often
// it is called.
func TestLazyServerThatDies(t *testing.T) {
	t.Parallel()
	r := newRig(t, lazily(child("plain", "plain")))
	begin := time.Now()
	for range 4 {
		if got := r.call("plain_die", "{}"); !got.Response.IsError {
			t.Errorf("got %+v", got.Response)
		}
	}
	// At least half of 0.5, 1 and 2 seconds; an instance starts within a few hundredths of a second.
	if took := time.Since(begin); took < 1750*time.Millisecond {
		t.Errorf("three restarts within %v", took)
	}
	r.eventually("the status", func() bool { return r.status("plain").Restarts >= 3 })
}

// TestIdleButWatched: a server with a subscription is connected, and stays so.
func TestIdleButWatched(t *testing.T) {
	t.Parallel()
	dirs, spec := newFolders(t), lazily(child("plain", "plain"))
	dirs.fill(t, spec)
	r, _ := dirs.run(t, spec)
	r.ready()
	resource, ok := r.catalog.View().Resource("plain+memo://one")
	if !ok {
		t.Fatal("the resource is not in the cache")
	}
	changed := make(chan struct{}, 1)
	subscriber, ok := resource.Source.Backend.(interface {
		Subscribe(string, func()) func()
	})
	if !ok {
		t.Fatal("the server takes no subscriptions")
	}
	defer subscriber.Subscribe("plain+memo://one", func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	r.eventually("the server to be up", func() bool { return r.status("plain").State == mcpclient.Up })
	r.eventually("a notification", func() bool {
		r.call("plain_touch", `{"uri":"memo://one"}`)
		select {
		case <-changed:
			return true
		default:
			return false
		}
	})
}

// TestOldCache: lists that are older than a day are on offer, and the server is connected to refresh them.
func TestOldCache(t *testing.T) {
	t.Parallel()
	dirs, spec := newFolders(t), lazily(child("plain", "plain"))
	dirs.fill(t, spec)
	path, old := filepath.Join(dirs.cache, "plain.json"), time.Now().Add(-25*time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	r, _ := dirs.run(t, spec)
	if len(r.tools()) == 0 {
		t.Error("the old lists are not on offer")
	}
	r.ready()
	if s := r.status("plain"); s.State != mcpclient.Up || s.Cached {
		t.Errorf("status is %+v", s)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("the file is not marked as current: %v, %v", info, err)
	}
}

// TestChangedConfiguration: the lists of another configuration are not used, and what only selects and names tools
// applies to the cache at once.
func TestChangedConfiguration(t *testing.T) {
	t.Parallel()
	dirs, spec := newFolders(t), lazily(child("plain", "plain"))
	dirs.fill(t, spec)
	selected := spec
	selected.Prefix, selected.Tools = "p-", mcpclient.Filter{Allow: []string{"e*"}, Deny: []string{"env*"}}
	r, stop := dirs.run(t, selected)
	if got := r.tools(); !slices.Equal(got, []string{"p-echo", "p-everything"}) || r.status("plain").State == mcpclient.Up {
		t.Errorf("tools are %v, status is %+v", got, r.status("plain"))
	}
	stop()
	for name, change := range map[string]func(*mcpclient.Spec){
		"an argument": func(s *mcpclient.Spec) { s.Args = []string{"-other"} },
		"a variable":  func(s *mcpclient.Spec) { s.Env = merged(s.Env, map[string]mcpclient.Value{"X": {Text: "y"}}) },
		"a directory": func(s *mcpclient.Spec) { s.Dir = dirs.cache },
		"a server":    func(s *mcpclient.Spec) { *s = mcpclient.Spec{Name: "plain", URL: "http://127.0.0.1:1/"} },
	} {
		other := spec
		change(&other)
		r, stop := dirs.run(t, other)
		if s := r.status("plain"); s.Cached || s.State == mcpclient.Idle {
			t.Errorf("with the change of %s the old lists are on offer: %+v", name, s)
		}
		stop()
	}
	r, stop = dirs.run(t, spec)
	r.ready()
	if err := r.upstreams.Apply(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dirs.cache, "plain.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a removed server: %v", err)
	}
	stop()
}

// TestHostileCache: whatever is in a cache does no harm, and the server's own lists replace it.
func TestHostileCache(t *testing.T) {
	t.Parallel()
	dirs, spec := newFolders(t), child("claims", "claims")
	dirs.fill(t, spec)
	path := filepath.Join(dirs.cache, "claims.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	with := func(key string, value any) string {
		content := map[string]any{}
		if err := json.Unmarshal(good, &content); err != nil {
			t.Fatal(err)
		}
		content[key] = value
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	hidden := toolNamed("hidden")
	hidden["description"] = "see\u202ethis\U000e0041\x07 text"
	var crowd []any
	for i := range 10_000 {
		crowd = append(crowd, toolNamed(fmt.Sprintf("t%d", i)))
	}
	const unused = -1
	for name, test := range map[string]struct {
		content string
		offered int // of the cache, or unused
	}{
		"as it was":         {string(good), 1},
		"nothing":           {"", unused},
		"cut":               {string(good[:len(good)/2]), unused},
		"no JSON":           {"\x00\xff{", unused},
		"null":              {"null", unused},
		"a list":            {"[]", unused},
		"another version":   {with("format", 2), unused},
		"another server":    {with("configuration", strings.Repeat("0", 64)), unused},
		"a key twice":       {`{"tools":[],` + string(good[1:]), unused},
		"another type":      {with("tools", "x"), unused},
		"oversized":         {strings.Repeat(" ", 33<<20) + string(good), unused},
		"values":            {with("cut", make([]any, 400_000)), unused},
		"depth":             {`{"tools":[{"name":"x","inputSchema":` + strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000) + "}]}", unused},
		"nulls":             {with("tools", []any{nil, nil, toolNamed("x")}), 1},
		"no names":          {with("tools", []any{map[string]any{}, toolNamed("")}), 0},
		"bad schemas":       {with("tools", []any{map[string]any{"name": "x", "inputSchema": []any{1}}}), 0},
		"too many":          {with("tools", crowd), 256},
		"hidden characters": {with("tools", []any{hidden}), 1},
		"text as a list":    {with("cut", []string{"\x1b[31mtools"}), 1},
		"unknown protocol":  {with("protocol", "1999-01-01\x00"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := folders{dirs.dir, t.TempDir()}
			if err := os.WriteFile(filepath.Join(dirs.cache, "claims.json"), []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			r, stop := dirs.run(t, lazily(spec))
			defer stop()
			if s := r.status("claims"); s.Cached != (test.offered != unused) || s.Cached && s.Tools != test.offered ||
				slices.ContainsFunc(s.Omitted, func(o string) bool { return strings.Contains(o, "\x1b") }) {
				t.Errorf("status is %+v", s)
			}
			if tool, ok := r.catalog.View().Tool("claims_hidden"); ok && tool.Spec.Description.In("en") != "seethis text" {
				t.Errorf("description is %q", tool.Spec.Description.In("en"))
			}
			if err := r.upstreams.Apply([]mcpclient.Spec{spec}); err != nil { // which is eager
				t.Fatal(err)
			}
			r.ready()
			if got := r.tools(); !slices.Equal(got, []string{"claims_wipe"}) {
				t.Errorf("tools are %v", got)
			}
		})
	}
	for name, put := range map[string]func(path string) error{
		"a directory": func(path string) error { return os.MkdirAll(path, 0o700) },
		"a link":      func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dirs := folders{dirs.dir, t.TempDir()}
			if err := put(filepath.Join(dirs.cache, "claims.json")); err != nil {
				t.Fatal(err)
			}
			r, stop := dirs.run(t, lazily(spec))
			defer stop()
			r.ready()
			if got := r.tools(); !slices.Equal(got, []string{"claims_wipe"}) {
				t.Errorf("tools are %v", got)
			}
		})
	}
}

// TestVanished: a tool of the cache that the server no longer has is not called by another name.
func TestVanished(t *testing.T) {
	t.Parallel()
	dirs, spec := newFolders(t), lazily(child("claims", "claims"))
	dirs.fill(t, spec)
	path := filepath.Join(dirs.cache, "claims.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"name":"wipe"`, `"name":"gone"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := dirs.run(t, spec)
	got := r.call("claims_gone", "{}")
	if !got.Response.IsError || !strings.Contains(text(got), `no longer offers the tool "claims_gone"`) {
		t.Errorf("got %+v", got.Response)
	}
	if got := text(r.call("claims_wipe", "{}")); got != "ok" || r.status("claims").Restarts != 0 {
		t.Errorf("got %q, status %+v", got, r.status("claims"))
	}
}

// TestSilentOnce: a server that does not answer costs one startTimeout.
func TestSilentOnce(t *testing.T) {
	t.Parallel()
	spec := child("silent", "silent")
	spec.StartTimeout = 300 * time.Millisecond
	r := newRig(t)
	if err := r.upstreams.Apply([]mcpclient.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	if err := r.upstreams.Ready(testwait.Context(t)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(r.log.String(), "silent begins"); n > 1 {
		t.Errorf("it was started %d times", n)
	}
}
