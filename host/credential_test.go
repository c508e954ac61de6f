package host_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// Secrets that the hunter is after.
const (
	staticToken  = "kot-7c1d/Token+of=acme"
	accessToken  = "access-9d0f51c7e2aa"
	refreshToken = "refresh-4b8e60f3d911"
	clientSecret = "client-secret-31337"
)

// mirror is a server that repeats what it is sent in every way it can think of.
type mirror struct {
	mu   sync.Mutex
	seen string // all that arrived
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secret := r.Header.Get("Authorization")
	m.mu.Lock()
	m.seen += fmt.Sprintln(r.Method, r.URL, r.Header)
	m.mu.Unlock()
	switch r.URL.Path {
	case "/token":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w,
			`{"access_token":%q,"refresh_token":%q,"expires_in":21600,"token_type":"bearer","company_id":"1234"}`,
			accessToken, refreshToken)
	case "/redirect":
		http.Redirect(w, r, r.FormValue("to"), http.StatusFound)
	case "/leak":
		http.Redirect(w, r, r.FormValue("to")+"?stolen="+url.QueryEscape(secret)+"&plain="+secret, http.StatusFound)
	case "/refuse":
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message":"%s","code":"expired_access_token"}`, secret)
	case "/broken":
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", secret)
			_ = conn.Close()
		}
	default:
		echo(w, r, secret)
	}
}

func echo(w http.ResponseWriter, r *http.Request, secret string) {
	switch r.FormValue("as") {
	case "base64":
		fmt.Fprint(w, base64.StdEncoding.EncodeToString([]byte("x"+secret)),
			base64.URLEncoding.EncodeToString([]byte(secret)))
	case "query":
		fmt.Fprint(w, url.QueryEscape(secret), url.PathEscape(secret))
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, secret)
		_ = z.Close()
	case "rot":
		w.Header().Set("Content-Encoding", "x-rot")
		fmt.Fprint(w, secret)
	case "bytes":
		for i := range len(secret) {
			fmt.Fprint(w, secret[i:i+1])
			_ = http.NewResponseController(w).Flush()
		}
	case "headers":
		for name, values := range r.Header {
			w.Header()["Echo-"+name] = values
		}
		w.Header().Set("Set-Cookie", "session="+secret)
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, secret)
	case "cached":
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, secret)
	default:
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"headers": r.Header, "body": body, "query": r.URL.RawQuery})
	}
}

// hunter is the plugin that hunts, with a permission that brings the credential "prize" and one that brings none. Its
// bytes are always the same, so that it is compiled once.
func hunter(t *testing.T) host.Shipped {
	t.Helper()
	const text = `
name: hunter
version: 1.0.0
description: Hunts.
tools: [{name: hunt, description: Hunts., inputSchema: {type: object}}]
permissions:
  http:
    - {name: api, url: "https://api.example.com", configKey: api, methods: [GET, HEAD, POST], credential: prize, reason: to hunt}
    - {name: other, url: "https://other.example.com", configKey: other, methods: [GET, HEAD, POST], reason: to hunt}
config:
  api: {type: url}
  other: {type: url}
`
	wasm, err := wasmfile.Embed(guesttest.Build(t, "dev/kit/guesttest/guests/hunter"),
		map[string][]byte{abi.ManifestSection: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return host.Shipped{File: "hunter.wasm", Wasm: guesttest.Bytes(wasm)}
}

// hunting is everything that one hunt brought, and what else of it somebody could read later.
type hunting struct {
	finds                []struct{ Attempt, Got string }
	log, record, reports string
}

// hunt runs the hunter once.
func hunt(t *testing.T, record bool, credentials *credential.Broker, servers []*httptest.Server,
	paths []string) *hunting {
	t.Helper()
	var log bytes.Buffer
	dir := t.TempDir()
	w := newWorld(t, func(o *host.Options) {
		o.Shipped = []host.Shipped{hunter(t)}
		o.Settings = map[string]host.Settings{"hunter": {Config: map[string]any{"api": servers[0].URL,
			"other": servers[1].URL}}}
		o.Credentials = credentials
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Limits = manifest.Limits{Log: 1 << 20, Time: 10 * time.Minute}
		if record {
			o.RecordDir = dir
		}
	})
	w.load()
	w.prepare()
	arguments := map[string]any{"api": servers[0].URL, "other": servers[1].URL, "foreign": servers[2].URL,
		"paths":        paths,
		"fingerprints": fingerprints()}
	encoded, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	h := new(hunting)
	result, err := w.Call(t.Context(), &pipeline.Call{
		Caller:   pipeline.Caller{Tenant: "acme"},
		Request:  abi.Request{Method: abi.CallTool, Name: "hunt", Arguments: encoded},
		Progress: func(p abi.Progress) { h.reports += p.Message + "\n" },
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if err := json.Unmarshal([]byte(result.Response.Content[0].Text), &h.finds); err != nil {
		t.Fatalf("%v: %s", err, result.Response.Content[0].Text)
	}
	if err := w.Close(); err != nil { // writes the recording
		t.Error(err)
	}
	h.log = log.String()
	if record {
		h.record = readAll(t, dir)
	}
	return h
}

func readAll(t *testing.T, dir string) (text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("nothing was recorded", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	return text
}

// fingerprints are of the secrets, as the guest computes them.
func fingerprints() (list []map[string]any) {
	for _, secret := range []string{staticToken, accessToken, refreshToken, clientSecret, "hunter-finds-this"} {
		var hash uint64
		for _, b := range []byte(secret) {
			hash = hash*1099511628211 + uint64(b)
		}
		list = append(list, map[string]any{"length": len(secret), "hash": strconv.FormatUint(hash, 16)})
	}
	return list
}

// TestSecretHunter has a guest hunt for secrets by every means it has: it gets nothing. Run it with -v for its report.
func TestSecretHunter(t *testing.T) {
	for kind, secret := range map[string]string{"static": staticToken, "connected": accessToken} {
		for _, record := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, recording %v", kind, record), func(t *testing.T) {
				api, other := new(mirror), new(mirror)
				servers := []*httptest.Server{httptest.NewServer(api), httptest.NewServer(other),
					httptest.NewServer(other)}
				for _, s := range servers {
					t.Cleanup(s.Close)
				}
				credentials, paths := vault(t, kind, servers[0].URL)
				h := hunt(t, record, credentials, servers, append(paths, "hunter-finds-this"))
				h.check(t)
				if strings.Count(api.seen, "Bearer "+secret) < 15 {
					t.Errorf("the credential has not been sent where it should: %s", api.seen)
				}
				expectNothing(t, "the other servers", other.seen)
			})
		}
	}
}

// vault makes credentials with a secret of every kind, and returns the files where they lie.
func vault(t *testing.T, kind, server string) (*credential.Broker, []string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HAKO_TEST_KOT", staticToken)
	t.Setenv("HAKO_TEST_CLIENT", clientSecret)
	specs := map[string]credential.Spec{
		"static": {Token: secret.Source{Env: "HAKO_TEST_KOT"}},
		"connected": {Provider: credential.Freee, ClientID: "client",
			ClientSecret: secret.Source{Env: "HAKO_TEST_CLIENT"},
			AuthorizeURL: server + "/authorize", TokenURL: server + "/token"},
	}
	b, err := credential.New(credential.Options{
		Credentials: map[string]credential.Spec{"prize": specs[kind], "another": specs["connected"]},
		Store:       func(ctx context.Context) (*store.Store, error) { return drivers.Open(ctx, dir, nil) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prize", "another"} {
		consent, err := b.Consent(t.Context(), "acme", name, "")
		if kind == "static" && name == "prize" {
			continue // nothing to consent to
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := consent.Exchange(t.Context(), "code"); err != nil {
			t.Fatal(err)
		}
	}
	return b, []string{filepath.Join(dir, "secrets.key"), filepath.Join(dir, "hako.db")}
}

// check prints the report and looks for the secrets in everything that the guest, a log or a recording holds.
func (h *hunting) check(t *testing.T) {
	t.Helper()
	places := map[string]string{"the log": h.log, "the recording": h.record, "the progress": h.reports}
	for _, f := range h.finds {
		got := strings.ToValidUTF8(f.Got, "?")
		t.Logf("%-34s %.150s", f.Attempt, strings.ReplaceAll(got, "\n", " "))
		places[f.Attempt] = f.Got
		if strings.HasPrefix(f.Attempt, "own memory") {
			found := strings.HasSuffix(f.Got, ", 0 found")
			if control := strings.HasSuffix(f.Attempt, " 4"); found == control { // the last is one that it was told
				t.Errorf("%s: %s", f.Attempt, f.Got)
			}
		}
	}
	if len(h.finds) < 60 {
		t.Errorf("%d attempts only", len(h.finds))
	}
	for place, text := range places {
		expectNothing(t, place, text)
	}
}

// expectNothing looks for the secrets in text.
func expectNothing(t *testing.T, place, text string) {
	t.Helper()
	for _, secret := range []string{staticToken, accessToken, refreshToken, clientSecret} {
		for _, form := range forms(secret) {
			if strings.Contains(text, form) {
				t.Errorf("%s: holds %s", place, form)
			}
		}
	}
}

// forms are a secret, and how it looks inside texts.
func forms(secret string) []string {
	list := []string{secret, url.QueryEscape(secret), strings.ReplaceAll(secret, "/", `\/`),
		secret[:len(secret)-2], secret[2:]}
	for offset := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + secret))
		list = append(list, encoded[4:len(encoded)-4])
	}
	return list
}

// TestShippedPluginWaitsForCredential checks that a shipped plugin is offered once one of the credentials that it asks
// for is there.
func TestShippedPluginWaitsForCredential(t *testing.T) {
	t.Parallel()
	token := credential.Spec{Token: secret.Source{Env: "HAKO_TEST_UNSET"}}
	tests := map[string]struct {
		options credential.Options
		mock    bool
		state   host.State
		acme    bool // its tools are visible to callers of that tenant
		zeta    bool
	}{
		"none": {credential.Options{}, false, host.Pending, false, false},
		"another": {credential.Options{Credentials: map[string]credential.Spec{"kot": token}}, false,
			host.Pending, false, false},
		"for all": {credential.Options{Credentials: map[string]credential.Spec{"prize": token}}, false,
			host.Active, true, true},
		"for one tenant": {credential.Options{Tenants: map[string]map[string]credential.Spec{"acme": {"prize": token}}},
			false, host.Active, true, false},
		"not needed": {credential.Options{}, true, host.Active, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := credential.New(test.options)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, func(o *host.Options) {
				o.Shipped, o.Mock, o.Credentials = []host.Shipped{hunter(t)}, test.mock, b
			})
			w.load()
			reason := ""
			if test.state == host.Pending {
				reason = "plugin hunter needs a credential of yours. Set credentials.prize in hako.yaml"
			}
			if s := w.expect("hunter.wasm", test.state, reason); s.NeedsConsent {
				t.Error("a plugin that lacks a credential needs consent")
			}
			for _, tool := range w.Catalog().View().Tools {
				for tenant, want := range map[string]bool{"acme": test.acme, "zeta": test.zeta} {
					if got := w.Visible(pipeline.Caller{Tenant: tenant}, tool); got != want {
						t.Errorf("%s is visible to %s: %t", tool.Name, tenant, got)
					}
				}
			}
		})
	}
}
