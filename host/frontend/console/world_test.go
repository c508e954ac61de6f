package console_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/govern/approval"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/govern/policy"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/pdk/abi"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a console with all that it shows.
type world struct {
	*console.Console
	t         testing.TB
	host      *host.Host
	store     *store.Store
	approvals *approval.Queue
	policy    *policy.Policy
	traffic   *console.Traffic
	log       *audit.Log
	logDir    string
	consents  string
	folder    string
	clock     *clock
	handler   http.Handler
}

// secretOf is the token of the role in worlds.
func secretOf(role console.Role) string { return "hako_" + string(role) + "_secret" }

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func tokenOf(role console.Role) bearer.Token {
	return bearer.Token{Name: string(role) + "-token", User: string(role), Hash: hashOf(secretOf(role)), Role: string(role)}
}

// journal is the audit log, which may fail.
type journal struct {
	*audit.Log
	audit.Reader
	fail error
}

func (j *journal) Append(ctx context.Context, e *audit.Event) error {
	if j.fail != nil {
		return j.fail
	}
	return j.Log.Append(ctx, e)
}

func (j *journal) Verify(ctx context.Context) (*audit.Report, error) {
	return j.Reader.Verify(ctx, nil)
}

const testPolicy = `
version: 1
default: allow
rules:
  - {name: ask about danger, action: ask, tools: [danger]}
  - {name: two pairs of eyes, action: ask, tools: [approved], approvers: {groups: [hr-admins], users: [boss@example.com]}}
  - {name: never, action: deny, tools: [forbidden]}
`

// newWorld makes a world whose console has a token for each role. change may be nil.
func newWorld(t testing.TB, change func(*world, *console.Options)) *world {
	t.Helper()
	return newWorldIn(t, filepath.Join(t.TempDir(), "store"), change)
}

// newWorldIn makes a world with the store at that place.
func newWorldIn(t testing.TB, place string, change func(*world, *console.Options)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, clock: newClock(), logDir: filepath.Join(dir, "audit"),
		consents: filepath.Join(dir, "consents.yaml"), folder: t.TempDir()}
	var err error
	must := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.store, err = drivers.Open(t.Context(), place, nil)
	must()
	t.Cleanup(func() { _ = w.store.Close() })
	w.policy, err = policy.Parse([]byte(testPolicy))
	must()
	w.approvals, err = approval.New(t.Context(), w.store,
		&approval.Options{Now: w.clock.Now, May: func(q *approval.Question, p approval.Person) bool {
			return p.Operator || p.Tenant == q.Caller.Tenant &&
				w.policy.MayApprove(policy.Decision{Approvers: q.Approvers},
					q.Caller.User, p.User, p.Groups)
		}})
	must()
	w.log, err = audit.Open(&audit.Options{Dir: w.logDir})
	must()
	t.Cleanup(func() { _ = w.log.Close() })
	w.traffic = console.NewTrafficAt(w.clock.Now)
	w.host, err = host.New(&host.Options{
		Folders: []string{w.folder}, Consents: w.consents, Observer: w.traffic,
		Governance: pipeline.Governance{Policy: func() *policy.Policy { return w.policy }, Approvals: w.approvals,
			Audit: w.log},
	})
	must()
	t.Cleanup(func() { _ = w.host.Close() })
	o := &console.Options{
		Host: w.host, Store: w.store, Approvals: w.approvals, Traffic: w.traffic, Now: w.clock.Now,
		Site: console.Site{Local: "http://127.0.0.1:8420"}, Journal: &journal{Log: w.log, Reader: audit.Dir(w.logDir)},
		Settings: settings{}, Consents: consents{load: func() (console.Consents,
			error) {
			return grant.Load(w.consents)
		}},
		Build: console.Build{Version: "1.2.3"},
	}
	o.Logins.Issued, err = bearer.Open(t.Context(), w.store)
	must()
	for _, role := range console.Roles {
		o.Logins.Tokens = append(o.Logins.Tokens, tokenOf(role))
	}
	if change != nil {
		change(w, o)
	}
	w.Console, err = console.New(t.Context(), o)
	must()
	w.handler = w.Handler()
	return w
}

// settings is a configuration for tests.
type settings struct {
	configuration func() console.Configuration
	auditOptional func() bool
	issuers       []string
	toolsets      *toolset.Config
}

func (s settings) Configuration() console.Configuration {
	if s.configuration != nil {
		return s.configuration()
	}
	return console.Configuration{File: "hako.yaml"}
}

func (settings) Plugin(string) host.Settings { return host.Settings{} }

func (settings) Tokens() []bearer.Token {
	return []bearer.Token{tokenOf(console.Viewer), {Name: "ci", Hash: hashOf("ci")}}
}

func (s settings) Issuers() []string { return s.issuers }

func (s settings) Toolsets() *toolset.Config { return s.toolsets }

func (s settings) AuditOptional() bool { return s.auditOptional != nil && s.auditOptional() }

func (settings) Reload(context.Context, audit.Subject) (*console.Reloaded, error) {
	return &console.Reloaded{Changed: []string{"policy"}}, nil
}

// consents is a store of consents for tests. A nil check accepts all grants.
type consents struct {
	load  func() (console.Consents, error)
	check func(string, grant.Grants) error
}

func (c consents) LoadConsents(context.Context) (console.Consents, error) { return c.load() }

func (c consents) CheckGrants(plugin string, g grant.Grants) error {
	if c.check == nil {
		return nil
	}
	return c.check(plugin, g)
}

// upstreams are the states of upstream servers.
type upstreams []mcpclient.Status

func (u upstreams) Status() []mcpclient.Status { return u }

// problems is a Reporter with fixed problems.
type problems []console.Problem

func (p problems) Problems(string) []console.Problem { return p }

// backend answers calls of tools.
type backend func(ctx context.Context, in *catalog.Invocation) (*abi.Response, error)

func (b backend) Call(ctx context.Context, in *catalog.Invocation) (*abi.Response, error) {
	return b(ctx, in)
}

// echo answers with the arguments.
var echo = backend(func(_ context.Context, in *catalog.Invocation) (*abi.Response, error) {
	return &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: string(in.Request.Arguments)}}}, nil
})

// offer puts tools into the catalog.
func (w *world) offer(source string, b catalog.Backend, tools ...manifest.Tool) {
	w.t.Helper()
	m := &manifest.Manifest{Name: source, Version: "1.0.0", Description: manifest.Text{"en": "x"}, License: "MIT",
		Tools: tools}
	for i := range m.Tools {
		tool := &m.Tools[i]
		if tool.Description == nil {
			tool.Description = manifest.Text{"en": "Does something."}
		}
		if tool.InputSchema == nil {
			tool.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
	}
	if err := m.Validate(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.host.Catalog().Put(catalog.Source{Name: source, Backend: b}, m); err != nil {
		w.t.Fatal(err)
	}
}

// browser is somebody's, with its cookies.
type browser struct {
	*world
	address string
	cookies map[string]string
	csrf    string
}

func (w *world) browser() *browser {
	return &browser{world: w, address: "203.0.113.7:5555", cookies: map[string]string{}}
}

// as is the browser of somebody with the role, who is logged in.
func (w *world) as(role console.Role) *browser {
	w.t.Helper()
	b := w.browser()
	if answer := b.post("login", map[string]string{"token": secretOf(role)}); answer.status != http.StatusOK {
		w.t.Fatalf("log in as %s: %d %s", role, answer.status, answer.body)
	}
	return b
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

// code is that of the error; empty where there is none.
func (a *answer) code() string {
	var body struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(a.body), &body)
	return body.Error.Code
}

// into decodes the answer, which must be one.
func (a *answer) into(t testing.TB, v any) {
	t.Helper()
	if a.status >= 300 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

func (b *browser) get(path string) *answer { return b.do("GET", path, nil, nil) }

func (b *browser) post(path string, body any) *answer { return b.do("POST", path, body, nil) }

// do makes a request as the page does; change may alter it.
func (b *browser) do(method, path string, body any, change func(*http.Request)) *answer {
	b.t.Helper()
	r := b.request(method, path, body)
	if change != nil {
		change(r)
	}
	recorder := httptest.NewRecorder()
	b.handler.ServeHTTP(recorder, r)
	for _, cookie := range recorder.Result().Cookies() {
		b.cookies[cookie.Name] = cookie.Value
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	a := &answer{recorder.Code, recorder.Header(), recorder.Body.String()}
	var session struct{ CSRF string }
	if path == "login" && json.Unmarshal([]byte(a.body), &session) == nil && session.CSRF != "" {
		b.csrf = session.CSRF
	}
	return a
}

func (b *browser) request(method, path string, body any) *http.Request {
	b.t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		data, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		reader = bytes.NewReader(data)
	}
	if !strings.HasPrefix(path, "/") {
		path = console.Path + "api/" + path
	}
	r := httptest.NewRequestWithContext(b.t.Context(), method, "http://127.0.0.1:8420"+path, reader)
	r.RemoteAddr = b.address
	if method != "GET" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Hako-CSRF", b.csrf)
		r.Header.Set("Origin", "http://127.0.0.1:8420")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	return r
}

// records are the audit log's, as "action outcome user".
func (w *world) records() string {
	w.t.Helper()
	var lines []string
	for e, err := range audit.Dir(w.logDir).Read(w.t.Context(), &audit.Query{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		what := e.Action
		if what == "" {
			what = e.Target.Name
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", what, e.Outcome, e.Subject.User, e.Subject.Address))
	}
	return strings.Join(lines, "\n")
}
