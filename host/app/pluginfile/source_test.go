package pluginfile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

const (
	wasmType  = "application/wasm"
	emptyType = "application/vnd.oci.empty.v1+json"
)

// servlet is a module that exports describe and call.
var servlet = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x05\x01\x60\x00\x01\x7f" + "\x03\x03\x02\x00\x00" + "\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x08describe\x00\x00\x04call\x00\x01" + "\x0a\x0b\x02\x04\x00\x41\x00\x0b\x04\x00\x41\x00\x0b")

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestDownload: what was published without a manifest gets one, with the name at the end of the address: that in the
// plugin folder, or a draft, which asks for what a policy of wassette allows.
func TestDownload(t *testing.T) {
	t.Parallel()
	component := read(t, "../../wasm/component/testdata/echo.wasm")
	at := registrytest.Start(t)
	empty := at.PutBlob(t, "x/echo", emptyType, []byte("{}"))
	layer := at.PutBlob(t, "x/echo", wasmType, component)
	policy := at.PutBlob(t, "x/echo", "application/vnd.wasm.policy.v1+yaml",
		[]byte("version: '1.0'\npermissions: {network: {allow: [{host: api.example.com}]}}\n"))
	at.PutImage(t, "x/echo", "1", empty, layer)
	at.PutImage(t, "x/echo", "policy", empty, layer, policy)
	var image bytes.Buffer
	packed := gzip.NewWriter(&image)
	files := tar.NewWriter(packed)
	if err := files.WriteHeader(&tar.Header{Name: "plugin.wasm", Size: int64(len(servlet)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	_, _ = files.Write(servlet)
	_, _ = files.Close(), packed.Close()
	at.PutBlob(t, "time-plugin", emptyType, []byte("{}"))
	at.PutImage(t, "time-plugin", "latest", empty,
		at.PutBlob(t, "time-plugin", "application/vnd.docker.image.rootfs.diff.tar.gzip", image.Bytes()))
	at.PutImage(t, "x/echo", "core", empty, at.PutBlob(t, "x/echo", wasmType, []byte("\x00asm\x01\x00\x00\x00")))
	at.PutImage(t, "x/echo", "text", empty, at.PutBlob(t, "x/echo", wasmType, []byte("\x00asm")))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(component) }))
	t.Cleanup(web.Close)
	c := &config.Config{Plugins: []string{t.TempDir()}, MaxPluginSize: 8 << 20}
	granting := "name: granted\nversion: 2.0.0\ndescription: Grants.\n"
	if err := os.WriteFile(filepath.Join(c.Plugins[0], "granted.yaml"), []byte(granting), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		from, plugin, version, want string
		published                   []byte
	}{
		"a component":             {at.Reference("x/echo", "1"), "echo", "0.0.0", "", component},
		"a component with policy": {at.Reference("x/echo", "policy"), "echo", "0.0.0", "https://api.example.com", component},
		"a component from a URL":  {web.URL + "/tools/echo.wasm?key=secret", "echo", "0.0.0", "", component},
		"with a manifest here":    {web.URL + "/granted.wasm", "granted", "2.0.0", "", component},
		"hyper-mcp's":             {at.Reference("time-plugin", "latest"), "time-plugin", "0.0.0", "", servlet},
		"without the tag":         {strings.TrimSuffix(at.Reference("time-plugin", "latest"), ":latest"), "time-plugin", "0.0.0", "", servlet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Download(t.Context(), c, test.from, false)
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := Parse(p.Wasm)
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != test.plugin || m.Version != test.version || p.Digest != registrytest.Digest(test.published) {
				t.Errorf("got %s %s, published as %s", m.Name, m.Version, p.Digest)
			}
			text, _ := manifest.Inside(p.Wasm)
			if !bytes.Contains(text, []byte(test.want)) || strings.Contains(p.From, "secret") {
				t.Errorf("from %s: %s", p.From, text)
			}
			if again, err := Download(t.Context(), c, Pinned(p.From, p.Artifact), false); err != nil || !bytes.Equal(again.Wasm, p.Wasm) {
				t.Errorf("pinned: %v", err)
			}
		})
	}
	if p, err := Download(t.Context(), c, at.Reference("x/echo", "core"), false); err != nil {
		t.Error(err)
	} else if _, _, err := Parse(p.Wasm); err == nil {
		t.Error("a core module without a manifest is accepted")
	}
	if _, err := Download(t.Context(), c, at.Reference("x/echo", "text"), false); err == nil {
		t.Error("what is no module is accepted")
	}
	if _, err := Download(t.Context(), c, at.Reference("x/echo", "1"), true); err == nil ||
		!strings.Contains(err.Error(), "only public addresses") {
		t.Errorf("for the public: %v", err)
	}
}

// TestPublish: a plugin is published under its version with what it was built from, and not over another one.
func TestPublish(t *testing.T) {
	t.Parallel()
	at := registrytest.Start(t)
	client, err := registry.New(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r, err := registry.ParseReference(at.Host + "/tools/hello")
	if err != nil {
		t.Fatal(err)
	}
	module, err := gobuild.Plugin(t.Context(), "../../../dev/kit/guesttest/guests/hello")
	if err != nil {
		t.Fatal(err)
	}
	described := func(description string) []byte {
		wasm, err := wasmfile.Embed(module, map[string][]byte{abi.ManifestSection: []byte(
			"name: hello\nversion: 1.2.3+build\ndescription: " + description + "\nlicense: Apache-2.0\ntools:\n" +
				"  - name: hello\n    description: Says hello.\n    inputSchema: {type: object}\n")})
		if err != nil {
			t.Fatal(err)
		}
		return wasm
	}
	first, err := publish(t.Context(), client, r, described("First."), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if first.Reference.Tag != "1.2.3_build" || first.Dependencies == 0 {
		t.Errorf("got %+v", first)
	}
	a, err := client.Pull(t.Context(), first.Reference)
	if err != nil || a.Annotations[registry.AnnotationVersion] != "1.2.3+build" ||
		a.Annotations[registry.AnnotationDescription] != "First." || a.Annotations[registry.AnnotationLicenses] != "Apache-2.0" {
		t.Errorf("got %+v, %v", a, err)
	}
	if again, err := publish(t.Context(), client, r, described("First."), nil, false); err != nil || again.Reference != first.Reference {
		t.Errorf("again: %+v, %v", again, err)
	}
	boms, _, err := client.Referrers(t.Context(), first.Reference, sbomType)
	if err != nil || len(boms) != 1 {
		t.Fatalf("%d bills of materials, %v", len(boms), err)
	}
	var content bom
	if err := json.Unmarshal(boms[0].Layers[0].Content, &content); err != nil || content.Format != "CycloneDX" ||
		content.Metadata.Component.Name != "hello" || content.Components[0].Name != "std" {
		t.Errorf("the bill of materials is %+v, %v", content, err)
	}
	if _, err := publish(t.Context(), client, r, described("Second."), nil, false); err == nil || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("over another one: %v", err)
	}
	second, err := publish(t.Context(), client, r, described("Second."), nil, true)
	if err != nil || second.Reference == first.Reference {
		t.Errorf("with --replace: %+v, %v", second, err)
	}
	if _, err := publish(t.Context(), client, r, module, nil, false); err == nil {
		t.Error("a plugin without a manifest is published")
	}
}

// auditable returns a module with a list of crates as cargo-auditable writes it.
func auditable(t testing.TB, list string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write([]byte(list))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wasm, err := wasmfile.Embed([]byte("\x00asm\x01\x00\x00\x00"), map[string][]byte{auditableSection: packed.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestMaterials: the crates that are in a plugin are listed, and nothing is guessed.
func TestMaterials(t *testing.T) {
	t.Parallel()
	list, err := crates(auditable(t, `{"packages":[{"name":"tool","version":"0.1.0","source":"local","root":true},
		{"name":"serde","version":"1.0.2","source":"crates.io"},{"name":"cc","version":"1.2.0","source":"crates.io","kind":"build"},
		{"name":"mine","version":"0.2.0","source":"git"}]}`))
	if err != nil || len(list) != 2 || list[0].URL != "pkg:cargo/serde@1.0.2" || list[1].Name != "mine" || list[1].URL != "" {
		t.Errorf("got %+v, %v", list, err)
	}
	if list, err := crates(servlet); list != nil || err != nil {
		t.Errorf("without a section: %+v, %v", list, err)
	}
	if _, err := crates(auditable(t, "[")); err == nil {
		t.Error("a list that is none is accepted")
	}
	if _, err := crates(auditable(t, strings.Repeat(" ", maxAuditable+1))); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a list that is too large: %v", err)
	}
	if goModules(servlet) != nil {
		t.Error("modules are guessed")
	}
	info := "path\tx\nmod\tx\t(devel)\t\ndep\texample.com/a\tv1.0.0\th1:abc=\ndep\texample.com/b\tv1.0.0\n=>\texample.com/c\tv2.0.0\th1:d=\n"
	modules := goModules(append(append(append([]byte("x"), goInfoStart...), info...), goInfoEnd...))
	if len(modules) != 3 || modules[1].URL != "pkg:golang/example.com/a@v1.0.0" || modules[2].Name != "example.com/c" {
		t.Errorf("got %+v", modules)
	}
}

// FuzzMaterials: any file has a list or none.
func FuzzMaterials(f *testing.F) {
	f.Add(auditable(f, `{"packages":[{"name":"serde","version":"1"}]}`))
	f.Add(append(append(append([]byte{}, goInfoStart...), "path\tx\nmod\tx\tv1\t\n"...), goInfoEnd...))
	f.Fuzz(func(_ *testing.T, wasm []byte) {
		goModules(wasm)
		_, _ = crates(wasm)
	})
}
