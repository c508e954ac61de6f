//go:build unix

package chaos

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testlog"
	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/dev/kit/testwait"
)

// world is all that runs: a PostgreSQL server, the vendors' fakes, replicas of hako, and nginx before them.
type world struct {
	t        *testing.T
	dir      string
	binary   string
	database *postgrestest.Server
	store    string
	fakes    *fakes.Fakes
	vendors  *httptest.Server
	refresh  *refreshes
	replicas []*replica
	proxy    string
	// tenants have a token each. Without any nobody needs one.
	tenants []tenant
}

type tenant struct{ Token, Hash string }

// replica is one process.
type replica struct {
	world   *world
	number  int
	address string

	mu      sync.Mutex // guards process and killed
	process *exec.Cmd
	killed  []time.Time
	log     *os.File
}

var configuration = template.Must(template.New("").Parse(`
store: {{.Store}}
cache: {{.Dir}}/cache
shipped: {enabled: true}
policy: {{.Dir}}/policy.yaml
secrets: {key: {file: {{.Dir}}/secrets.key}}
audit: {key: {file: {{.Dir}}/audit.key}}
plugin:
  hr: {config: {freee_url: {{.URL}}/freee/hr/, company_id: "12345"}}
credentials:
  freee:
    provider: freee
    clientId: freee-client
    clientSecret: {file: {{.Dir}}/freee-client.secret}
    authorizeUrl: {{.URL}}/freee/public_api/authorize
    tokenUrl: {{.URL}}/freee/public_api/token
llm:
  models:
    - {name: fake, provider: anthropic, model: fake, baseUrl: {{.URL}}/anthropic/, key: {file: {{.Dir}}/model.key}}
slack:
  workspaces:
    - name: main
      botToken: {file: {{.Dir}}/slack.token}
      signingSecret: {file: {{.Dir}}/signing.secret}
      apiUrl: {{.URL}}/slack/api/
mcp: {limits: {rate: 100000}}
limits: {rate: 10000000}
{{- if .Tenants}}
http:
  auth:
    tokens:
{{- range $number, $tenant := .Tenants}}
      - {name: tenant-{{$number}}, tenant: tenant-{{$number}}, hash: "{{$tenant.Hash}}"}
{{- end}}
{{- end}}
`))

const policy = `
version: 1
rules:
  - {name: people agree, action: ask, tools: [register_agent]}
`

const signingSecret = "made up for the chaos"

func newWorld(t *testing.T, binary string, replicas int, tenants ...tenant) *world {
	t.Helper()
	nginx := testprogram.Find(t, "nginx", "/usr/sbin")
	w := &world{t: t, dir: t.TempDir(), binary: binary, fakes: fakes.New(), refresh: newRefreshes(), tenants: tenants}
	w.database = postgrestest.NewServer(t, "synchronous_commit=on")
	w.store = w.database.Database(t)
	if *pooler {
		w.store = postgrestest.Pooled(t, w.store, "session", "server_login_retry = 1")
	}
	w.vendors = httptest.NewServer(w.refresh.watch(w.fakes))
	t.Cleanup(w.vendors.Close)
	w.configure()
	w.run("consent", "connect", "freee")
	for i := range replicas {
		r := &replica{world: w, number: i, address: freeAddress(t)}
		w.replicas = append(w.replicas, r)
		r.setClock(0)
		r.start()
		t.Cleanup(r.kill)
		if i == 0 {
			r.ready()
			w.warm(r)
		}
	}
	w.startProxy(nginx)
	for _, r := range w.replicas {
		r.ready()
	}
	return w
}

// configure writes the configuration and the secrets that it names.
func (w *world) configure() {
	w.t.Helper()
	if _, err := w.fakes.WriteConfig(w.dir, w.vendors.URL); err != nil { // for the secrets
		w.t.Fatal(err)
	}
	var text bytes.Buffer
	if err := configuration.Execute(&text, map[string]any{"Store": w.store, "Dir": w.dir, "URL": w.vendors.URL, "Tenants": w.tenants}); err != nil {
		w.t.Fatal(err)
	}
	for name, content := range map[string]string{
		"hako.yaml": text.String(), "policy.yaml": policy, "signing.secret": signingSecret, "audit.key": newKey(),
		"secrets.key": newKey(),
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// warm waits until the plugins' code is compiled, and in the cache that the replicas share: before, calls are
// interpreted. On a machine on which calls are never quick it waits a few minutes.
func (w *world) warm(r *replica) {
	c, end := w.clientOf(0, "http://"+r.address), time.Now().Add(3*time.Minute)
	for _, tool := range []string{"list_projects", "list_employees"} {
		for quick := 0; quick < 3 && time.Now().Before(end); {
			begin := time.Now()
			c.call(context.Background(), "", tool, map[string]any{}, "")
			if quick++; time.Since(begin) > 100*time.Millisecond {
				quick = 0
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
}

// clientOf returns a client of one of the tenants, the first after the last, if there are any.
func (w *world) clientOf(number int, url string) *client {
	c := newClient(new(book), url, withoutSessions)
	if len(w.tenants) > 0 {
		c.token = w.tenants[number%len(w.tenants)].Token
	}
	return c
}

func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

// freeAddress is one that a replica can have again after it was killed: its port is below those that connections get.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+mathrand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, w.binary, append([]string{"-C", w.dir}, args...)...)
	command.Env = append(os.Environ(), "HAKO_POSTGRES_DIR="+filepath.Join(w.dir, "state"), "HAKO_LOG_FORMAT=json")
	return command
}

// page is the page on which consent is given.
var page = regexp.MustCompile(`http://\S+/authorize\S+`)

// run runs a command to its end and returns what it printed. A page that it shows is visited.
func (w *world) run(what string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out testlog.Buffer
	command := w.command(ctx, args...)
	command.Env = append(command.Env, "BROWSER=none", "DISPLAY=", "PATH=/nonexistent")
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	visited := false
	for {
		select {
		case err := <-done:
			if err != nil {
				w.t.Fatalf("%s: %v: %s", what, err, out.String())
			}
			return out.String()
		case <-time.After(50 * time.Millisecond):
		}
		if link := page.FindString(out.String()); link != "" && !visited {
			visited = true
			if response, err := http.Get(link); err == nil {
				_ = response.Body.Close()
			}
		}
	}
}

func (r *replica) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.log, err = os.OpenFile(r.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		r.world.t.Error(err)
		return
	}
	r.process = r.world.command(context.Background(), "serve", "--http", r.address)
	r.process.Env = append(r.process.Env, clockVariable+"="+r.clock())
	r.process.Stdout, r.process.Stderr = r.log, r.log
	if err := r.process.Start(); err != nil {
		r.world.t.Error(err)
		r.process = nil
	}
}

// logFile is the process's log file.
func (r *replica) logFile() string {
	return filepath.Join(r.world.dir, fmt.Sprintf("replica-%d.log", r.number))
}

// keepLogs copies the replicas' logs into a folder.
func (w *world) keepLogs(dir string) {
	w.t.Helper()
	err := os.MkdirAll(dir, 0o755)
	for _, r := range w.replicas {
		text, read := os.ReadFile(r.logFile())
		err = errors.Join(err, read, os.WriteFile(filepath.Join(dir, filepath.Base(r.logFile())), text, 0o600))
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.t.Logf("the replicas' logs are in %s", dir)
}

// kill ends the process without a word.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil {
		return
	}
	r.killed = append(r.killed, time.Now())
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
	_ = r.log.Close()
	r.process = nil
}

// ready waits until the replica serves.
func (r *replica) ready() {
	r.world.t.Helper()
	serves := func() bool {
		response, err := http.Get("http://" + r.address + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
	if !testwait.Until(r.world.t, serves) {
		text, _ := os.ReadFile(r.logFile())
		r.world.t.Fatalf("replica %d does not serve: %s", r.number, text[max(0, len(text)-4000):])
	}
}

var nginxConfiguration = template.Must(template.New("").Parse(`
worker_processes 1;
daemon off;
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/nginx.log;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path {{.Dir}}/nginx-body;
	proxy_temp_path {{.Dir}}/nginx-proxy;
	fastcgi_temp_path {{.Dir}}/nginx-fastcgi;
	uwsgi_temp_path {{.Dir}}/nginx-uwsgi;
	scgi_temp_path {{.Dir}}/nginx-scgi;
	upstream hako {
{{- range .Replicas}}
		server {{.}} max_fails=1 fail_timeout=1s;
{{- end}}
		keepalive 32;
	}
	server {
		listen {{.Listen}};
		location / {
			proxy_pass http://hako;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $http_host;
			proxy_buffering off;
			proxy_read_timeout 1h;
			proxy_connect_timeout 1s;
		}
	}
}
`))

// startProxy starts nginx: each request goes to the next replica, whoever sends it.
func (w *world) startProxy(program string) {
	w.t.Helper()
	listen := freeAddress(w.t)
	w.proxy = "http://" + listen
	var addresses []string
	for _, r := range w.replicas {
		addresses = append(addresses, r.address)
	}
	var text bytes.Buffer
	err := nginxConfiguration.Execute(&text, map[string]any{"Dir": w.dir, "Listen": listen, "Replicas": addresses})
	file := filepath.Join(w.dir, "nginx.conf")
	if err == nil {
		err = os.WriteFile(file, text.Bytes(), 0o600)
	}
	command := exec.Command(program, "-p", w.dir, "-c", file)
	if os.Geteuid() == 0 { // its worker would be another user, who may not enter the directory
		command.Args = append(command.Args, "-g", "user root;")
	}
	var out testlog.Buffer
	command.Stderr = &out
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	listens := func() bool {
		conn, err := net.Dial("tcp", listen)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}
	if !testwait.Until(w.t, listens) {
		w.t.Fatalf("nginx does not listen: %s", out.String())
	}
}

// refreshes are the uses of refresh tokens at the vendor.
type refreshes struct {
	mu   sync.Mutex // guards uses and burnt
	uses map[string]int
	// burnt counts those that were refused, and last is when one was given out.
	burnt int
	last  time.Time
}

func newRefreshes() *refreshes { return &refreshes{uses: map[string]int{}} }

// lifetime is the lifetime of access tokens, in seconds: so short that they have to be renewed under load.
const lifetime = "3"

// watch looks at the requests for tokens on their way to the fakes.
func (r *refreshes) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasSuffix(req.URL.Path, "/public_api/token") {
			next.ServeHTTP(w, req)
			return
		}
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		status := httptest.NewRecorder()
		next.ServeHTTP(status, req)
		token := regexp.MustCompile(`refresh_token=([^&]+)`).FindSubmatch(body)
		r.mu.Lock()
		if token != nil {
			r.uses[string(token[1])]++
		}
		if status.Code != http.StatusOK {
			r.burnt++
		} else if r.burnt == 0 {
			r.last = time.Now()
		}
		r.mu.Unlock()
		for name, values := range status.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(status.Code)
		_, _ = w.Write(regexp.MustCompile(`"expires_in":\d+`).ReplaceAll(status.Body.Bytes(),
			[]byte(`"expires_in":`+lifetime)))
	})
}
