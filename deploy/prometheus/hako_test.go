package prometheus_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// process is a program that a test runs until it ends.
type process struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan error
}

// start runs a program with these variables besides those of the test; what it printed is shown if the test fails.
func start(t *testing.T, dir string, variables []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), ended: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, &p.output, &p.output
	p.cmd.Env = append(os.Environ(), variables...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.ended:
		case <-testwait.Context(t).Done():
			_ = p.cmd.Process.Kill()
			t.Errorf("%s does not end", name)
		}
		if t.Failed() {
			t.Logf("%s printed:\n%s", filepath.Base(name), p.output.String())
		}
	})
	return p
}

// awaitOK waits until url answers with 200.
func awaitOK(t *testing.T, p *process, url string) {
	t.Helper()
	for ctx := testwait.Context(t); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-p.ended:
			p.ended <- err
			t.Fatalf("%s ended: %v", p.cmd.Path, err)
		default:
		}
		if ctx.Err() != nil {
			t.Fatalf("%s does not respond: %v", url, err)
		}
	}
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// buildHako compiles the program. Without the shipped plugins inside it there is nothing to look at.
func buildHako(t *testing.T) string {
	t.Helper()
	shipped, err := filepath.Glob("../../cmd/hako/shipped/*.wasm.zst")
	if err != nil || len(shipped) == 0 {
		testprogram.Missing(t, "the shipped plugins are not built: make plugins")
	}
	path := filepath.Join(t.TempDir(), "hako")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o",
		path, "./cmd/hako")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build hako: %v\n%s", err, out)
	}
	return path
}

// subject is a hako that serves, with fakes of all that it talks to.
type subject struct {
	t            *testing.T
	fakes        *fakes.Fakes
	dir, program string
	mcp, metrics string // URLs
	vendors      string // the address of the fakes
	agents       string // where "hako agent run" shows its metrics
	cache        string // the variable that names the folder of compiled code
}

// serveHako starts hako as an operator would, with the shipped plugins, a policy, Slack, a model and an upstream
// server.
func serveHako(t *testing.T) *subject {
	t.Helper()
	s := &subject{t: t, fakes: fakes.New(), dir: t.TempDir(), program: buildHako(t)}
	vendors := httptest.NewServer(s.fakes)
	t.Cleanup(vendors.Close)
	text, err := s.fakes.WriteConfig(s.dir, vendors.URL)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "hako-test") // compiled code of other runs, which would take seconds
	metrics, mcp := freeAddress(t), freeAddress(t)
	more := strings.NewReplacer("URL", vendors.URL, "METRICS", metrics).Replace(read(t, "testdata/more.yaml"))
	s.write("hako.yaml", text+more)
	s.write("hako.policy.yaml", read(t, "testdata/policy.yaml"))
	s.write("slack-app.token", fakes.SlackAppToken)
	s.write("servers.json", fmt.Sprintf(`{"mcpServers":{"inner":{"command":%q,"args":["serve","--stdio","-C","inner"],"env":{"HAKO_CACHE":%q}}}}`, s.program, cache))
	s.write("inner/hako.yaml", "shipped: {enabled: true, mounts: {workspace: workspace}}\n")
	s.write("inner/hako.policy.yaml",
		"version: 1\nrules: [{name: whoever calls agrees, action: ask, tools: [delete_file]}]\n")
	s.write("workspace/note.txt", "a note\n")
	s.model()
	s.cache = "HAKO_CACHE=" + cache
	s.vendors = vendors.Listener.Addr().String()
	s.run("plugin", "approve", "shell", "--mount", "workspace="+filepath.Join(s.dir, "workspace"), "--program", "echo",
		"--program", "curl",
		"--connect", s.vendors, "--yes")
	p := start(t, s.dir, []string{s.cache}, s.program, "serve", "--http", mcp, "--log-level", "warn")
	s.mcp, s.metrics = "http://"+mcp+"/mcp", "http://"+metrics+"/metrics"
	awaitOK(t, p, "http://"+metrics+"/readyz")
	s.serveAgents()
	return s
}

// serveAgents starts a second process, which answers the calls of managed agents.
func (s *subject) serveAgents() {
	s.t.Helper()
	s.run("agent", "apply", "--yes")
	s.fakes.ManagedAgents.NewSession() // which stays
	address := freeAddress(s.t)
	s.agents = "http://" + address + "/metrics"
	variables := []string{s.cache, "HAKO_METRICS_ADDRESS=" + address}
	awaitOK(s.t, start(s.t, s.dir, variables, s.program, "agent", "run", "--log-level", "warn"), s.agents)
}

func (s *subject) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// model gives the fakes of models what they answer.
func (s *subject) model() {
	s.t.Helper()
	steps, err := script.Parse([]byte(strings.ReplaceAll(read(s.t, "testdata/model.yaml"), "PERSON", fakes.SlackUser)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.fakes.Anthropic.Script, s.fakes.OpenAI.Script = steps, steps
}

// run runs a command of hako to its end.
func (s *subject) run(args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.cache)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("hako %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// send sends one message to the MCP endpoint, with headers as pairs, and returns the status, the session and the
// answer.
func (s *subject) send(body string, headers ...string) (status int, session, answer string) {
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.mcp, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, "", ""
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Error(err)
		return 0, "", ""
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Error(err)
	}
	return response.StatusCode, response.Header.Get("Mcp-Session-Id"), string(data)
}

const stateless = "2026-07-28"

// trace is the one that all calls belong to.
const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

// ask sends a request of a protocol version without sessions, of a client that can be asked nothing.
func (s *subject) ask(method, name string, params map[string]any) string {
	return s.askAs(map[string]any{}, method, name, params)
}

// askAs sends a request of a protocol version without sessions, of a client with these capabilities.
func (s *subject) askAs(capabilities map[string]any, method, name string, params map[string]any) string {
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    stateless,
		"io.modelcontextprotocol/clientCapabilities": capabilities,
		"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "test", "version": "1"},
		"traceparent":                                "00-" + trace + "-00f067aa0ba902b7-01",
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		s.t.Error(err)
	}
	_, _, answer := s.send(string(body), "Mcp-Protocol-Version", stateless, "Mcp-Method", method, "Mcp-Name", name)
	return answer
}

// call calls a tool.
func (s *subject) call(tool, arguments string) string {
	return s.ask("tools/call", tool, map[string]any{"name": tool, "arguments": json.RawMessage(arguments)})
}
