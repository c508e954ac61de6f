package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/demo"
	"github.com/hako-run/hako/dev/fakes"
	modelscript "github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// reloading is a "hako serve" whose configuration changes.
type reloading struct {
	*served
	t      *testing.T
	dir    string
	orders chan os.Signal
}

// serveReloading starts one that has the probe.
func serveReloading(t *testing.T, configuration string) *reloading {
	t.Helper()
	r := &reloading{t: t, dir: approved(t, configuration), orders: make(chan os.Signal)}
	r.served = serveWith(t, r.orders, false, r.dir)
	return r
}

// write writes the configuration in one step.
func (r *reloading) write(configuration string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "hako.yaml")
	put(r.t, path+".new", []byte("plugins: [plugins]\n"+configuration))
	if err := os.Rename(path+".new", path); err != nil {
		r.t.Fatal(err)
	}
}

// reload writes the configuration and orders it to be read, unless it has been seen already, and waits for a line of
// the log.
func (r *reloading) reload(configuration, want string) {
	r.t.Helper()
	before := len(r.stderr.String())
	r.write(configuration)
	r.orders <- syscall.Signal(1)
	if !testwait.Until(r.t, func() bool { return strings.Contains(r.stderr.String()[before:], want) }) {
		r.t.Fatalf("no %q in\n%s", want, r.stderr.String()[before:])
	}
}

func (r *reloading) call(tool, arguments string) string {
	r.t.Helper()
	_, answer := r.rpc(r.t, "", "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s,`, tool, arguments))
	return answer
}

// TestReload changes what can change while hako serves, and names what cannot.
func TestReload(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "")
	if got := r.call("probe_config", "{}"); !strings.Contains(got, "example.com") {
		t.Fatal(got)
	}
	r.reload("plugin: {probe: {config: {base_url: 'https://other.example/'}}}\n",
		"applied=[plugin.probe.config.base_url]")
	if got := r.call("probe_config", "{}"); !strings.Contains(got, "other.example") {
		t.Error(got)
	}
	r.reload("plugin: {probe: {prefix: x_}}\nmcp: {instructions: Be kind., listTTL: 1m}\n", "mcp.instructions")
	if got := r.call("x_probe_echo", `{"text":"hello"}`); !strings.Contains(got, "hello") {
		t.Error(got)
	}
	if _, got := r.rpc(t, "", "server/discover", "", ""); !strings.Contains(got, "Be kind.") {
		t.Error(got)
	}
	if _, got := r.rpc(t, "", "tools/list", "", ""); !strings.Contains(got, `"ttlMs":60000`) ||
		!strings.Contains(got, "x_probe_echo") {
		t.Error(got)
	}
	r.reload("limits: {output: 10B}\naudit: {fields: {probe_echo: [text]}}\n",
		"applied=\"[audit.fields.probe_echo limits.output ")
	if got := r.call("probe_echo", `{"text":"a text of more than ten bytes"}`); !strings.Contains(got, "10 bytes") {
		t.Error(got)
	}
	if status, _ := get(t, r.base()+"/healthz", http.Header{}); status != 200 {
		t.Error(status)
	}
	r.reload(
		"http: {address: '127.0.0.1:1'}\nmemoryBudget: 1GiB\nlog: {level: debug}\nagent: {poll: 9s}\n",
		"restart=[memoryBudget] others=[agent.poll]",
	) // the flag --http stands above the file
	if got := r.call("probe_echo", `{"text":"still here"}`); !strings.Contains(got, "still here") {
		t.Error(got)
	}
	if _, got := get(t, r.base()+"/metrics", http.Header{}); !strings.Contains(got, "hako_config_reload_success 1") {
		t.Error("no metric")
	}
	r.stop()
	invoke(t, r.dir, "audit", "query", "--type", "operator", "--action", "configuration.reload").want(t, exitOK, "ok",
		"plugin.probe.config.base_url", "signal")
}

// TestReloadTokens: who may come in changes with the file, and no secret is in the log.
func TestReloadTokens(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "")
	token := func(name string) (secret, entry string) {
		o := invoke(t, r.dir, "token", "new", name)
		secret = regexp.MustCompile(`hako_\S+`).FindString(o.stderr)
		return secret, "http:\n  auth:\n    tokens:" + strings.ReplaceAll("\n"+strings.TrimSpace(o.stdout), "\n",
			"\n      ") + "\n"
	}
	first, firstEntry := token("first")
	second, secondEntry := token("second")
	status := func(secret string) int {
		code, _ := r.rpc(t, secret, "tools/list", "", "")
		return code
	}
	r.reload(firstEntry, "http.auth.tokens.first.hash")
	if status("") != 401 || status(first) != 200 || status(second) != 401 {
		t.Error("the first token does not count")
	}
	r.reload(secondEntry, "http.auth.tokens.second.hash")
	if status(first) != 401 || status(second) != 200 {
		t.Error("the second token does not count")
	}
	if log := r.stderr.String(); strings.Contains(log, "sha256:") || strings.Contains(log, first) {
		t.Errorf("the log says too much:\n%s", log)
	}
}

// TestReloadBroken: a configuration with an error changes nothing, and everybody is told; the next good one is taken.
func TestReloadBroken(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "")
	for broken, want := range map[string]string{
		"plugin: {probe: {prefix: x_}}\nlimit: {}\n":                                                                "did you mean",
		"plugin: {probe: {prefix: x_, config: {base_url: 5}}}\n":                                                    "plugin.probe.config",
		"plugin: {probe: {prefix: x_}}\nhttp: {origins: [nothing]}\n":                                               "not a web origin",
		"plugin: {probe: {prefix: x_}}\nupstreams: missing.json\n":                                                  "missing.json",
		"plugin: {probe: {prefix: x_}}\nslack: {workspaces: [{name: x, botToken: {env: A}, appToken: {env: B}}]}\n": "needs a model",
		"plugin: {probe: {prefix: x_}}\ncredentials: {x: {provider: none}}\n":                                       "does not exist",
	} {
		r.reload(broken, want)
		if got := r.call("probe_echo", `{"text":"still here"}`); !strings.Contains(got, "still here") {
			t.Errorf("%s: %s", broken, got)
		}
	}
	if _, got := get(t, r.base()+"/readyz", http.Header{}); !strings.Contains(
		got,
		"hako is ready\nthe configuration is invalid",
	) ||
		strings.Contains(got, "none") {
		t.Error(got)
	}
	if _, got := get(t, r.base()+"/metrics", http.Header{}); !strings.Contains(got, "hako_config_reload_success 0") {
		t.Error("no metric")
	}
	r.reload("plugin: {probe: {prefix: x_}}\n", "applied=[plugin.probe.prefix]")
	if got := r.call("x_probe_echo", `{"text":"renamed"}`); !strings.Contains(got, "renamed") {
		t.Error(got)
	}
	if _, got := get(t, r.base()+"/readyz", http.Header{}); strings.Contains(got, "is invalid") {
		t.Error(got)
	}
	r.stop()
	invoke(t, r.dir, "audit", "query", "--type", "operator", "--action", "configuration.reload").want(t, exitOK,
		"failed", "ok")
}

// TestReloadByFile: a changed file needs no order.
func TestReloadByFile(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "")
	seen := r.stderr.await("applied=[plugin.probe.prefix]")
	r.write("plugin: {probe: {prefix: x_}}\n")
	<-seen
	if got := r.call("x_probe_echo", `{"text":"renamed"}`); !strings.Contains(got, "renamed") {
		t.Error(got)
	}
}

// TestReloadWhileCalled: a call in flight is finished as it began.
func TestReloadWhileCalled(t *testing.T) {
	t.Parallel()
	for limit := 3 * time.Second; ; limit *= 4 { // on a busy machine the call may be over before it is seen
		r := serveReloading(t, fmt.Sprintf("plugin: {probe: {limits: {time: %v}}}\n", limit))
		answered := make(chan string, 1)
		go func() { answered <- r.call("probe_wait", "{}") }()
		for !r.calling(t) && len(answered) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		if len(answered) > 0 {
			continue
		}
		r.reload("plugin: {probe: {prefix: x_, limits: {time: 1h}}}\n",
			"applied=\"[plugin.probe.limits.time plugin.probe.prefix]\"")
		if got := <-answered; !strings.Contains(got, limit.String()) {
			t.Errorf("the call in flight: %s", got)
		}
		return
	}
}

// calling reports whether a call is in flight.
func (s *served) calling(t *testing.T) bool {
	_, got := get(t, s.base()+"/metrics", http.Header{})
	return strings.Contains(got, `hako_calls_in_flight{method="tools/call"} 1`)
}

// TestReloadStorm: many orders and changes at once, and a stop in the middle, end well.
func TestReloadStorm(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "")
	var group sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	for i := range 4 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				select {
				case r.orders <- syscall.Signal(1):
				case <-ctx.Done():
				}
				if got := r.call("probe_echo", `{"text":"here"}`); !strings.Contains(got, "here") {
					t.Error(got)
				}
				if i == 0 {
					r.write(fmt.Sprintf("plugin: {probe: {config: {base_url: 'https://n%d.example/'}}}\n", n))
				}
			}
		})
	}
	group.Wait()
	select { // one more, which the end may meet
	case r.orders <- syscall.Signal(1):
	case <-testwait.Context(t).Done():
		t.Error("orders are not taken")
	}
	if code := r.stop(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.stderr)
	}
}

// TestReloadSignal: the process takes SIGHUP, and tells systemd.
func TestReloadSignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals to send on Windows")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := approved(t, "")
	manager := newManager(t)
	stderr := new(watched)
	process := exec.CommandContext(t.Context(), program, "-C", dir, "serve", "--http", "127.0.0.1:0")
	process.Env = append(os.Environ(), asProgram+"=1", "NOTIFY_SOCKET="+manager.path)
	process.Stderr = stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	<-stderr.await("Next:")
	manager.want("READY=1")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nplugin: {probe: {prefix: x_}}\n"))
	for range 20 {
		if err := process.Process.Signal(syscall.Signal(1)); err != nil {
			t.Fatal(err)
		}
	}
	<-stderr.await("applied=[plugin.probe.prefix]")
	manager.want("RELOADING=1\nMONOTONIC_USEC=", "READY=1")
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	manager.want("STOPPING=1")
}

// TestReloadEverything: each of what else can change does.
func TestReloadEverything(t *testing.T) {
	t.Parallel()
	r := serveReloading(t, "")
	tools := func() string {
		_, got := r.rpc(t, "", "tools/list", "", "")
		return got
	}
	put(t, filepath.Join(r.dir, "inner", "hako.yaml"),
		[]byte("shipped: {enabled: false}\nplugins: [../plugins]\nconsents: ../hako.consents.yaml\n"))
	put(
		t,
		filepath.Join(r.dir, "servers.json"),
		fmt.Appendf(
			nil,
			`{"mcpServers": {"box": {"command": %q, "args": ["serve", "--stdio"], "cwd": "inner", "env": {%q: "1", "HAKO_CACHE": %q}}}}`,
			program(t),
			asProgram,
			os.Getenv("HAKO_CACHE"),
		),
	)
	r.reload("upstreams: servers.json\n", "applied=[upstreams]")
	if !testwait.Until(t, func() bool { return strings.Contains(tools(), "box_probe_echo") }) {
		t.Fatalf("no tools of the upstream server:\n%s", r.stderr)
	}
	r.reload("upstreamsEnabled: false\n", "upstreamsEnabled")
	if got := tools(); strings.Contains(got, "box_") {
		t.Error(got)
	}
	put(t, filepath.Join(r.dir, "others", "other.wasm"), probePlugin(t, "name: probe\n", "name: other\n", "probe_",
		"other_"))
	r.reload("\n", "upstreamsEnabled")
	before := len(r.stderr.String())
	put(
		t,
		filepath.Join(r.dir, "hako.yaml"),
		[]byte(
			"plugins: [others]\napprovals: {timeout: 1s}\ntenants: {acme: {plugin: {other: {config: {base_url: 'https://acme.example/'}}}}}\n",
		),
	)
	r.orders <- syscall.Signal(1)
	if !testwait.Until(t, func() bool { return !strings.Contains(tools(), "probe_echo") }) {
		t.Fatal("the folder is still there")
	}
	waitUntil(t, "report", func() bool {
		log := r.stderr.String()[before:]
		return strings.Contains(log, "approvals.timeout plugins tenants.acme.plugin.other.config.base_url") &&
			strings.Contains(log, "plugin other is pending")
	})
}

// program is this test binary.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReloadSlack: the bot comes, is replaced and goes with the configuration.
func TestReloadSlack(t *testing.T) {
	t.Parallel()
	dir, f := t.TempDir(), fakes.New()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	without := must(f.WriteConfig(dir, server.URL))
	f.Anthropic.Script = must(modelscript.Parse([]byte("steps: [{say: fine}]\n")))
	f.OpenAI.Script = f.Anthropic.Script
	put(t, filepath.Join(dir, "slack-app.token"), []byte(fakes.SlackAppToken))
	r := &reloading{t: t, dir: dir, orders: make(chan os.Signal)}
	r.served = serveWith(t, r.orders, false, dir)
	change := func(configuration string) {
		put(t, filepath.Join(dir, "hako.yaml"), []byte(configuration))
		r.orders <- syscall.Signal(1)
	}
	with := without + strings.ReplaceAll(demo.SlackWorkspace, "URL", server.URL)
	answers := 0
	answered := func() {
		t.Helper()
		answers++
		must(f.Slack.Tell(t.Context(), slack.Said{User: fakes.SlackUser, Channel: fakes.SlackChannel,
			Text: "<@" + fakes.SlackBot + "> hello"}))
		waitUntil(t, "answer", func() bool {
			n := 0
			for _, m := range f.Slack.Messages() {
				if m.Author == fakes.SlackBot && !m.Streaming && strings.Contains(m.Text, "fine") {
					n++
				}
			}
			return n == answers
		})
	}
	change(with)
	waitUntil(t, "connection", func() bool { return f.Slack.Connections() == 1 })
	answered()
	replaced := r.stderr.await("applied=[chat.system]")
	change(with + "\nchat: {system: You are another one.}\n")
	<-replaced
	waitUntil(t, "hand-over", func() bool {
		return strings.Count(r.stderr.String(), "connected to Slack in Socket Mode") == 2 && f.Slack.Connections() == 1
	})
	answered()
	change(without)
	waitUntil(t, "end of the connection", func() bool { return f.Slack.Connections() == 0 })
	if code := r.stop(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.stderr)
	}
}
