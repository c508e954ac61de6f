package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/internal/visible"
)

// served is a "hako serve" that runs.
type served struct {
	url    string
	stderr *watched
	// stop ends it and returns its exit code.
	stop func() int
}

var servesAt = regexp.MustCompile(`serves MCP at (\S+)\n|msg=serving url=(\S+)`)

// serve starts "hako serve" in dir on a free port and waits until it listens.
func serve(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return serveWith(t, nil, false, dir, args...)
}

// serveWith is serve with orders to read the configuration again, and at a terminal if that is wanted.
func serveWith(t *testing.T, hangups <-chan os.Signal, isTerminal bool, dir string, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{stderr: new(watched)}
	done := make(chan int, 1)
	go func() {
		a := &app{
			stdin:   strings.NewReader(""),
			stdout:  io.Discard,
			stderr:  &terminal.Screen{Writer: visible.NewWriter(s.stderr), Terminal: isTerminal},
			hangups: hangups,
		}
		done <- a.run(ctx, append([]string{"-C", dir, "serve", "--http", "127.0.0.1:0"}, args...))
	}()
	s.stop = func() int {
		cancel()
		code := <-done
		done <- code
		return code
	}
	t.Cleanup(func() { s.stop() })
	select {
	case <-s.stderr.await("Next:"):
	case code := <-done:
		done <- code
		t.Fatalf("hako serve ended with %d:\n%s", code, s.stderr)
	}
	s.url = servesAt.FindStringSubmatch(s.stderr.String())[1]
	return s
}

// base is the address without the path of MCP.
func (s *served) base() string { return strings.TrimSuffix(s.url, "/mcp") }

// httpClient has connections of its own: httptest.Server.Close closes those of http.DefaultTransport, also under the
// requests of other tests.
var httpClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

func get(t *testing.T, url string, header http.Header) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// rpc sends one request of MCP 2026-07-28, which knows no sessions, and returns the result.
func (s *served) rpc(t *testing.T, token, method, name, params string) (status int, answer string) {
	t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	request.Header.Set("Mcp-Method", method)
	if name != "" {
		request.Header.Set("Mcp-Name", name)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

func TestServeHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, approved(t, ""))
	for _, text := range []string{"probe", "active", "probe_echo", "hako mcp-config claude-code --url " + s.url} {
		if !strings.Contains(s.stderr.String(), text) {
			t.Errorf("the greeting lacks %q:\n%s", text, s.stderr)
		}
	}
	if _, answer := s.rpc(t, "", "tools/list", "", ""); !strings.Contains(answer, `"name":"probe_echo"`) {
		t.Errorf("tools/list: %s", answer)
	}
	if _, answer := s.rpc(t, "", "tools/call", "probe_echo", `"name":"probe_echo","arguments":{"text":"over HTTP"},`); !strings.Contains(
		answer,
		`"text":"over HTTP"`,
	) {
		t.Errorf("tools/call: %s", answer)
	}
	for path, want := range map[string]string{
		"/healthz": "hako is alive", "/readyz": "hako is ready", "/metrics": `hako_calls_total{frontend="mcp-http"`,
	} {
		if status, body := get(t, s.base()+path, nil); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d: %.300s", path, status, body)
		}
	}
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}

// TestServePending: the greeting says what a plugin waits for, and the yes takes effect while hako serves.
func TestServePending(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "")
	s := serve(t, dir)
	if text := s.stderr.String(); !strings.Contains(text, "pending") ||
		!strings.Contains(text, "hako plugin approve probe") {
		t.Errorf("the greeting:\n%s", text)
	}
	invoke(t, dir, "plugin", "approve", "probe", "--yes").want(t, exitOK)
	<-s.stderr.await("plugin in service")
	var answer string
	if !testwait.Until(t, func() bool { // the list changes after the log
		_, answer = s.rpc(t, "", "tools/list", "", "")
		return strings.Contains(answer, `"name":"probe_echo"`)
	}) {
		t.Errorf("tools/list: %s", answer)
	}
}

func TestServeMetricsElsewhere(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	s := serve(t, workplace(t, "metrics: {address: '"+address+"'}\n"))
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if status, _ := get(t, "http://"+address+path, nil); status != http.StatusOK {
			t.Errorf("%s at its own address: status %d", path, status)
		}
	}
	if status, _ := get(t, s.base()+"/metrics", nil); status != http.StatusNotFound {
		t.Errorf("/metrics beside MCP: status %d", status)
	}
	wantLoopbackName(t, "http://"+address+"/metrics")
}

// TestMetricsAreLoopbackOnly: a page that makes a browser ask under its own name learns nothing.
func TestMetricsAreLoopbackOnly(t *testing.T) {
	t.Parallel()
	s := serve(t, workplace(t, ""))
	wantLoopbackName(t, s.base()+"/metrics")
}

func wantLoopbackName(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "attacker.example"
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", response.StatusCode)
	}
}

func TestServeWithToken(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	o := invoke(t, dir, "token", "new", "test")
	token := regexp.MustCompile(`hako_\S+`).FindString(o.stderr)
	entry := strings.ReplaceAll("\n"+strings.TrimSpace(o.stdout), "\n", "\n      ")
	put(t, filepath.Join(dir, "hako.yaml"), []byte("plugins: [plugins]\nhttp:\n  auth:\n    tokens:"+entry+"\n"))
	s := serve(t, dir)
	if status, _ := s.rpc(t, "", "tools/list", "", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: status %d", status)
	}
	if status, answer := s.rpc(t, token, "tools/list", "", ""); status != http.StatusOK ||
		!strings.Contains(answer, "probe_echo") {
		t.Errorf("with the token: status %d: %s", status, answer)
	}
}

// TestServeStdio holds a conversation of MCP 2025-11-25 over standard input and output.
func TestServeStdio(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	in, client := io.Pipe()
	answers, out := io.Pipe()
	stderr := new(watched)
	done := make(chan int, 1)
	go func() {
		a := &app{stdin: in, stdout: out, stderr: stderr}
		done <- a.run(t.Context(), []string{"-C", dir, "serve", "--stdio"})
		out.Close()
	}()
	lines := bufio.NewScanner(answers)
	ask := func(message string) string {
		t.Helper()
		fmt.Fprintln(client, message)
		for lines.Scan() {
			if !json.Valid(lines.Bytes()) {
				t.Fatalf("standard output holds %q", lines.Text())
			}
			if strings.Contains(lines.Text(), `"id":`) {
				return lines.Text()
			}
		}
		t.Fatalf("no answer to %s\n%s", message, stderr)
		return ""
	}
	ask(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
	)
	fmt.Fprintln(client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if answer := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"probe_echo","arguments":{"text":"over stdio"}}}`); !strings.Contains(
		answer,
		"over stdio",
	) {
		t.Errorf("tools/call: %s", answer)
	}
	client.Close()
	go io.Copy(io.Discard, answers)
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if text := stderr.String(); strings.Contains(text, "serves MCP at") {
		t.Errorf("HTTP is on without --http:\n%s", text)
	}
}

// TestServeStdioClientLeaves by closing what it reads from: hako ends in good order all the same.
func TestServeStdioClientLeaves(t *testing.T) {
	t.Parallel()
	dir := approved(t, "")
	stderr := new(watched)
	process := exec.CommandContext(t.Context(), program(t), "-C", dir, "serve", "--stdio")
	process.Env = append(os.Environ(), asProgram+"=1")
	process.Stderr = stderr
	client, answers := must(process.StdinPipe()), must(process.StdoutPipe())
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(client, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if lines := bufio.NewScanner(answers); !lines.Scan() {
		t.Fatalf("no answer\n%s", stderr)
	}
	answers.Close()
	fmt.Fprintln(client, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if err := process.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if got := actions(t, dir); !slices.Contains(got, "serve.stop: ok") {
		t.Errorf("serve.stop is missing: %q", got)
	}
}

func TestServeFails(t *testing.T) {
	t.Parallel()
	running := serve(t, workplace(t, ""))
	hakos := strings.TrimPrefix(running.base(), "http://")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	hash := "sha256:" + strings.Repeat("0", 64)
	tests := map[string]struct {
		configuration string
		args          []string
		want          []string
	}{
		"hako's port": {args: []string{"--http", hakos}, want: []string{"another hako already uses the address " + hakos,
			"hako serve --http 127.0.0.1:"}},
		"another's port": {args: []string{"--http", silent.Addr().String()},
			want: []string{"another program already uses the address"}},
		"no address":     {args: []string{"--http", "8420"}, want: []string{"host:port, such as 127.0.0.1:8420"}},
		"no such folder": {args: []string{"--plugins", "nowhere"}, want: []string{"nowhere does not exist: create it"}},
		"exposed": {args: []string{"--http", "0.0.0.0:0"}, want: []string{"can be reached from other machines",
			"hako token create"}},
		"half of TLS": {configuration: "http: {tls: {cert: tls.crt}}",
			want: []string{"http.tls: it needs both cert and key"}},
		"no certificate": {configuration: "http: {tls: {cert: a.crt, key: a.key}}",
			want: []string{"http.tls", "a.crt"}},
		"a bad token": {configuration: "http: {auth: {tokens: [{name: x, hash: y}]}}",
			want: []string{"its hash is not"}},
		"a bad origin": {configuration: "http: {origins: [example.com]}", want: []string{"not a web origin"}},
		"a bad resource": {
			configuration: "http: {auth: {oauth: {resource: 'x', issuers: [{url: 'https://i.example'}]}}}",
			want:          []string{"OAuth resource"},
		},
		"a nameless one": {configuration: "http: {auth: {tokens: [{hash: '" + hash + "'}]}}",
			want: []string{"no name"}},
		"metrics' port": {configuration: "metrics: {address: '" + hakos + "'}",
			want: []string{"metrics.address: another hako already uses", "set metrics.address to 127.0.0.1:"}},
		"bad consents": {configuration: "consents: bad.yaml",
			want: []string{"consent file", `did you mean "plugins"?`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, filepath.Join(dir, "bad.yaml"), []byte("plugin: {}\n"))
			put(t, filepath.Join(dir, "hako.yaml"), []byte("locale: en\n"+test.configuration+"\n"))
			args := []string{"serve", "--http", "127.0.0.1:0"}
			o := invoke(t, dir, append(args, test.args...)...)
			o.want(t, exitUsage, test.want...)
		})
	}
}

// TestServeSignal: the process ends well with a signal, and finishes what is under way first.
func TestServeSignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals to send on Windows")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stderr := new(watched)
	process := exec.CommandContext(t.Context(), program, "-C", approved(t, ""), "serve", "--http", "127.0.0.1:0")
	process.Env = append(os.Environ(), asProgram+"=1")
	process.Stderr = stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	<-stderr.await("Next:")
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
}

// TestServeLogsJSON: a program can read all of standard error.
func TestServeLogsJSON(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stderr := new(watched)
	done := make(chan int, 1)
	dir := workplace(t, "log: {format: json}\n")
	go func() {
		a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: stderr}
		done <- a.run(ctx, []string{"-C", dir, "serve", "--http", "127.0.0.1:0"})
	}()
	<-stderr.await(`"msg":"serving","url":"http://127.0.0.1:`)
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for line := range strings.Lines(stderr.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("standard error holds %q", line)
		}
	}
}

// TestUnknownPluginSettings: settings for a plugin that is not there are pointed out.
func TestUnknownPluginSettings(t *testing.T) {
	t.Parallel()
	s := serve(t, approved(t, "plugin: {prob: {prefix: x_}}\n"))
	if text := s.stderr.String(); !strings.Contains(text, "there is no such plugin") ||
		!strings.Contains(text, "nearest=probe") {
		t.Errorf("no warning:\n%s", text)
	}
}
