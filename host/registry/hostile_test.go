package registry_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/dev/kit/testcert"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/wasmfile"
)

const (
	wasmType   = "application/wasm"
	configType = "application/vnd.wasm.config.v0+json"
	indexType  = "application/vnd.oci.image.index.v1+json"
	emptyType  = "application/vnd.oci.empty.v1+json"
)

// large is a plugin that does not arrive in one read.
func large(t testing.TB) []byte {
	t.Helper()
	wasm, err := wasmfile.Embed(plugin(t), map[string][]byte{"filling": bytes.Repeat([]byte("hako"), 256<<10)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// isBlob reports whether a request downloads a blob.
func isBlob(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:")
}

// isManifest reports whether a request reads a manifest.
func isManifest(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/")
}

// answering replaces the answers to the requests that is matches.
func answering(is func(*http.Request) bool, answer http.HandlerFunc) registrytest.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if is(r) {
				answer(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// cutting ends the connection after half of what is asked for, for the first so many downloads.
func cutting(times int64, ranges bool, content []byte, sent, resumed *atomic.Int64) registrytest.Middleware {
	var requests atomic.Int64
	return answering(isBlob, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, registrytest.Digest(content)) {
			http.NotFound(w, r)
			return
		}
		rest := content
		if ranges {
			w.Header().Set("Accept-Ranges", "bytes")
			if from, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
				from, _, _ = strings.Cut(from, "-")
				start, err := strconv.Atoi(from)
				if err != nil || start >= len(content) {
					w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
					return
				}
				rest = content[start:]
				resumed.Add(1)
				w.WriteHeader(http.StatusPartialContent)
			} else {
				w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			}
		}
		if requests.Add(1) <= times {
			n, _ := w.Write(rest[:len(rest)/2])
			sent.Add(int64(n))
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
			panic(http.ErrAbortHandler)
		}
		n, _ := w.Write(rest)
		sent.Add(int64(n))
	})
}

// publish pushes a plugin to a registry through a middleware that is there for reading only.
func publish(t testing.TB, at *registrytest.Registry, wasm []byte) registry.Reference {
	t.Helper()
	layer := at.PutBlob(t, "tools/probe", wasmType, wasm)
	config := at.PutBlob(t, "tools/probe", emptyType, []byte("{}"))
	at.PutImage(t, "tools/probe", "1", config, layer)
	return parse(t, at.Reference("tools/probe", "1"))
}

// TestInterrupted: a transfer whose connection ends in the middle is resumed, or repeated where the registry cannot
// resume, and given up after some tries.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	wasm := large(t)
	for name, test := range map[string]struct {
		times  int64
		ranges bool
		fails  bool
	}{
		"resumed":  {times: 1, ranges: true},
		"repeated": {times: 2},
		"given up": {times: 1 << 30, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent, resumed atomic.Int64
			at := registrytest.Start(t, cutting(test.times, test.ranges, wasm, &sent, &resumed))
			r := publish(t, at, wasm)
			c := client(t, registry.Options{})
			c.SetRetryDelay(time.Nanosecond)
			a, err := c.Pull(t.Context(), r)
			if test.fails {
				if err == nil || !strings.Contains(err.Error(), "ended in the middle") {
					t.Errorf("got %v", err)
				}
				if most := int64(len(wasm)) * (registry.MaxRetries + 1); sent.Load() > most {
					t.Errorf("%d bytes were sent, more than %d", sent.Load(), most)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Wasm, wasm) || test.ranges != (resumed.Load() > 0) {
				t.Errorf("%d bytes of %d, resumed %d times", len(a.Wasm), len(wasm), resumed.Load())
			}
		})
	}
}

// TestLies: what a registry answers instead of a plugin is an error that says what is wrong.
func TestLies(t *testing.T) {
	t.Parallel()
	wasm := plugin(t)
	other := bytes.Replace(wasm, []byte("probe"), []byte("other"), 1)
	swapped := func(is func(*http.Request) bool) registrytest.Middleware {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !is(r) {
					next.ServeHTTP(w, r)
					return
				}
				w = &replacing{w}
				next.ServeHTTP(w, r)
			})
		}
	}
	for name, test := range map[string]struct {
		middleware registrytest.Middleware
		digest     bool
		want       string
	}{
		"another blob":         {middleware: swapped(isBlob), want: "does not match the digest"},
		"another manifest":     {middleware: swapped(isManifest), want: "does not match the digest"},
		"another by digest":    {middleware: swapped(isManifest), digest: true, want: "does not match the digest"},
		"a longer blob":        {answering(isBlob, chunks(wasm, []byte("more"))), false, "does not match the digest"},
		"a shorter blob":       {answering(isBlob, chunks(wasm[:10])), false, "ended in the middle"},
		"another plugin":       {answering(isBlob, chunks(other)), false, "does not match the digest"},
		"a manifest of 100 MB": {answering(isManifest, endless(t, 100<<20)), false, "too large"},
		"an endless manifest":  {answering(isManifest, endless(t, -1)), false, ""},
		"no JSON": {answering(isManifest, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", registrytest.ImageType)
			_, _ = io.WriteString(w, "<html>")
		}), false, "not JSON"},
		"a page": {answering(isManifest, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>")
		}), false, "not JSON"},
		"control characters": {answering(isManifest, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"\u001b]0;evil\u0007\u202egpj"}]}`)
		}), false, "denies it"},
		"a long story": {answering(isManifest, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"%s"}]}`, strings.Repeat("long ", 10_000))
		}), false, "denies it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := registrytest.Start(t, test.middleware)
			r := publish(t, at, wasm)
			if test.digest {
				digest, err := client(t, registry.Options{}).Resolve(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				r = r.WithDigest(digest)
			}
			c := client(t, registry.Options{})
			c.SetRetryDelay(time.Nanosecond)
			_, err := c.Pull(t.Context(), r)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if text := err.Error(); strings.ContainsAny(text, "\x1b\a\u202e\n") || len(text) > 1000 {
				t.Errorf("the text is %q", text)
			}
		})
	}
}

// replacing replaces the name of the plugin in a body by another one of the same length.
type replacing struct{ http.ResponseWriter }

func (r *replacing) Write(p []byte) (int, error) {
	changed := bytes.ReplaceAll(bytes.ReplaceAll(p, []byte("probe"), []byte("other")), []byte(`"layers"`), []byte(`"Layers"`))
	_, err := r.ResponseWriter.Write(changed)
	return len(p), err
}

// chunks answers without a Content-Length.
func chunks(pieces ...[]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, piece := range pieces {
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// endless answers a manifest of size bytes, or without end if that is negative. Few of them may be read.
func endless(t *testing.T, size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", registrytest.ImageType)
		if size > 0 {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		piece, sent := bytes.Repeat([]byte(" "), 1<<20), 0
		for size < 0 || sent < size {
			n, err := w.Write(piece)
			if sent += n; err != nil {
				break
			}
		}
		if sent > 64<<20 {
			t.Errorf("%d bytes were read", sent)
		}
	}
}

// TestLayouts: images in the forms that hyper-mcp's, wassette's and wkg's publishers and Docker write, and those that
// cannot be told.
func TestLayouts(t *testing.T) {
	t.Parallel()
	wasm := plugin(t)
	elsewhere, err := wasmfile.Embed(wasm, map[string][]byte{"other": []byte("file")})
	if err != nil {
		t.Fatal(err)
	}
	empty := func(t *testing.T, at *registrytest.Registry) registrytest.Blob {
		return at.PutBlob(t, "x", emptyType, []byte("{}"))
	}
	image := func(layers ...[2]string) func(*testing.T, *registrytest.Registry) {
		return func(t *testing.T, at *registrytest.Registry) {
			blobs := []registrytest.Blob{}
			for _, layer := range layers {
				blob := at.PutBlob(t, "x", layer[0], []byte(layer[1]))
				blob.Annotations = map[string]string{"org.opencontainers.image.title": "../../../etc/\x1b[2Jevil.wasm"}
				blobs = append(blobs, blob)
			}
			at.PutImage(t, "x", "1", empty(t, at), blobs...)
		}
	}
	const tarType = "application/vnd.docker.image.rootfs.diff.tar.gzip"
	platforms := func(names ...string) func(*testing.T, *registrytest.Registry) {
		return func(t *testing.T, at *registrytest.Registry) {
			list := []registrytest.Blob{}
			for i, name := range names {
				content := elsewhere
				if i == 0 {
					content = wasm
				}
				os, architecture, _ := strings.Cut(name, "/")
				m := at.PutImage(t, "x", fmt.Sprint("platform", i), empty(t, at), at.PutBlob(t, "x", wasmType, content))
				m.Platform = map[string]string{"os": os, "architecture": architecture}
				list = append(list, m)
			}
			slices.Reverse(list)
			at.PutManifest(t, "x", "1", indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": list})
		}
	}
	config := func(text string) func(*testing.T, *registrytest.Registry) {
		return func(t *testing.T, at *registrytest.Registry) {
			at.PutImage(t, "x", "1", at.PutBlob(t, "x", configType, []byte(text)), at.PutBlob(t, "x", wasmType, wasm))
		}
	}
	quoted, err := json.Marshal(manifestText)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		put  func(*testing.T, *registrytest.Registry)
		want string // empty for the plugin
	}{
		"a layer for Wasm":            {put: image([2]string{wasmType, string(wasm)})},
		"an older type":               {put: image([2]string{"application/vnd.wasm.content.layer.v1+wasm", string(wasm)})},
		"a type that lies":            {put: image([2]string{"text/plain", string(wasm)})},
		"a readme before it":          {put: image([2]string{"text/markdown", "# Read me"}, [2]string{"text/plain", string(wasm)})},
		"an image of Docker":          {put: image([2]string{tarType, archive(t, true, "plugin.wasm", wasm)})},
		"a tar":                       {put: image([2]string{tarType, archive(t, false, "/plugin.wasm", wasm)})},
		"another name":                {put: image([2]string{tarType, archive(t, true, "a/b/x.wasm", wasm)})},
		"a name that leads out":       {put: image([2]string{tarType, archive(t, true, "../../plugin.wasm", wasm)})},
		"two files":                   {put: image([2]string{tarType, archive(t, true, "a.wasm", elsewhere, "b/plugin.wasm", wasm)})},
		"a text for a plugin":         {put: image([2]string{tarType, archive(t, true, "plugin.wasm", []byte("text"), "b.wasm", wasm)})},
		"a link":                      {image([2]string{tarType, archive(t, true, "@plugin.wasm", nil)}), "not a plugin"},
		"gzip of nothing":             {image([2]string{tarType, "\x1f\x8b"}), "not a plugin"},
		"layers without Wasm":         {image([2]string{"text/plain", "text"}), "not a plugin"},
		"no layers":                   {image(), "not a plugin"},
		"two plugins":                 {image([2]string{wasmType, string(wasm)}, [2]string{wasmType, string(elsewhere)}), "2 layers"},
		"Wasm before another":         {put: platforms("wasip1/wasm", "linux/amd64", "unknown/unknown")},
		"linux/amd64":                 {put: platforms("linux/amd64", "linux/arm64", "unknown/unknown")},
		"the only one":                {put: platforms("plan9/mips", "unknown/unknown")},
		"none that is known":          {platforms("linux/arm64", "darwin/arm64"), "darwin/arm64, linux/arm64"},
		"wassette's config":           {put: config(`{"architecture":"wasm","os":"wasip2"}`)},
		"the same manifest":           {put: config(`{"run.hako.manifest":` + string(quoted) + `}`)},
		"a manifest that asks less":   {config(`{"run.hako.manifest":"name: other"}`), "not the one in its file"},
		"a config of another kind":    {config(`[]`), "not JSON as"},
		"an index in an index":        {nested, "an index in an index"},
		"an index and an image":       {both, "at once"},
		"a size that cannot be right": {sized(-1), "invalid digest or size"},
		"a size that is too large":    {sized(1 << 60), "too large"},
		"a digest that is none":       {digested("sha256:../../x"), "invalid digest"},
		"a digest of another kind":    {digested("md5:d41d8cd98f00b204e9800998ecf8427e"), "invalid digest or size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := registrytest.Start(t)
			test.put(t, at)
			a, err := client(t, registry.Options{}).Pull(t.Context(), parse(t, at.Reference("x", "1")))
			switch {
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want == "" && !bytes.Equal(a.Wasm, wasm):
				t.Error("the plugin is another")
			}
		})
	}
}

// nested puts an index whose entry is an index.
func nested(t *testing.T, at *registrytest.Registry) {
	inner := at.PutManifest(t, "x", "inner", indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType,
		"manifests": []any{}})
	at.PutManifest(t, "x", "1", indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType,
		"manifests": []any{inner}})
}

// both puts a manifest that is an index for some readers and an image for others.
func both(t *testing.T, at *registrytest.Registry) {
	m := at.PutImage(t, "x", "inner", at.PutBlob(t, "x", emptyType, []byte("{}")), at.PutBlob(t, "x", wasmType, plugin(t)))
	at.PutManifest(t, "x", "1", indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{m},
		"layers": []any{m}})
}

// sized puts an image whose layer states a size.
func sized(size int64) func(*testing.T, *registrytest.Registry) {
	return func(t *testing.T, at *registrytest.Registry) {
		layer := at.PutBlob(t, "x", wasmType, plugin(t))
		layer.Size = size
		at.PutImage(t, "x", "1", at.PutBlob(t, "x", emptyType, []byte("{}")), layer)
	}
}

// digested puts an image whose layer states a digest.
func digested(digest string) func(*testing.T, *registrytest.Registry) {
	return func(t *testing.T, at *registrytest.Registry) {
		layer := at.PutBlob(t, "x", wasmType, plugin(t))
		layer.Digest = digest
		at.PutImage(t, "x", "1", at.PutBlob(t, "x", emptyType, []byte("{}")), layer)
	}
}

// TestPolicy: a policy of wassette is read with a component.
func TestPolicy(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t)
	at.PutImage(t, "x", "1", at.PutBlob(t, "x", emptyType, []byte("{}")),
		at.PutBlob(t, "x", "application/vnd.wasm.policy.v1+yaml", []byte("version: 1.0")), at.PutBlob(t, "x", wasmType, plugin(t)))
	a, err := client(t, registry.Options{}).Pull(t.Context(), parse(t, at.Reference("x", "1")))
	if err != nil || string(a.Policy) != "version: 1.0" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// TestRetries: a registry that is busy is asked again, and not for ever.
func TestRetries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status     int
		retryAfter string
		times      int64
		requests   int64
		want       string
	}{
		"busy once":            {http.StatusTooManyRequests, "0.001", 1, 2, ""},
		"unavailable twice":    {http.StatusServiceUnavailable, "", 2, 3, ""},
		"broken for ever":      {http.StatusInternalServerError, "", 1 << 30, registry.MaxRetries + 1, "answers 500"},
		"busy for a long time": {http.StatusTooManyRequests, "3600", 1 << 30, 1, "too many requests"},
		"busy until a date":    {http.StatusTooManyRequests, "Fri, 31 Dec 2100 23:59:59 GMT", 1 << 30, 1, "too many requests"},
		"not found":            {http.StatusNotFound, "", 1 << 30, 1, "does not have it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			at := registrytest.Start(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if isManifest(r) && requests.Add(1) <= test.times {
						w.Header().Set("Retry-After", test.retryAfter)
						w.WriteHeader(test.status)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			r := publish(t, at, plugin(t))
			c := client(t, registry.Options{})
			c.SetRetryDelay(time.Nanosecond)
			_, err := c.Pull(t.Context(), r)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if n := requests.Load(); n != test.requests {
				t.Errorf("%d requests, want %d", n, test.requests)
			}
		})
	}
	response := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"7"}}}
	if d, err := (registry.RetryPolicy{}).Retry(0, response, nil); err != nil || d != 7*time.Second {
		t.Errorf("Retry-After: 7 waits %v, %v", d, err)
	}
}

// TestRedirects: layers may be elsewhere, which does not see the credentials; connections that others can read are
// refused.
func TestRedirects(t *testing.T) {
	t.Parallel()
	wasm := plugin(t)
	var leaked atomic.Value
	store := registrytest.Start(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if header := r.Header.Get("Authorization"); header != "" {
				leaked.Store(header)
			}
			_, _ = w.Write(wasm)
		})
	})
	for name, test := range map[string]struct {
		to, want string
	}{
		"another port":     {store.URL + "/blob?signature=secret", ""},
		"not https":        {"http://store.example/blob?signature=secret", "http://store.example, which is not https"},
		"a file":           {"file:///etc/passwd", "not https"},
		"without end":      {"", "redirects too many times"},
		"the metadata":     {"http://169.254.169.254/latest/meta-data", "not https"},
		"nothing is there": {"http://127.0.0.1:1/blob?signature=secret", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := registrytest.Start(t, basicAuth, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !isBlob(r) {
						next.ServeHTTP(w, r)
						return
					}
					to := test.to
					if to == "" {
						to = r.URL.Path
					}
					http.Redirect(w, r, to, http.StatusTemporaryRedirect)
				})
			})
			r := publish(t, at, wasm)
			_, err := client(t, registry.Options{AuthFiles: login(t, at.Host)}).Pull(t.Context(), r)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the signature is shown: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if header := leaked.Load(); header != nil {
			t.Errorf("the store has seen %v", header)
		}
	})
}

// basicAuth asks for the login of aki, except for what tests put.
func basicAuth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if r.Method != http.MethodPost && r.Method != http.MethodPut && (!ok || user != "aki" || password != "secret") {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// dockerConfig writes a config.json of Docker with one entry.
func dockerConfig(t testing.TB, host, entry string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"auths":{"`+host+`":`+entry+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// login returns a file with the login of aki for the host.
func login(t testing.TB, host string) []string {
	return []string{dockerConfig(t, host, `{"auth":"`+base64.StdEncoding.EncodeToString([]byte("aki:secret"))+`"}`)}
}

// TestCredentials: logins come from the files of Podman and Docker and from credential helpers, for their registry
// only, and are not repeated in errors.
func TestCredentials(t *testing.T) {
	at := registrytest.Start(t, basicAuth)
	r := publish(t, at, plugin(t))
	bin := t.TempDir()
	helper := "#!/bin/sh\nread host\n[ \"$host\" = " + at.Host + " ] && echo '{\"Username\":\"aki\",\"Secret\":\"secret\"}'\n"
	if err := os.WriteFile(filepath.Join(bin, "docker-credential-probe"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	written := func(text string) string {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	missing := filepath.Join(t.TempDir(), "auth.json")
	for name, test := range map[string]struct {
		files []string
		want  string
	}{
		"a file":               {login(t, at.Host), ""},
		"the second file":      {append([]string{missing}, login(t, at.Host)...), ""},
		"a helper":             {[]string{written(`{"credHelpers":{"` + at.Host + `":"probe"}}`)}, ""},
		"a store":              {[]string{written(`{"credsStore":"probe"}`)}, ""},
		"none":                 {nil, "docker login " + at.Host},
		"of another registry":  {login(t, "registry.example.com"), "docker login"},
		"a helper that is not": {[]string{written(`{"credsStore":"missing"}`)}, "docker-credential-missing, which is not in the PATH"},
		"a wrong password": {[]string{dockerConfig(t, at.Host, `{"auth":"`+
			base64.StdEncoding.EncodeToString([]byte("aki:secretive"))+`"}`)}, "a login that the registry accepts"},
		"a file of something else": {[]string{written(`secret`)}, "is not a credentials file"},
		"an entry of nothing": {[]string{dockerConfig(t, at.Host, `{"auth":"`+
			base64.StdEncoding.EncodeToString([]byte("secret"))+`"}`)}, "gives no credential for " + at.Host},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(name, "helper") || runtime.GOOS == "windows" && name == "a store" {
				t.Skip("the helper is a shell script")
			}
			_, err := client(t, registry.Options{AuthFiles: test.files}).Pull(t.Context(), r)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the password is shown: %v", err)
			}
		})
	}
	if _, err := client(t, registry.Options{AuthFiles: login(t, "x.example")}).Pull(t.Context(), r); !errors.Is(err,
		registry.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

// TestTokens: a token that ends in the middle is replaced once.
func TestTokens(t *testing.T) {
	t.Parallel()
	var issued atomic.Int64
	var host string
	at := registrytest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch valid := fmt.Sprintf("Bearer token%d", issued.Load()); {
			case r.URL.Path == "/token":
				_, _ = fmt.Fprintf(w, `{"token":"token%d"}`, issued.Add(1))
			case r.Method == http.MethodPost || r.Method == http.MethodPut:
				next.ServeHTTP(w, r)
			case isBlob(r) && issued.Load() == 1 || r.Header.Get("Authorization") != valid: // the first token is for one request
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+host+`/token",service="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	host = at.Host
	r := publish(t, at, plugin(t))
	if _, err := client(t, registry.Options{}).Pull(t.Context(), r); err != nil {
		t.Error(err)
	}
	if n := issued.Load(); n != 2 {
		t.Errorf("%d tokens, want 2", n)
	}
}

// TestMirrors: mirrors are asked first, and the registry if they fail.
func TestMirrors(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	counting := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			next.ServeHTTP(w, r)
		})
	}
	origin, mirror, empty := registrytest.Start(t, counting), registrytest.Start(t), registrytest.Start(t)
	r := publish(t, origin, plugin(t))
	layer := mirror.PutBlob(t, "cache/tools/probe", wasmType, plugin(t))
	mirror.PutImage(t, "cache/tools/probe", "1", mirror.PutBlob(t, "cache/tools/probe", emptyType, []byte("{}")), layer)
	before := asked.Load()
	pull := func(mirrors ...string) error {
		c := client(t, registry.Options{Registries: map[string]registry.Host{origin.Host: {Mirrors: mirrors}}})
		_, err := c.Pull(t.Context(), r)
		return err
	}
	if err := pull(empty.Host, mirror.Host+"/cache"); err != nil || asked.Load() != before {
		t.Errorf("from the mirror: %v, %d requests to the registry", err, asked.Load()-before)
	}
	if err := pull(empty.Host); err != nil || asked.Load() == before {
		t.Errorf("from the registry: %v, %d requests to it", err, asked.Load()-before)
	}
	for _, wrong := range []string{"", "https://mirror.example", "mirror", "mirror.example/UPPER"} {
		if _, err := registry.New(registry.Options{Registries: map[string]registry.Host{"x.example": {Mirrors: []string{wrong}}}}); err == nil {
			t.Errorf("the mirror %q is accepted", wrong)
		}
	}
}

// TestMirrorsThatLack: what a mirror does not have is not missing in the registry, neither a tag nor referrers.
func TestMirrorsThatLack(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	origin := registrytest.Start(t, answering(func(*http.Request) bool { return down.Load() },
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	mirror := registrytest.Start(t)
	c := client(t, registry.Options{Registries: map[string]registry.Host{origin.Host: {Mirrors: []string{mirror.Host}}}})
	tagged := parse(t, origin.Reference("tools/probe", "1.0"))
	if _, err := client(t, registry.Options{}).Push(t.Context(), parse(t, mirror.Reference("tools/probe", "1.0")),
		&registry.Artifact{Wasm: plugin(t)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resolve(t.Context(), tagged); err != nil {
		t.Errorf("the tag of the mirror: %v", err)
	}
	if _, err := c.Published(t.Context(), tagged); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a tag that the mirror alone has: %v", err)
	}
	digest, err := c.Push(t.Context(), tagged, &registry.Artifact{Wasm: plugin(t)})
	if err != nil {
		t.Fatal(err)
	}
	r := tagged.WithDigest(digest)
	if err := c.Attach(t.Context(), r, "text/note", []byte("note"), "text/plain", nil); err != nil {
		t.Fatal(err)
	}
	if notes, unread, err := c.Referrers(t.Context(), r, "text/note"); err != nil || len(notes) != 1 || len(unread) != 0 {
		t.Errorf("referrers that the mirror does not have: %+v, %v, %v", notes, unread, err)
	}
	down.Store(true)
	if notes, unread, err := c.Referrers(t.Context(), r, "text/note"); err != nil || len(notes) != 0 || len(unread) != 1 {
		t.Errorf("referrers while only the mirror answers: %+v, %v, %v", notes, unread, err)
	}
	absent := parse(t, origin.Reference("tools/absent", "1.0"))
	for name, resolve := range map[string]func(context.Context, registry.Reference) (string, error){
		"Resolve": c.Resolve, "Published": c.Published} {
		if _, err := resolve(t.Context(), absent); err == nil || errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s while the registry refuses and the mirror lacks it: %v", name, err)
		}
	}
}

// TestPublic: people who may not reach the operator's network reach registries that the operator has configured, and
// others at public addresses only and without credentials.
func TestPublic(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t, basicAuth)
	r := publish(t, at, plugin(t))
	options := registry.Options{Public: true, AuthFiles: login(t, at.Host)}
	if _, err := client(t, options).Pull(t.Context(), r); err == nil || !strings.Contains(err.Error(), "public addresses") {
		t.Errorf("got %v", err)
	}
	options.Registries = map[string]registry.Host{at.Host: {}}
	if _, err := client(t, options).Pull(t.Context(), r); err != nil {
		t.Error(err)
	}
	options.Registries = map[string]registry.Host{"registry.example.com": {Mirrors: []string{at.Host}}}
	if _, err := client(t, options).Pull(t.Context(), parse(t, "registry.example.com/tools/probe:1")); err != nil {
		t.Errorf("from a mirror: %v", err)
	}
}

// TestPushAgain: a push to a registry that is busy, or whose token ends in the middle, is completed, and an upload that
// leads to another host is refused.
func TestPushAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, url string)
		want   string
	}{
		"busy": {func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusServiceUnavailable) }, ""},
		"a token that ends": {func(w http.ResponseWriter, url string) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+url+`/token",service="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, ""},
		"another host": {func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "https://store.example/upload")
			w.WriteHeader(http.StatusAccepted)
		}, "on a different host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var url atomic.Value
			var posts, puts atomic.Int64
			at := registrytest.Start(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					to, _ := url.Load().(string)
					switch {
					case r.URL.Path == "/token":
						_, _ = io.WriteString(w, `{"token":"token"}`)
					case r.Method == http.MethodPost && posts.Add(1) == 1, test.want == "" && r.Method == http.MethodPut && puts.Add(1)%2 == 1:
						_, _ = io.Copy(io.Discard, r.Body)
						test.answer(w, to)
					default:
						next.ServeHTTP(w, r)
					}
				})
			})
			url.Store(at.URL)
			c := client(t, registry.Options{})
			c.SetRetryDelay(time.Nanosecond)
			r := parse(t, at.Reference("tools/probe", "1"))
			digest, err := c.Push(t.Context(), r, &registry.Artifact{Wasm: plugin(t)})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if test.want == "" {
				if a, err := c.Pull(t.Context(), r); err != nil || a.Digest != digest {
					t.Errorf("got %+v, %v", a, err)
				}
			}
		})
	}
}

// TestCertificates: an unknown certificate is refused.
func TestCertificates(t *testing.T) {
	t.Parallel()
	at := registrytest.StartTLS(t)
	r := publish(t, at, plugin(t))
	other := filepath.Join(t.TempDir(), "other.pem")
	certificate, _ := testcert.Pair(t, 1, -time.Hour, time.Hour)
	if err := os.WriteFile(other, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	trusting := func(file string) registry.Options {
		return registry.Options{Registries: map[string]registry.Host{at.Host: {CA: file}}}
	}
	if _, err := client(t, trusting(other)).Pull(t.Context(), r); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	if _, err := client(t, registry.Options{}).Pull(t.Context(), r); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("without its certificate: %v", err)
	}
	for _, file := range []string{os.DevNull, filepath.Join(t.TempDir(), "missing.pem")} {
		if _, err := registry.New(trusting(file)); err == nil {
			t.Errorf("%s is accepted", file)
		}
	}
}

// TestMeant: a reference is recognized without its scheme, and a path is not taken for one.
func TestMeant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ghcr.io/tools/weather:1.0": "oci://ghcr.io/tools/weather:1.0", "localhost:5000/x": "oci://localhost:5000/x",
		"docker://ghcr.io/x:1": "oci://ghcr.io/x:1", "oci:ghcr.io/x:1": "oci://ghcr.io/x:1",
		"oci://ghcr.io/x:1": "", "weather": "", "plugins/weather": "", "./ghcr.io/x:1": "", "my.plugins/weather.wasm": "",
		"/srv/x": "", "https://ghcr.io/x:1": "", "": "", "ghcr.io": "",
	} {
		if got := registry.Meant(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestParseReference lists what is a reference and what is not.
func TestParseReference(t *testing.T) {
	t.Parallel()
	sum := "sha256:" + strings.Repeat("a1", 32)
	for text, want := range map[string]string{
		"oci://ghcr.io/tuananh/time-plugin:latest":    "oci://ghcr.io/tuananh/time-plugin:latest",
		"ghcr.io/microsoft/time-server-js:0.1@" + sum: "oci://ghcr.io/microsoft/time-server-js:0.1@" + sum,
		"localhost/x":                                      "oci://localhost/x",
		"oci://localhost:5000/a/b/c@" + sum:                "oci://localhost:5000/a/b/c@" + sum,
		"oci://Registry.EXAMPLE.com./x:V1":                 "oci://registry.example.com/x:V1",
		"oci://[::1]:5000/x:1":                             "oci://[::1]:5000/x:1",
		"oci://[::1]/x:1":                                  "oci://[::1]/x:1",
		"oci://registry.日本/x:1":                            "oci://registry.xn--wgv71a/x:1",
		"oci://registry.example.com/x:1":                   "oci://registry.example.com/x:1",
		"oci://registry.example.com:443/x_y__z/a-b.c:1_-.": "oci://registry.example.com/x_y__z/a-b.c:1_-.",
		"oci://[2001:db8::1]:443/x:1":                      "oci://[2001:db8::1]/x:1",
		"oci://registry:443/x:1":                           "oci://registry:443/x:1",
		"oci://localhost:443/x:1":                          "oci://localhost:443/x:1",
		"oci://registry.example.com:05000/x:1":             "oci://registry.example.com:5000/x:1",
		"OCI://registry.example.com/x:1":                   "oci://registry.example.com/x:1",
		"oci://docker.io/x":                                "oci://docker.io/library/x",
		"oci://docker.io/library/x@" + sum:                 "oci://docker.io/library/x@" + sum,
		"oci://index.docker.io/tools/x:1":                  "oci://docker.io/tools/x:1",
		"oci://registry-1.docker.io:443/x:1":               "oci://docker.io/library/x:1",
		"oci://Registry-1.Docker.IO./tools/x:1":            "oci://docker.io/tools/x:1",
		"oci://registry.hub.docker.com/x:1":                "oci://docker.io/library/x:1",
		"oci://registry.ipv6.docker.com/tools/x:1":         "oci://docker.io/tools/x:1",
		"oci://registry-1.docker.io:5000/x:1":              "oci://registry-1.docker.io:5000/x:1",
		"oci://auth.docker.io/x:1":                         "oci://auth.docker.io/x:1",
		"oci://registry-1.docker.io.example.com/x:1":       "oci://registry-1.docker.io.example.com/x:1",
		"oci://[0:0::0:1]:5000/x:1":                        "oci://[::1]:5000/x:1",
		"oci://[::FFFF:127.0.0.1]:5000/x:1":                "oci://127.0.0.1:5000/x:1",
		"oci://LocalHost.:5000/x:1":                        "oci://localhost:5000/x:1",
		"oci://ｄｏｃｋｅｒ.io/x:1":                              "oci://docker.io/library/x:1",
	} {
		if r, err := registry.ParseReference(text); err != nil || r.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, r, err, want)
		}
	}
	for _, text := range []string{
		"", "oci://", "x", "tools/x:1", "oci://tools/x:1", "oci://ghcr.io", "oci://ghcr.io/", "oci:///x", "oci://ghcr.io/X:1",
		"oci://ghcr.io/../x:1", "oci://ghcr.io/a/../../x:1", "oci://ghcr.io/a//b:1", "oci://ghcr.io/x:", "oci://ghcr.io/x@",
		"oci://ghcr.io/x:a/b", "oci://ghcr.io/x:1:2", "oci://ghcr.io/x@sha256:a1", "oci://ghcr.io/x@md5:a1",
		"oci://ghcr.io/x:1@" + sum + "@" + sum, "oci://user:password@ghcr.io/x:1", "oci://ghcr.io:0/x:1", "oci://ghcr.io:99999/x:1",
		"oci://ghcr.io:/x:1", "https://ghcr.io/x:1", "oci://ghcr.io/x:1?y=z", "oci://ghcr.io/x:1#y", "oci://ghcr.io/x y:1",
		"oci://ghcr.io/\x1b[2Jx:1", "oci://gh\x00cr.io/x:1", "oci://127.1/x:1", "oci://oci://ghcr.io/x:1",
		"OCI://oci://ghcr.io/x:1", "oci:/ghcr.io/x:1", "oci://docker%2eio/x:1", "oci://docker.io%2fx/y:1", "oci://docker.io/%78:1",
		"oci://docker.io../x:1", "oci://user@docker.io/x:1", "oci://[::1%25lo]:5000/x:1", "oci://0x7f000001:5000/x:1",
		"oci://ghcr.io/" + strings.Repeat("x", 2000) + ":1", "./plugins/weather.wasm", "plugins/weather.wasm", "C:\\x.wasm",
	} {
		if r, err := registry.ParseReference(text); err == nil {
			t.Errorf("%q is taken for %+v", text, r)
		} else if strings.ContainsAny(err.Error(), "\x1b\x00") {
			t.Errorf("%q: the error is %q", text, err)
		}
	}
}

// TestSameRegistry lists which registries are one for rules.
func TestSameRegistry(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		same []string
		want bool
	}{
		"Docker Hub": {[]string{"docker.io", "index.docker.io", "registry-1.docker.io:443", "registry.hub.docker.com."}, true},
		"this machine": {[]string{"localhost:5000", "127.0.0.1:5000", "127.8.8.8:5000", "[::1]:5000", "[::ffff:7f00:1]:5000",
			"0.0.0.0:5000", "[::]:5000", "registry.localhost:5000", "LOCALHOST.:05000"}, true},
		"the default ports of this machine": {[]string{"localhost", "127.0.0.1:80", "[::1]:443", "[::1]"}, true},
		"other ports":                       {[]string{"localhost:5000", "127.0.0.1:5001", "localhost"}, false},
		"other hosts": {[]string{"docker.io", "ghcr.io", "docker.io:5000", "localhost.example.com", "10.0.0.1",
			"10.0.0.2", "[2001:db8::1]"}, false},
	} {
		for _, a := range test.same {
			for _, b := range test.same {
				if got := parse(t, a+"/x").SameRegistry(parse(t, b+"/y")); got != test.want && a != b {
					t.Errorf("%s: %s and %s: %v", name, a, b, got)
				}
			}
		}
	}
}

// TestSettingsUnderEveryName: the settings of a registry are for all spellings of its name, once.
func TestSettingsUnderEveryName(t *testing.T) {
	t.Parallel()
	mirror := registrytest.Start(t)
	layer := mirror.PutBlob(t, "library/probe", wasmType, plugin(t))
	mirror.PutImage(t, "library/probe", "1", mirror.PutBlob(t, "library/probe", emptyType, []byte("{}")), layer)
	settings := registry.Host{Mirrors: []string{mirror.Host}}
	for _, name := range []string{"docker.io", "Index.docker.io", "registry-1.docker.io:443"} {
		c := client(t, registry.Options{Registries: map[string]registry.Host{name: settings}})
		for _, text := range []string{"docker.io/probe:1", "registry-1.docker.io/library/probe:1"} {
			if _, err := c.Pull(t.Context(), parse(t, text)); err != nil {
				t.Errorf("settings of %s for %s: %v", name, text, err)
			}
		}
	}
	twice := map[string]registry.Host{"docker.io": settings, "index.docker.io": {}}
	if _, err := registry.New(registry.Options{Registries: twice}); err == nil || !strings.Contains(err.Error(), "docker.io") {
		t.Errorf("settings under two names: %v", err)
	}
}

// TestStoredCredentials: a credential is found under every key under which Docker and Podman store it for a registry,
// and is for no other registry.
func TestStoredCredentials(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key, host string
		found     bool
	}{
		"Docker's key of Docker Hub": {"https://index.docker.io/v1/", "registry-1.docker.io", true},
		"Podman's key of Docker Hub": {"docker.io", "registry-1.docker.io", true},
		"the API host of Docker Hub": {"registry-1.docker.io", "registry-1.docker.io", true},
		"the default port":           {"registry.example.com:443", "registry.example.com", true},
		"an address":                 {"https://registry.example.com/v2/", "registry.example.com", true},
		"another port":               {"registry.example.com:5000", "registry.example.com", false},
		"the port is another":        {"registry.example.com", "registry.example.com:5000", false},
		"another host":               {"docker.io", "auth.docker.io", false},
		"another loopback address":   {"localhost:5000", "127.0.0.2:5000", false},
		"another default":            {"localhost:443", "localhost", false},
	} {
		got, err := registry.StoredCredential(t.Context(), login(t, test.key), test.host)
		if err != nil || got != test.found {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// FuzzParseReference: what is accepted has a canonical form that means the same.
func FuzzParseReference(f *testing.F) {
	f.Add("oci://ghcr.io/tuananh/time-plugin:latest")
	f.Add("localhost:5000/x@sha256:" + strings.Repeat("a1", 32))
	f.Add("oci://[::1]:5000/a/../b:1")
	f.Add("OCI://Registry-1.Docker.io.:443/x")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := registry.ParseReference(text)
		if err != nil {
			return
		}
		again, err := registry.ParseReference(r.String())
		if err != nil || again != r {
			t.Errorf("%q: %+v, and then %+v, %v", text, r, again, err)
		}
		if strings.Contains(r.Repository, "..") || strings.ContainsAny(r.String(), " \x00\x1b\n?#\\") {
			t.Errorf("%q: %+v", text, r)
		}
	})
}

// sparse returns a tar with Wasm files of zeros, of which it holds only the sizes: GNU tar's PAX format 0.1 for sparse
// files (GNU tar manual, "Storing Sparse Files").
func sparse(t *testing.T, files int, size int64) []byte {
	t.Helper()
	var all bytes.Buffer
	add := func(kind byte, name, body string) {
		var one bytes.Buffer
		w := tar.NewWriter(&one)
		err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(body)), Mode: 0o644, Format: tar.FormatUSTAR})
		if err != nil {
			t.Fatal(err)
		}
		header, sum := one.Bytes()[:512], 0
		header[156] = kind
		copy(header[148:156], "        ")
		for _, b := range header {
			sum += int(b)
		}
		copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
		all.Write(header)
		all.WriteString(body + strings.Repeat("\x00", -len(body)&511))
	}
	records := ""
	for _, r := range []string{"GNU.sparse.numblocks=1", fmt.Sprintf("GNU.sparse.map=%d,0", size),
		fmt.Sprintf("GNU.sparse.size=%d", size)} {
		records += fmt.Sprintf("%d %s\n", len(r)+4, r) // two digits
	}
	for i := range files {
		add(tar.TypeXHeader, "x", records)
		add(tar.TypeReg, fmt.Sprintf("%d.wasm", i), "")
	}
	return all.Bytes()
}

// TestHostileUnpacking: layers that unpack to much more than a plugin are refused before that, and unpacking ends with
// the context.
func TestHostileUnpacking(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	bomb := []byte(archive(t, true, "a.bin", make([]byte, limit*3/2)))
	for name, layers := range map[string][][]byte{
		"sparse files":                  {sparse(t, 3, limit)},
		"sparse files in many layers":   {sparse(t, 1, limit), sparse(t, 1, limit), sparse(t, 1, limit)},
		"compressed tars, many of them": {bomb, bomb},
	} {
		if wasm, err := registry.FindWasm(t.Context(), limit, layers...); wasm != nil || err == nil ||
			!strings.Contains(err.Error(), "unpack to more") {
			t.Errorf("%s: %d bytes, %v", name, len(wasm), err)
		}
	}
	if _, err := registry.FindWasm(t.Context(), limit, bomb, []byte(archive(t, true, "plugin.wasm", []byte("\x00asm")))); err != nil {
		t.Errorf("a plugin after a large layer: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := registry.FindWasm(ended, limit, bomb); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// FuzzFindWasm: any layer gives a Wasm file within the limit, none, or an error.
func FuzzFindWasm(f *testing.F) {
	const limit = 1 << 16
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add([]byte(archive(f, true, "plugin.wasm", []byte("\x00asm"))))
	f.Add([]byte(archive(f, false, "a/b.wasm", []byte("\x00asm"), "plugin.wasm", []byte("x"))))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, layer []byte) {
		wasm, err := registry.FindWasm(t.Context(), limit, layer)
		if wasm != nil && (err != nil || !bytes.HasPrefix(wasm, []byte("\x00asm")) || len(wasm) > max(limit, len(layer))) {
			t.Errorf("%d bytes, %v", len(wasm), err)
		}
	})
}

// FuzzManifest: any manifest is read or refused.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"config":{"digest":"sha256:x"},"layers":[{"size":-1}]}`))
	f.Add([]byte(`{"manifests":[{"platform":{"os":"linux"}},{"platform":null}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) { _ = registry.ParseManifest(text) })
}

// TestBrokenReferrers: a referrer that cannot be read does not hide the others, and neither do many.
func TestBrokenReferrers(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t)
	c := client(t, registry.Options{})
	c.SetRetryDelay(time.Nanosecond)
	tagged := parse(t, at.Reference("tools/probe", "1.0"))
	digest, err := c.Push(t.Context(), tagged, &registry.Artifact{Wasm: plugin(t)})
	if err != nil {
		t.Fatal(err)
	}
	r := tagged.WithDigest(digest)
	refer := func(tag, configType, artifactType string, layers any) {
		t.Helper()
		config := at.PutBlob(t, "tools/probe", configType, []byte("{}"))
		at.PutManifest(t, "tools/probe", tag, registrytest.ImageType, map[string]any{"schemaVersion": 2,
			"mediaType": registrytest.ImageType, "artifactType": artifactType, "config": config, "layers": layers,
			"subject": map[string]any{"mediaType": registrytest.ImageType, "digest": digest, "size": 1}, "annotations": map[string]string{"tag": tag}})
	}
	refer("size", emptyType, "text/note", []map[string]any{{"mediaType": "text/plain", "digest": digest, "size": -1}})
	refer("gone", emptyType, "text/note", []map[string]any{{"mediaType": "text/plain", "digest": registrytest.Digest([]byte("gone")), "size": 4}})
	refer("large", emptyType, "text/note", []map[string]any{{"mediaType": "text/plain", "digest": digest, "size": 9 << 20}})
	if err := c.Attach(t.Context(), r, "text/note", []byte("note"), "text/plain", nil); err != nil {
		t.Fatal(err)
	}
	notes, unread, err := c.Referrers(t.Context(), r, "text/note")
	if err != nil || len(notes) != 1 || string(notes[0].Layers[0].Content) != "note" || len(unread) != 3 {
		t.Fatalf("Referrers: %+v, %v, %v", notes, unread, err)
	}
	texts := errors.Join(unread...).Error()
	for _, want := range []string{"invalid digest", "too large", "does not have it", "the referrer sha256:"} {
		if !strings.Contains(texts, want) {
			t.Errorf("no %q in %s", want, texts)
		}
	}
	var b bytes.Buffer
	if leftOut, err := registry.NewLayoutWriter(&b).AddArtifact(t.Context(), c, "probe", r); err != nil || len(leftOut) != 3 {
		t.Errorf("AddArtifact: %v, %v", leftOut, err)
	}

	for i := range 70 { // this registry lists the type of the config, in any order
		refer(fmt.Sprint("other", i), "text/other", "text/other", []any{})
	}
	notes, unread, err = c.Referrers(t.Context(), r, "text/note")
	if err != nil || len(notes) != 1 || !strings.Contains(errors.Join(unread...).Error(), "more than 64 artifacts refer to it") {
		t.Errorf("with 70 others: %+v, %v, %v", notes, unread, err)
	}
}
