package registry_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/registry"
)

// TestHostileTokenServers: a registry with TLS names the server that gives tokens for the operator's password, and
// cannot name one to which the password would go in the clear.
func TestHostileTokenServers(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	elsewhere := registrytest.Start(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.Add(1)
			_, _ = io.WriteString(w, `{"token":"stolen"}`)
		})
	})
	for name, test := range map[string]struct{ challenge, want string }{
		"without TLS":        {`Bearer realm="http://tokens.example/token",service="x"`, "uses http"},
		"on this machine":    {`Bearer realm="` + elsewhere.URL + `/token",service="x"`, "uses http"},
		"the metadata":       {`Bearer realm="http://169.254.169.254/latest",service="x"`, "uses http"},
		"a file":             {`Bearer realm="file:///etc/passwd",service="x"`, "unsupported scheme"},
		"a path":             {`Bearer realm="/token",service="x"`, "unsupported scheme"},
		"nothing":            {`Bearer realm="",service="x"`, "unsupported"},
		"no challenge":       {``, "login"},
		"another scheme":     {`Negotiate`, "login"},
		"a name with breaks": {"Bearer realm=\"http://tokens.example/\t\x1b[2J\",service=\"x\"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := registrytest.StartTLS(t, answering(isManifest, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", test.challenge)
				w.WriteHeader(http.StatusUnauthorized)
			}))
			c := client(t, registry.Options{AuthFiles: login(t, at.Host),
				Registries: map[string]registry.Host{at.Host: {CA: at.CA}}})
			c.SetRetryDelay(time.Nanosecond)
			_, err := c.Pull(t.Context(), parse(t, at.Reference("tools/probe", "1")))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("the text is %q", err)
			}
		})
	}
	t.Cleanup(func() {
		if n := seen.Load(); n != 0 {
			t.Errorf("the server on this machine had %d requests", n)
		}
	})
}

// TestHostileLists: lists that a registry makes up end, stay with the registry, and hold nothing but tags.
func TestHostileLists(t *testing.T) {
	t.Parallel()
	isTags := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/tags/list") }
	next := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "<"+to+">; rel=\"next\"")
			_, _ = io.WriteString(w, `{"name":"tools/probe","tags":["1.0"]}`)
		}
	}
	tags := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	var leaked atomic.Int64
	elsewhere := registrytest.Start(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				leaked.Add(1)
			}
			_, _ = io.WriteString(w, `{"tags":["6.6.6"]}`)
		})
	})
	many, err := json.Marshal(map[string]any{"tags": strings.Split(strings.Repeat("1.0,", 10_001)+"1.0", ",")})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string // empty: no error is needed
	}{
		"the same page again":     {next("/v2/tools/probe/tags/list?n=1&last=1.0"), ""},
		"a page elsewhere":        {next(elsewhere.URL + "/v2/tools/probe/tags/list"), "not the same origin"},
		"a page without TLS":      {next("http://pages.example/v2/tools/probe/tags/list"), "not the same origin"},
		"a page in a file":        {next("file:///etc/passwd"), "not the same origin"},
		"a page at the metadata":  {next("http://169.254.169.254/latest"), "not the same origin"},
		"more tags than any has":  {tags(string(many)), "more than 10000 tags"},
		"a tag with an escape":    {tags(`{"tags":["1.0","\u001b[2J"]}`), "the invalid tag"},
		"a tag that turns around": {tags(`{"tags":["1.0","\u202e0.1"]}`), "the invalid tag"},
		"a tag that is a path":    {tags(`{"tags":["../../x"]}`), "the invalid tag"},
		"a tag that is a digest":  {tags(`{"tags":["sha256:` + strings.Repeat("a", 64) + `"]}`), "the invalid tag"},
		"a tag without text":      {tags(`{"tags":[""]}`), "the invalid tag"},
		"tags that are numbers":   {tags(`{"tags":[1]}`), "decode"},
		"no JSON":                 {tags("<html>"), "decode"},
		"an answer without end": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"tags":["1.0"`)
			piece := bytes.Repeat([]byte(`,"1.0"`), 1<<14)
			for range 1 << 10 {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
			t.Error("the answer was read to its end")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			at := registrytest.Start(t, basicAuth, answering(isTags, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				test.answer(w, r)
			}))
			c := client(t, registry.Options{AuthFiles: login(t, at.Host)})
			c.SetRetryDelay(time.Nanosecond)
			list, err := c.Tags(t.Context(), parse(t, at.Reference("tools/probe", "1")))
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, %v, want %q", list, err, test.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\u202e\n") {
				t.Errorf("the text is %q", err)
			}
			if n := requests.Load(); n > 21 {
				t.Errorf("%d requests", n)
			}
		})
	}
	t.Cleanup(func() {
		if n := leaked.Load(); n != 0 {
			t.Errorf("another server has seen the password %d times", n)
		}
	})
}

// tarOf returns a tar with files of these names and contents.
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))})
		if err == nil {
			_, err = io.WriteString(w, files[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHostileBundles: what a bundle lists costs what is in it, however often it is listed, and nothing outside of it is
// opened.
func TestHostileBundles(t *testing.T) {
	large := `{"layers":[],"annotations":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	kind := fmt.Sprintf(`{"artifactType":%q,"subject":{"digest":%q}}`, strings.Repeat("x", 1<<20), registrytest.Digest(nil))
	blob := func(text string) string {
		return "blobs/sha256/" + strings.TrimPrefix(registrytest.Digest([]byte(text)), "sha256:")
	}
	listed := func(times int, text string) string {
		entry := `{"digest":"` + registrytest.Digest([]byte(text)) + `"}`
		return `{"manifests":[` + strings.Repeat(entry+",", times-1) + entry + `]}`
	}
	for name, test := range map[string]struct {
		files []string
		want  string // of the error; empty for none
	}{
		"one artifact, listed often":    {[]string{"index.json", listed(10_000, large), blob(large), large}, ""},
		"a type of a megabyte":          {[]string{"index.json", listed(1, kind), blob(kind), kind}, ""},
		"an artifact that is not there": {[]string{"index.json", listed(1, large)}, "cannot be read"},
		"an artifact that is another":   {[]string{"index.json", listed(1, large), blob(large), "{}"}, "other content"},
		"an artifact that is a tar":     {[]string{"index.json", listed(1, "\x00\x01"), blob("\x00\x01"), "\x00\x01"}, ""},
		"two indexes":                   {[]string{"index.json", listed(1, "{}"), "index.json", "text", blob("{}"), "{}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := registry.OpenLayout(put(t, filepath.Join(t.TempDir(), "x.tar"), tarOf(t, test.files...)), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			r := parse(t, "registry.example.com/x@"+registrytest.Digest(nil))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 3 {
				found, _, err := l.Client().Referrers(t.Context(), r, "")
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Fatalf("got %+v, %v, want %q", found, err, test.want)
				}
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
}

// TestHostileIndexes: indexes in indexes, of which a registry can serve any number, are not followed into a bundle.
func TestHostileIndexes(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t)
	inner := at.PutImage(t, "tools/probe", "", at.PutBlob(t, "tools/probe", emptyType, []byte("{}")),
		at.PutBlob(t, "tools/probe", wasmType, plugin(t)))
	references := []registry.Reference{}
	for i := range 20 {
		inner = at.PutManifest(t, "tools/probe", fmt.Sprint(i), indexType, map[string]any{"schemaVersion": 2,
			"mediaType": indexType, "manifests": []any{inner}, "annotations": map[string]string{"depth": fmt.Sprint(i)}})
		references = append(references, parse(t, at.Reference("tools/probe", fmt.Sprint(i))).WithDigest(inner.Digest))
	}
	c := client(t, registry.Options{})
	for i, r := range references {
		t.Run(fmt.Sprint("depth ", i+1), func(t *testing.T) {
			_, err := registry.NewLayoutWriter(io.Discard).AddArtifact(t.Context(), c, "probe", r)
			if i == 0 && err != nil || i > 0 && (err == nil || !strings.Contains(err.Error(), "an index in an index")) {
				t.Errorf("got %v", err)
			}
			if _, err := c.Pull(t.Context(), r); (err == nil) != (i == 0) {
				t.Errorf("pulled: %v", err)
			}
		})
	}
}

// TestHostileCopies: an artifact with more layers than a plugin needs does not fill the disk with a bundle.
func TestHostileCopies(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	at := registrytest.Start(t)
	layers := []registrytest.Blob{at.PutBlob(t, "tools/probe", wasmType, plugin(t))}
	for i := range 8 {
		layers = append(layers, at.PutBlob(t, "tools/probe", "text/plain", bytes.Repeat([]byte{byte(i)}, most/2)))
	}
	m := at.PutImage(t, "tools/probe", "1", at.PutBlob(t, "tools/probe", emptyType, []byte("{}")), layers...)
	c := client(t, registry.Options{MaxSize: most})
	var written counter
	_, err := registry.NewLayoutWriter(&written).AddArtifact(t.Context(), c, "probe",
		parse(t, at.Reference("tools/probe", "1")).WithDigest(m.Digest))
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
	if written > 3*most {
		t.Errorf("%d bytes were written", written)
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
